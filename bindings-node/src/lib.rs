//! The Node.js binding of `zlink-store`: translates requests, answers and errors between JavaScript and the core, and decides
//! nothing. Only `@zlink-systems/store-native` speaks to it; what users see is TypeScript, in `packages/node`.
//!
//! A crossing between JavaScript and native code, or between threads, costs more than most operations. So requests come in
//! packed batches ([`request`]), answers leave in packed batches ([`answer`]) through one [`mailbox`] per environment, and one
//! wake-up fetches whatever lies in it. Operations of stores that answer from memory are done inside the call that submits them;
//! all others are driven by one task per environment ([`driver`]).

mod answer;
mod bridge;
mod bytes_out;
mod driver;
mod endpoint;
mod host;
mod log;
mod mailbox;
mod request;
mod source;
mod wire;
mod work;
