//! Answers that threads of the other side wait for, each for one: they go there directly, past the mailbox.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Who waits, by ticket.
#[derive(Default)]
pub(super) struct Awaited {
    slots: Mutex<HashMap<u32, Arc<Slot>>>,
    /// How many there are, for a look without the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    end: Mutex<Option<End>>,
    ended: Condvar,
}

enum End {
    Answered(Vec<u8>),
    /// The answer is elsewhere.
    Released,
}

impl Awaited {
    /// Waits for the answer to `ticket`. `None` if it is elsewhere, or not there after `patience`.
    pub(super) fn wait(&self, ticket: u32, patience: Duration) -> Option<Vec<u8>> {
        let slot = Arc::<Slot>::default();
        match self.slots.lock().entry(ticket) {
            Entry::Vacant(free) => {
                free.insert(Arc::clone(&slot));
                self.count.fetch_add(1, Ordering::SeqCst);
            }
            // One is enough.
            Entry::Occupied(_) => return None,
        }
        let mut end = slot.end.lock();
        slot.ended.wait_while_for(&mut end, |end| end.is_none(), patience);
        if end.is_none() {
            drop(end);
            let nobody_answers = self.slot_of(ticket).is_some();
            end = slot.end.lock();
            if !nobody_answers {
                // Somebody does just now.
                slot.ended.wait_while(&mut end, |end| end.is_none());
            }
        }
        match end.take() {
            Some(End::Answered(record)) => Some(record),
            _ => None,
        }
    }

    /// Whoever waits for this answer, if anybody does: is to be answered by the caller.
    pub(super) fn who(&self, ticket: u32) -> Option<Waiter> {
        // Who is counted too late finds the answer in the mailbox.
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.slot_of(ticket).map(|slot| Waiter { slot, answered: false })
    }

    fn slot_of(&self, ticket: u32) -> Option<Arc<Slot>> {
        let slot = self.slots.lock().remove(&ticket);
        if slot.is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        slot
    }
}

/// Somebody who waits. Dropped without an answer, it is told to look elsewhere.
pub(super) struct Waiter {
    slot: Arc<Slot>,
    answered: bool,
}

impl Waiter {
    pub(super) fn answer(mut self, record: Vec<u8>) {
        self.answered = true;
        self.end(End::Answered(record));
    }

    fn end(&self, end: End) {
        *self.slot.end.lock() = Some(end);
        self.slot.ended.notify_one();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.answered {
            self.end(End::Released);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// Has somebody wait for ticket 7 while `act` runs.
    fn waiting(act: impl FnOnce(&Awaited)) -> Option<Vec<u8>> {
        let awaited = Awaited::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| awaited.wait(7, LONG));
            while awaited.count.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            act(&awaited);
            waiter.join().unwrap_or_else(|_| panic!("the waiter panicked"))
        })
    }

    fn answer(awaited: &Awaited, ticket: u32) -> bool {
        awaited.who(ticket).map(|waiter| waiter.answer(vec![1])).is_some()
    }

    #[test]
    fn an_answer_goes_to_its_waiter_alone_and_once() {
        let got = waiting(|awaited| {
            assert!(!answer(awaited, 8));
            assert!(answer(awaited, 7));
            assert!(!answer(awaited, 7));
        });
        assert_eq!(got, Some(vec![1]));
    }

    #[test]
    fn a_waiter_that_is_not_answered_is_released() {
        assert_eq!(waiting(|awaited| drop(awaited.who(7))), None);
    }

    #[test]
    fn a_second_waiter_does_not_wait() {
        let got = waiting(|awaited| {
            assert_eq!(awaited.wait(7, LONG), None);
            assert!(answer(awaited, 7));
        });
        assert_eq!(got, Some(vec![1]));
    }

    #[test]
    fn an_impatient_waiter_leaves_nothing_behind() {
        let awaited = Awaited::default();
        assert_eq!(awaited.wait(7, Duration::ZERO), None);
        assert!(!answer(&awaited, 7));
        assert_eq!(awaited.count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn an_answer_at_the_end_of_patience_is_had_or_left_never_both() {
        let awaited = Awaited::default();
        for _ in 0..2_000 {
            let (had, given) = std::thread::scope(|scope| {
                let waiter = scope.spawn(|| awaited.wait(7, Duration::from_micros(20)).is_some());
                let given = answer(&awaited, 7);
                (waiter.join().unwrap_or_else(|_| panic!("the waiter panicked")), given)
            });
            assert_eq!(had, given);
        }
    }
}
