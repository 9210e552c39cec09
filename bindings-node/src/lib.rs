//! The Node.js binding of `zlink-store`: translates requests, answers and errors between JavaScript and the core, and decides
//! nothing. Only `@zlink-systems/store-native` speaks to it; what users see is TypeScript, in `packages/node`.
//!
//! Requests and answers cross packed, many at a time ([`zlink_store::packed`]), and one wake-up per environment fetches whatever
//! is there.

mod bridge;
mod bytes_out;
mod endpoint;
mod host;
mod replies;
mod wake;
