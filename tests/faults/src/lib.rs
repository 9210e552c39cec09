//! What the fault tests share.
//!
//! For both engines: operations that are [dropped](drops).
//!
//! For processes that use the file engine: [`work`] whose every acknowledgement is told, a [`ledger`] that checks what is left of
//! it, and what the kernel was asked meanwhile ([`trace`]).
//!
//! For the Redis engine: a [`workload`] of many clients on several stores, which goes on while a test does harm to the server or
//! the line. What each client was told goes into a [`history`], which is judged at the end ([`verdict`]): nothing acknowledged
//! is lost, nothing was applied twice, what was refused was not applied, no commit is torn, no version came twice, nothing hung,
//! and every register's operations are [linearizable](linear).

pub mod disk;
pub mod drops;
pub mod history;
pub mod ledger;
pub mod linear;
pub mod process;
pub mod trace;
pub mod verdict;
pub mod work;
pub mod workload;

/// How many times as long as by default the tests of the Redis engine go on: `ZLINK_FAULT_ROUNDS`, 1 by default.
pub fn rounds() -> u32 {
    std::env::var("ZLINK_FAULT_ROUNDS").ok().map_or(1, |text| text.parse().expect("a number"))
}
