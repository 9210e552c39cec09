//! The operational query (seed: Operational query; spec: runtime.md, Query): bounded pages, and answers on one object or node.

mod find;
mod objects;
mod pages;
mod status;
mod summaries;
mod token;
mod topology;
mod watch;

pub use objects::ObjectFilter;
pub use pages::{Page, PageRequest};
pub use status::RuntimeStatus;
pub use summaries::{ServiceSummary, ServiceSummaryFilter};
pub use topology::{TopologyEntry, TopologyFilter};
pub use watch::{Change, Watch};

pub(super) use watch::Watches;
