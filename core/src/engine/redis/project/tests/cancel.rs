//! Acquires that nobody waits for any more leave nothing behind.

use std::sync::Arc;

use futures_util::future::join_all;

use super::*;
use crate::call::Call;
use crate::contract::{LeaseId, LockName, Name, Namespace};
use crate::engine::redis::client::Client;
use crate::engine::redis::config::RedisConfig;
use crate::engine::redis::native::Native;
use crate::engine::redis::project::RedisProject;
use crate::engine::redis::project::leases::{ACQUIRE, FORGET};
use zlink_test_servers::Action;

fn random_ms(most: u64) -> Duration {
    let [a, b] = ambient::random(&*ambient::system());
    Duration::from_micros(most * 1_000 * u64::from(u16::from_be_bytes([a, b])) / 65_536)
}

#[tokio::test]
async fn a_thousand_acquires_cancelled_at_random_moments_leave_nothing() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    for round in 0..10 {
        let attempts = (0..100).map(|number| {
            let key = format!("k{}", number % 25);
            let locks = project.locks();
            async move {
                let wait_ms = if number % 2 == 0 { 0 } else { 400 };
                let acquire = locks.acquire(key, waiting(wait_ms));
                let granted = tokio::time::timeout(random_ms(if round % 2 == 0 { 5 } else { 400 }), acquire).await;
                if let Ok(Ok(Some(lease))) = granted {
                    release(&lease).await;
                }
            }
        });
        join_all(attempts).await;
    }
    until("nothing is left", || rig.leases() == 0 && rig.waiters() == 0).await;
    assert_eq!((rig.ask("HLEN", "w", &[]).number(), rig.expiring()), (0, 0));
}

/// † The bytes of a cancelled acquire may come after the clean-up.
#[tokio::test]
async fn an_acquire_that_comes_late_gets_nothing() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    release(&take(&project.locks(), "k").await).await;
    for wait_ms in [0, 5_000] {
        rig.proxy.record();
        let sent = rig.proxy.once("EVALSHA", 0, Action::DelayReply(200));
        let acquire = begin(project.locks().acquire("k", waiting(wait_ms)));
        sent.notified().await;
        acquire.abort();
        let late = rig.proxy.recorded().into_iter().find(|request| calls(&ACQUIRE)(request)).unwrap();
        let id = acquirer(&late);
        until("it is cancelled", || rig.ask("EXISTS", &format!("c:{id}"), &[]).number() == 1).await;
        assert!(rig.ask("PTTL", &format!("c:{id}"), &[]).number() > 50_000);
        until("it is taken back", || rig.leases() == 0).await;
        let answer = rig.server.talk().unwrap().say(&late.args).unwrap();
        assert_eq!(answer.items()[0].text(), "cancelled");
        assert_eq!((rig.leases(), rig.waiters()), (0, 0));
    }
}

#[tokio::test]
async fn an_acquire_that_timed_out_is_taken_back_when_the_server_answers_again() {
    let rig = Rig::start(&[]);
    let project = rig.process_for("", 300);
    release(&take(&project.locks(), "k").await).await;
    rig.server.pause().unwrap();
    let error = project.locks().acquire("k", waiting(0)).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::Unknown));
    rig.server.resume().unwrap();
    until("it was cancelled", || rig.say(&["KEYS", &format!("{TAG}:c:*")]).items().len() == 1).await;
    assert_eq!(rig.leases(), 0);
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_makes_room_for_the_next() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    let first = begin(one.locks().acquire("k", waiting(10_000)));
    until("one waits", || rig.waiters() == 1).await;
    let second = begin(other.locks().acquire("k", waiting(10_000)));
    until("both wait", || rig.waiters() == 2).await;
    first.abort();
    until("the first is gone", || rig.waiters() == 1).await;
    release(&holder).await;
    second.await.unwrap().unwrap().expect("it is first now");
}

/// † Who leaves a queue while the lock is free wakes the next one.
#[tokio::test]
async fn leaving_a_free_lock_wakes_the_next() {
    let rig = Rig::start(&[]);
    let config = RedisConfig::parse(&rig.server.url()).unwrap();
    let id = ProjectId::new("w", "p").unwrap();
    let engine = RedisProject::new(Client::new(Arc::new(Native::new(config))), &id, ambient::system());
    let project = rig.process();
    release(&take(&project.locks(), "k").await).await;
    // Alive for some seconds, and does nothing.
    let leaver = LeaseId([1; 16]);
    let place = format!("7:default:k\0{:016}{leaver}", 1);
    rig.ask("ZADD", "q", &["0", &place]);
    rig.ask("HSET", "w", &[&leaver.to_string(), &place]);
    let alive = || rig.ask("ZADD", "h", &[&rig.now().to_string(), &leaver.to_string()]);
    alive();
    let waiter = begin(project.locks().acquire("k", waiting(5_000)));
    until("it waits behind it, and listens", || {
        alive();
        rig.waiters() == 2 && rig.say(&["PUBSUB", "CHANNELS", "zlink-project:wake:*"]).items().len() == 1
    })
    .await;
    assert!(!waiter.is_finished());
    let lock = LockName { namespace: Namespace::of_locks(), key: Name::new("k").unwrap() };
    let call = Call::writing(ambient::monotonic() + Duration::from_secs(5));
    engine.0.forget(&lock, leaver, &call).await.unwrap();
    waiter.await.unwrap().unwrap().expect("nobody is before it");
    let publishes = rig.say(&["INFO", "commandstats"]).text();
    assert!(publishes.contains("cmdstat_publish:calls=1,"), "{publishes}");
}

#[tokio::test]
async fn closing_waits_for_what_is_still_to_be_taken_back() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let _holder = take(&project.locks(), "k").await;
    rig.proxy.record();
    let waiter = begin(project.locks().acquire("k", waiting(10_000)));
    until("it waits", || rig.waiters() == 1).await;
    waiter.abort();
    assert!(waiter.await.is_err());
    project.close().await;
    assert_eq!(rig.waiters(), 0);
    assert_eq!(rig.proxy.recorded().iter().filter(|request| calls(&FORGET)(request)).count(), 2, "by hash, and by its text");
}
