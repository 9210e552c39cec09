//! Packed requests and answers, for bindings to languages in which a crossing into native code, or between threads, costs
//! more than most operations.
//!
//! Requests come packed ([`wire`]), answers leave packed, many at once, through one mailbox per [`Bridge`], and one wake-up
//! fetches whatever lies in it. Operations of stores that answer from memory are done inside the call that submits them; all
//! others are driven by one task per bridge. Every operation that was taken is answered exactly once, whatever happens to it.

mod acquires;
mod answer;
mod awaited;
mod bridge;
mod driver;
mod log;
mod mailbox;
mod request;
mod source;
#[cfg(test)]
mod tests;
mod turns;
pub mod wire;
mod work;

pub use bridge::{Bridge, Dialect, Taken, packed_error};
pub use log::{LogListener, listen};
pub use mailbox::Outlet;
pub use request::Request;
pub use work::Store;
