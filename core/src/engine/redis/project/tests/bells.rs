//! The connection that wakes who waits.

use super::*;
use crate::engine::redis::project::leases::ACQUIRE;
use zlink_test_servers::Action;

fn listeners(rig: &Rig) -> usize {
    rig.say(&["PUBSUB", "CHANNELS", "zlink-project:wake:*"]).items().len()
}

#[tokio::test]
async fn a_release_is_told_to_the_first_alone_and_is_seen_at_once() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let mut holder = take(&one.locks(), "k").await;
    // Whoever waits behind the first is in two other processes.
    let third = rig.process();
    let mut late = Vec::new();
    for round in 0..20 {
        let (next, behind) = if round % 2 == 0 { (&other, &one) } else { (&one, &other) };
        let waiter = begin(next.locks().acquire("k", waiting(10_000)));
        until("the first waits", || rig.waiters() == 1).await;
        let more = [&third, behind].map(|process| begin(process.locks().acquire("k", waiting(10_000))));
        until("three wait, and their processes listen", || rig.waiters() == 3 && listeners(&rig) == 3).await;
        // Right behind a heartbeat, so that the next one is far.
        let first = rig.ask("ZRANGE", "q", &["0", "0"]).items()[0].text();
        rig.proxy.record();
        until("it was heard", || {
            let sent = rig.proxy.recorded();
            sent.iter().any(|request| calls(&ACQUIRE)(request) && first.contains(&acquirer(request)))
        })
        .await;
        let (lease, took) = timed(async {
            release(&holder).await;
            waiter.await.unwrap().unwrap().expect("it is first")
        })
        .await;
        late.push(took);
        more.iter().for_each(tokio::task::JoinHandle::abort);
        until("the others are gone", || rig.waiters() == 0).await;
        holder = lease;
    }
    let stats = rig.say(&["INFO", "commandstats"]).text();
    assert!(stats.contains("cmdstat_publish:calls=20,"), "{stats}");
    late.sort();
    assert!(late[4] < Duration::from_millis(150), "a heartbeat would take more, always: {late:?}");
}

/// † What is published before the subscription is confirmed is lost: who waits looks again once it is.
#[tokio::test]
async fn a_subscription_that_is_confirmed_makes_everybody_look() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    let asked = rig.proxy.once("SUBSCRIBE", 0, Action::CutBefore);
    let waiter = begin(other.locks().acquire("k", waiting(10_000)));
    asked.notified().await;
    until("it subscribed all the same", || listeners(&rig) == 1).await;
    release(&holder).await;
    waiter.await.unwrap().unwrap().expect("its turn comes");

    // Whoever began to wait before looks again then, and not only at the next heartbeat.
    for round in 0.. {
        let fresh = rig.process();
        let key = format!("k{round}");
        let _holder = take(&fresh.locks(), &key).await;
        rig.proxy.record();
        let began = ambient::monotonic();
        let waiter = begin(fresh.locks().acquire(&*key, waiting(10_000)));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let took = ambient::monotonic() - began;
        let sent = rig.proxy.recorded();
        waiter.abort();
        if took < Duration::from_millis(290) {
            let tries = sent.iter().filter(|request| calls(&ACQUIRE)(request)).count();
            assert_eq!(tries, 2);
            return;
        }
        assert!(round < 20, "the machine is too slow");
    }
}

#[tokio::test]
async fn a_wake_up_that_is_lost_costs_a_heartbeat() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    rig.proxy.judge(|request| match request.name().as_str() {
        "SUBSCRIBE" => Action::line("-NOPERM this user has no permissions to access the channel"),
        _ => Action::Pass,
    });
    for _ in 0..3 {
        let holder = take(&one.locks(), "k").await;
        let waiter = begin(other.locks().acquire("k", waiting(5_000)));
        until("it waits", || rig.waiters() == 1).await;
        release(&holder).await;
        release(&waiter.await.unwrap().unwrap().expect("its turn comes")).await;
    }
    assert_eq!(rig.proxy.seen("SUBSCRIBE"), 1);
}

#[tokio::test]
async fn a_connection_that_was_lost_is_made_again_while_anybody_waits() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    let waiter = begin(other.locks().acquire("k", waiting(10_000)));
    until("it listens", || listeners(&rig) == 1).await;
    for _ in 0..3 {
        assert_eq!(rig.say(&["CLIENT", "KILL", "TYPE", "pubsub"]).number(), 1);
        until("it listens again", || listeners(&rig) == 1).await;
    }
    // One to another server, which the other lines left, is of no use.
    rig.proxy.cut_all();
    until("it listens again", || listeners(&rig) == 1 && rig.proxy.open() >= 2).await;
    release(&holder).await;
    release(&waiter.await.unwrap().unwrap().expect("its turn comes")).await;
    rig.say(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(listeners(&rig), 0, "nobody waits");
    other.close().await;
    one.close().await;
    until("all is closed", || rig.proxy.open() == 0).await;
}
