//! What the thread that collects answers sleeps on.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<Rung>,
    heard: Condvar,
}

#[derive(Default)]
struct Rung {
    /// There is something to collect.
    answers: bool,
    /// The thread is to come back in any case.
    nudged: bool,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.lock().answers = true;
        self.heard.notify_one();
    }

    pub(crate) fn nudge(&self) {
        self.rung.lock().nudged = true;
        self.heard.notify_all();
    }

    /// Sleeps until the bell is rung (`true`), the thread is nudged, or its patience is at an end (`false`).
    pub(crate) fn wait(&self, patience: Option<Duration>) -> bool {
        let mut rung = self.rung.lock();
        let silent = |rung: &mut Rung| !rung.answers && !rung.nudged;
        match patience {
            Some(patience) => drop(self.heard.wait_while_for(&mut rung, silent, patience)),
            None => self.heard.wait_while(&mut rung, silent),
        }
        if std::mem::take(&mut rung.answers) {
            return true;
        }
        rung.nudged = false;
        false
    }
}
