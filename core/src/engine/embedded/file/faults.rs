//! Failures of the disk, for tests.

use std::io;

use parking_lot::Mutex;

type BeforeWrite = Box<dyn FnMut() -> Option<io::Error> + Send>;

/// What happens before a batch is written: nothing, or a failure in its place.
#[derive(Default)]
pub(in crate::engine::embedded) struct Faults(Mutex<Option<BeforeWrite>>);

impl Faults {
    pub(in crate::engine::embedded) fn set(&self, before: impl FnMut() -> Option<io::Error> + Send + 'static) {
        *self.0.lock() = Some(Box::new(before));
    }

    pub(super) fn before_write(&self) -> Option<io::Error> {
        self.0.lock().as_mut().and_then(|before| before())
    }
}
