//! Faults of a Redis server and of the line to it, under load.

mod busy;
mod cut;
mod foreign;
mod kill;
mod memory;
mod readonly;
mod rig;
mod scripts;
mod silence;
