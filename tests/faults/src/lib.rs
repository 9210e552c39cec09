//! What the fault tests share: work whose every acknowledgement is told, and a ledger that checks what is left of it.

pub mod ledger;
pub mod work;
