//! Who polls the driver: its task on our own runtime, or a thread that has just submitted something and so spares the task a
//! wake-up, one at a time.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::driver::Driver;
use crate::background;

/// So often a thread that is not ours polls in one go at most, while others keep waking the driver.
const TURNS_OF_OTHERS: usize = 4;

/// The driver of one bridge.
pub(super) struct Turns {
    driver: Mutex<Option<Driver>>,
    alarm: Arc<Alarm>,
    /// Rings it.
    waker: Waker,
    task: Once,
}

/// Wakes whoever polls, or the task.
struct Alarm {
    state: AtomicU8,
    task: AtomicWaker,
}

/// Nobody polls.
const IDLE: u8 = 0;
/// Somebody polls.
const POLLING: u8 = 1;
/// Somebody polls, and is to do so once more.
const AGAIN: u8 = 2;

impl Turns {
    pub(super) fn new(driver: Driver) -> Arc<Self> {
        let alarm = Arc::new(Alarm { state: AtomicU8::new(IDLE), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&alarm));
        Arc::new(Self { driver: Mutex::new(Some(driver)), alarm, waker, task: Once::new() })
    }

    /// Has the task poll.
    pub(super) fn call(self: &Arc<Self>) {
        self.begin();
        self.waker.wake_by_ref();
    }

    /// Polls on this thread, unless another one is at it, which then does so once more.
    pub(super) fn take(self: &Arc<Self>) {
        self.begin();
        self.poll(TURNS_OF_OTHERS);
    }

    /// Makes the task look whether it has ended.
    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// The task starts with the first operation that needs it.
    fn begin(self: &Arc<Self>) {
        self.task.call_once(|| {
            let turns = Arc::clone(self);
            background::spawn(poll_fn(move |context| {
                turns.alarm.task.register(context.waker());
                turns.poll(usize::MAX);
                turns.ended()
            }));
        });
    }

    fn poll(&self, most: usize) {
        if !self.alarm.begin() {
            return;
        }
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..most {
            if let Some(driver) = &mut *self.driver.lock() {
                driver.poll(&mut context);
            }
            if self.alarm.end() {
                return;
            }
        }
        self.alarm.leave();
    }

    /// Drops the driver when its bridge is gone.
    fn ended(&self) -> Poll<()> {
        let mut driver = self.driver.lock();
        if driver.as_ref().is_some_and(|driver| !driver.has_ended()) {
            return Poll::Pending;
        }
        let ended = driver.take();
        drop(driver);
        drop(ended);
        Poll::Ready(())
    }
}

impl Alarm {
    /// Whether it is the caller's turn; if not, whoever's it is polls once more.
    fn begin(&self) -> bool {
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| Some(if state == IDLE { POLLING } else { AGAIN }))
            == Ok(IDLE)
    }

    /// Whether the turn is over.
    fn end(&self) -> bool {
        let over = self.state.compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !over {
            self.state.store(POLLING, Ordering::Release);
        }
        over
    }

    /// Leaves what is to be done once more to the task.
    fn leave(&self) {
        self.state.store(IDLE, Ordering::Release);
        self.task.wake();
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let polled = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| (state != IDLE).then_some(AGAIN));
        if polled.is_err() {
            self.task.wake();
        }
    }
}
