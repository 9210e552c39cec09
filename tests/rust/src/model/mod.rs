//! A plain model of the stores, and a driver that takes steps of its choice on a store and compares each answer with it.

mod blobs;
mod choices;
mod drive;
mod expect;
mod records;
mod scans;

pub use choices::Choices;
pub use drive::Driver;
