//! The runtime's contract (spec: runtime.md), on a store in memory behind a provider that fails on demand.

mod faults;
mod life;
mod objects;
mod query;
mod registered;
mod renewals;
mod rig;
mod stress;
mod sweeping;
mod watching;
