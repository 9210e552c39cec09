//! What the tests of this crate share: places to open stores in, and the runner of the conformance scenarios
//! (`tests/conformance/README.md`).

pub mod model;
pub mod place;
pub mod scenario;
