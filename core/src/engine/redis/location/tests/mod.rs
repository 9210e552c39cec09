//! Tests against real servers.

mod basics;
mod rig;
