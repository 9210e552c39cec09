//! Whether a batch waits for those who are about to come.
//!
//! Callers that are answered together come back together, a moment later. A committer that starts with the first of them leaves
//! the others a whole sync behind, and goes on so: each batch is a part of them, and each caller waits for two syncs in place of
//! one. So the next batch waits until as many are there as were about when the last one ended, no longer than that one took.

use std::time::Duration;

/// Nobody is held up longer than this, however slow the disk is.
const LONGEST: Duration = Duration::from_millis(2);
/// After a wait in vain it is tried again so many batches later at most.
const RARELY: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Who was about when the last batch ended: those it answered, and those who waited.
    size: usize,
    took: Duration,
    /// Batches that do not wait for anybody.
    skip: u32,
    /// How many there were the last time.
    skipped: u32,
}

impl Crowd {
    /// A batch has ended.
    pub(super) fn ended(&mut self, answered: usize, waiting: usize, took: Duration) {
        self.size = answered + waiting;
        self.took = took.min(LONGEST);
    }

    /// For how many the next batch waits, and how long at most, if `waiting` are there.
    pub(super) fn expected(&mut self, waiting: usize) -> Option<(usize, Duration)> {
        if waiting >= self.size {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some((self.size, self.took))
    }

    /// Whether those waited for have come.
    pub(super) fn came(&mut self, all: bool) {
        self.skipped = if all { 0 } else { RARELY.min(self.skipped * 2 + 1) };
        self.skip = self.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(300);

    #[test]
    fn a_lone_caller_waits_for_nobody() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.expected(1), None);
        crowd.ended(1, 0, SYNC);
        assert_eq!(crowd.expected(1), None);
    }

    #[test]
    fn those_who_were_there_together_are_waited_for_no_longer_than_a_sync() {
        let mut crowd = Crowd::default();
        crowd.ended(1, 63, SYNC);
        assert_eq!(crowd.expected(63), Some((64, SYNC)));
        crowd.came(true);
        crowd.ended(64, 0, LONGEST * 10);
        assert_eq!(crowd.expected(1), Some((64, LONGEST)));
        assert_eq!(crowd.expected(64), None);
    }

    #[test]
    fn waits_in_vain_grow_rare_and_one_that_is_not_ends_that() {
        let mut crowd = Crowd::default();
        let mut batches_until_a_wait = || {
            crowd.ended(2, 0, SYNC);
            let batches = (0..).find(|_| crowd.expected(1).is_some());
            crowd.came(false);
            batches.unwrap()
        };
        assert_eq!([(); 9].map(|()| batches_until_a_wait()), [0, 1, 3, 7, 15, 31, 63, 64, 64]);
        crowd.came(true);
        assert!(crowd.expected(1).is_some());
    }
}
