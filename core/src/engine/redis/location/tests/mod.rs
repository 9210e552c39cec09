//! Tests against real servers.

mod basics;
mod model;
mod rig;
