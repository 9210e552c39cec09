//! What a run chooses from: a random generator, or bytes that somebody else chose.

use std::ops::{Bound, RangeBounds};

/// Where a run's choices come from.
#[derive(Debug)]
pub enum Choices<'a> {
    /// A generator with a seed.
    Random(fastrand::Rng),
    /// These bytes, from the first on; the run is over when they are used up. Close inputs make runs that are close.
    Given(&'a [u8]),
}

impl Choices<'_> {
    /// The choices of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self::Random(fastrand::Rng::with_seed(seed))
    }

    /// Whether every byte was used.
    pub(crate) fn are_over(&self) -> bool {
        matches!(self, Self::Given([]))
    }

    /// Whether waiting is worth it: a run of given bytes is one of very many.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self, Self::Random(_))
    }

    pub(crate) fn u64(&mut self, range: impl RangeBounds<u64>) -> u64 {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(from) => from + 1,
            Bound::Unbounded => 0,
        };
        let last = match range.end_bound() {
            Bound::Included(last) => *last,
            Bound::Excluded(end) => end - 1,
            Bound::Unbounded => u64::MAX,
        };
        match self {
            Self::Random(random) => random.u64(from..=last),
            Self::Given(bytes) => {
                // As many bytes as the range needs, so that every byte counts.
                let count = (usize::try_from(u64::BITS - (last - from).leading_zeros()).unwrap_or(64)).div_ceil(8);
                let (now, later) = bytes.split_at(count.min(bytes.len()));
                *bytes = later;
                let number = now.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                from + (last - from).checked_add(1).map_or(number, |choices| number % choices)
            }
        }
    }

    pub(crate) fn usize(&mut self, range: impl RangeBounds<usize>) -> usize {
        let wide = |bound: Bound<&usize>| bound.map(|edge| u64::try_from(*edge).unwrap_or(u64::MAX));
        usize::try_from(self.u64((wide(range.start_bound()), wide(range.end_bound())))).unwrap_or(usize::MAX)
    }

    pub(crate) fn u32(&mut self, range: impl RangeBounds<u32>) -> u32 {
        let wide = |bound: Bound<&u32>| bound.map(|edge| u64::from(*edge));
        u32::try_from(self.u64((wide(range.start_bound()), wide(range.end_bound())))).unwrap_or(u32::MAX)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::try_from(self.u32(..256)).unwrap_or(u8::MAX)
    }

    pub(crate) fn bool(&mut self) -> bool {
        self.u32(..2) == 1
    }

    pub(crate) fn choice<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.usize(..from.len())) }
    }

    /// Different ones, `count` at most.
    pub(crate) fn some<T: Copy>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = from.to_vec();
        (0..count.min(left.len())).map(|_| left.swap_remove(self.usize(..left.len()))).collect()
    }
}
