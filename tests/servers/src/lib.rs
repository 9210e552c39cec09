//! Starts what the tests of every language run against: private Redis servers on free ports and in private folders, alone, with
//! sentinels or as a Cluster, a proxy
//! that does to connections what networks do, a server that answers from a script. All end with their handle.
//!
//! The binary `zlink-test-servers` offers the same to tests in other languages; see its `--help`.

mod access;
mod certificates;
mod cluster;
mod proxy;
mod redis;
mod resp;
pub mod rights;
mod sentinel;
mod talk;

pub use access::User;
pub use certificates::{Certificates, Identity};
pub use cluster::{Cluster, ClusterSettings};
pub use proxy::{Action, Proxy, Request, Way};
pub use redis::{RedisServer, Settings};
pub use resp::Value;
pub use sentinel::{SentinelSettings, SentinelTrio};
pub use talk::Talk;
