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
pub mod party;
pub mod process;
pub mod report;
pub mod trace;
pub mod verdict;
pub mod window;
pub mod work;
pub mod workload;

/// Whether the tests run in their long form: `ZLINK_FAULTS=long`.
///
/// # Panics
/// If it says anything else.
pub fn is_long() -> bool {
    match std::env::var("ZLINK_FAULTS").as_deref() {
        Ok("long") => true,
        Ok("short") | Err(_) => false,
        Ok(other) => panic!("ZLINK_FAULTS is {other}; it can be long or short"),
    }
}

/// How many times as long as in the short form the tests of the Redis engine go on.
pub fn rounds() -> u32 {
    if is_long() { 2 } else { 1 }
}
