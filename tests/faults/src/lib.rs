//! What the fault tests share: work whose every acknowledgement is told, a ledger that checks what is left of it, and what
//! the kernel was asked meanwhile.

pub mod disk;
pub mod ledger;
pub mod process;
pub mod trace;
pub mod work;
