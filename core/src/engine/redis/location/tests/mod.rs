//! Tests against real servers.

mod basics;
mod clock;
mod memory;
mod model;
mod reaping;
mod rig;
mod scans;
mod server;
mod tap;
mod writes;
