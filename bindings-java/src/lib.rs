//! The Java binding of `zlink-store`: translates requests, answers and errors between Java and the core, and decides nothing.
//! Only `systems.zlink.store.internal` speaks to it; what users see is Java, in `packages/java`.
//!
//! No thread of ours is ever attached to the virtual machine (it would keep the process alive, and would find no class of a child
//! class loader). Java submits packed requests ([`zlink_store::packed`]), one call each, and one daemon thread of Java's waits in
//! [`collect`](native::collect) for batches of answers. A thread of the caller's that waits for one answer gets it directly
//! ([`wait_for`](native::wait_for)): a lone call does not pay for batching.

mod arrays;
mod bell;
pub mod native;
mod opening;
mod side;
mod stats;
