//! An acquire that is given up counts no more, and waits no more, from that call on.

use zlink_test_servers::RedisServer;

use super::project::{acquire, left_out, number, projects_at};
use super::*;
use crate::contract::limits::MAX_LEASES;

/// The locks of an engine, from the other side.
struct Side {
    fixture: Fixture,
    locks: u32,
    holder: u32,
    ticket: u32,
    inline: bool,
}

impl Side {
    fn at(url: &str) -> Self {
        let projects = projects_at(url);
        let holder = projects.fixture.bridge.locks(projects.project, None).unwrap();
        let inline = projects.inline;
        Self { fixture: projects.fixture, locks: projects.locks, holder, ticket: 0, inline }
    }

    fn submit(&mut self, kind: u32, store: u32, fields: &[u8]) -> u32 {
        self.ticket += 1;
        self.fixture.bridge.submit_all(&row(kind, self.ticket, store, fields), Vec::new());
        self.ticket
    }

    fn wait_for_held(&mut self) -> u32 {
        self.submit(ask::LOCK_ACQUIRE, self.locks, &acquire("held", number(10_000.0)))
    }

    /// The kind of the answer to `ticket`, and its extra word. Others are passed over.
    async fn answer(&self, ticket: u32) -> (u32, u32) {
        let mut records = Vec::new();
        loop {
            self.fixture.bridge.collect(&mut records);
            if let Some(found) = Rows(&records).find(|row| row.ticket == ticket) {
                return (found.kind, found.extra);
            }
            tokio::time::timeout(Duration::from_secs(10), self.fixture.rung.notified()).await.unwrap();
        }
    }

    async fn ask(&mut self, kind: u32, store: u32, fields: &[u8]) -> (u32, u32) {
        let ticket = self.submit(kind, store, fields);
        self.answer(ticket).await
    }

    async fn take(&mut self, locks: u32, key: &str) -> u32 {
        let (kind, lease) = self.ask(ask::LOCK_ACQUIRE, locks, &acquire(key, left_out())).await;
        assert_eq!(kind, tell::LEASE, "{key}");
        lease
    }
}

async fn on_every_engine(test: impl AsyncFn(Side)) {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(&[]).unwrap();
    for url in ["memory:".to_owned(), format!("file:{}", folder.path().display()), server.url()] {
        test(Side::at(&url)).await;
    }
}

#[tokio::test]
async fn a_waiting_acquire_leaves_its_place_and_the_queue() {
    on_every_engine(async |mut side: Side| {
        let holder = side.holder;
        let held = side.take(holder, "held").await;
        for lease in 1..MAX_LEASES {
            let locks = side.locks;
            side.take(locks, &format!("k{lease}")).await;
        }
        for round in 0..50 {
            let waiting = side.wait_for_held();
            if round % 2 == 0 {
                // Not only before the driver has come to it.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            side.fixture.bridge.cancel(waiting);
            let next = side.wait_for_held();
            side.fixture.bridge.cancel(next);
            assert_eq!(side.answer(next).await.0, tell::CANCELLED);
        }
        if !side.inline {
            return;
        }
        let mut held = held;
        for _ in 0..50 {
            let waiting = side.wait_for_held();
            side.fixture.bridge.cancel(waiting);
            assert_eq!(side.ask(ask::LOCK_RELEASE, held, &[]).await.0, tell::DONE);
            // Nobody is before this one any more, whether the driver has heard of that or not.
            held = side.take(holder, "held").await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_granted_acquire_leaves_its_place_while_its_answer_is_unread() {
    on_every_engine(async |mut side: Side| {
        let locks = side.locks;
        for lease in 1..MAX_LEASES {
            side.take(locks, &format!("k{lease}")).await;
        }
        for round in 0..20 {
            let granted = side.submit(ask::LOCK_ACQUIRE, locks, &acquire(&format!("granted{round}"), left_out()));
            let deadline = crate::ambient::monotonic() + Duration::from_secs(10);
            while !side.fixture.bridge.has_records() {
                assert!(crate::ambient::monotonic() < deadline);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            side.fixture.bridge.cancel(granted);
            let lease = side.take(locks, &format!("next{round}")).await;
            assert_eq!(side.ask(ask::LOCK_RELEASE, lease, &[]).await.0, tell::DONE);
        }
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_was_read_keeps_its_place_when_its_ticket_is_used_again() {
    on_every_engine(async |mut side: Side| {
        let (holder, locks) = (side.holder, side.locks);
        side.take(holder, "held").await;
        for lease in 0..MAX_LEASES {
            side.ticket = 0;
            side.take(locks, &format!("k{lease}")).await;
        }
        // Another's read, and another's wait, under the ticket of all those leases.
        for (kind, store, fields) in
            [(ask::LOCK_ATTACH, locks, text("nobody")), (ask::LOCK_ACQUIRE, holder, acquire("held", number(10_000.0)))]
        {
            side.ticket = 0;
            let other = side.submit(kind, store, &fields);
            side.fixture.bridge.cancel(other);
            side.answer(other).await;
            assert_eq!(side.ask(ask::LOCK_ACQUIRE, locks, &acquire("one more", left_out())).await.0, tell::ERROR);
        }
    })
    .await;
}

#[test]
fn acquires_that_are_over_are_not_kept() {
    let mut side = Side::at("memory:");
    for _ in 0..10_000 {
        side.submit(ask::LOCK_ACQUIRE, side.locks, &acquire("k", left_out()));
        let mut records = Vec::new();
        side.fixture.bridge.collect(&mut records);
        let lease = Rows(&records).next().unwrap().extra;
        side.submit(ask::LOCK_RELEASE, lease, &[]);
        side.fixture.bridge.collect(&mut records);
        side.fixture.bridge.forget(lease);
    }
    assert!(side.fixture.bridge.remembered_acquires() < 200);
}
