//! Faults of a Redis server and of the line to it, under load.

mod busy;
mod cancel;
mod cut;
mod failover;
mod foreign;
mod kill;
mod left;
mod lost;
mod memory;
mod moving;
mod readonly;
mod rig;
mod rights;
mod scripts;
mod silence;
mod waiter;
