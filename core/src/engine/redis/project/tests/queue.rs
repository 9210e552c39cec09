//! Waiting for a lock: in order, across processes, without spinning, past the dead.

use futures_util::future::join_all;

use super::*;
use crate::engine::redis::project::leases::ACQUIRE;
use zlink_test_servers::Way;

#[tokio::test]
async fn without_contention_each_step_is_one_call() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let locks = project.locks();
    let lease = take(&locks, "warm").await;
    renew(&lease).await;
    locks.attach(&lease.id()).await.unwrap().unwrap();
    release(&lease).await;
    let before = project.stats().commands_sent;
    let lease = locks.acquire("k", waiting(5_000)).await.unwrap().unwrap();
    assert_eq!(project.stats().commands_sent, before + 1);
    renew(&lease).await;
    assert_eq!(project.stats().commands_sent, before + 2);
    locks.attach(&lease.id()).await.unwrap().unwrap();
    assert_eq!(project.stats().commands_sent, before + 3);
    release(&lease).await;
    assert_eq!(project.stats().commands_sent, before + 4);
    assert_eq!(rig.proxy.seen("SUBSCRIBE"), 0, "nobody had to wait");
}

#[tokio::test]
async fn fifty_waiters_of_three_processes_come_in_order() {
    let rig = Rig::start(&[]);
    let processes = [rig.process(), rig.process(), rig.process()];
    let holder = take(&processes[0].locks(), "k").await;
    let order = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..50 {
        let locks = processes[number % 3].locks();
        let order = std::sync::Arc::clone(&order);
        waiters.push(tokio::spawn(async move {
            let lease = locks.acquire("k", waiting(10_000)).await.unwrap().expect("its turn comes");
            order.lock().push((number, lease.fencing_token()));
            release(&lease).await;
        }));
        until("it waits", || rig.waiters() == i64::try_from(number).unwrap() + 1).await;
    }
    release(&holder).await;
    for waiter in waiters {
        waiter.await.unwrap();
    }
    let order = order.lock();
    assert!(order.iter().map(|(number, _)| *number).eq(0..50), "{order:?}");
    assert!(order.is_sorted_by(|one, next| one.1 < next.1), "{order:?}");
    assert_eq!((rig.waiters(), rig.leases()), (0, 0));
    assert_eq!(rig.proxy.seen("SUBSCRIBE"), 3, "one connection for each process");
}

/// A newcomer finds the connection made, or the script there, before those who wait for either get to know it.
#[tokio::test]
async fn waiters_of_one_process_come_in_order_while_it_connects_and_sends_the_script() {
    let rig = Rig::start(&[]);
    let (warm, holding) = (rig.process(), rig.process());
    for (number, connected) in [false, true, false, true].into_iter().enumerate() {
        let key = format!("k{number}");
        let holder = take(&holding.locks(), &key).await;
        let process = if connected { warm.clone() } else { rig.process() };
        if connected {
            drop(process.locks().acquire(&*key, waiting(1)).await.unwrap());
        }
        rig.proxy.delay(Way::Replies, Duration::from_millis(15));
        rig.say(&["SCRIPT", "FLUSH"]);
        rig.proxy.cut_all();
        if connected {
            // Acquires that went out on the lost connection would find their place anew.
            state(&process).get(&*key).await.unwrap();
        }
        let order = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for number in 0..40 {
            let (locks, order, key) = (process.locks(), std::sync::Arc::clone(&order), key.clone());
            waiters.push(tokio::spawn(async move {
                let lease = locks.acquire(&*key, waiting(10_000)).await.unwrap().expect("its turn comes");
                order.lock().push(number);
                release(&lease).await;
            }));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        until("all wait", || rig.waiters() == 40).await;
        rig.proxy.delay(Way::Replies, Duration::ZERO);
        release(&holder).await;
        join_all(waiters).await.into_iter().for_each(|waiter| waiter.unwrap());
        assert!(order.lock().iter().copied().eq(0..40), "connected before: {connected}: {:?}", order.lock());
    }
}

#[tokio::test]
async fn waiters_that_find_no_server_all_hear_why() {
    let mut rig = Rig::start(&[]);
    rig.server.kill().unwrap();
    let process = rig.process_for("", 500);
    let locks = process.locks();
    let errors = join_all((0..5).map(|number| locks.acquire(format!("k{number}"), waiting(10_000)))).await;
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Unavailable, Outcome::NotApplied), "{error}");
        assert!(error.message().contains("closed the connection"), "{error}");
    }
}

/// Nor is a server that answers nobody asked once for each of them.
#[tokio::test]
async fn waiters_that_wait_in_turn_for_a_silent_server_share_its_connections() {
    let rig = Rig::start(&[]);
    rig.proxy.swallow();
    let process = rig.process_for("", 500);
    let locks = process.locks();
    let errors = join_all((0..16).map(|number| locks.acquire(format!("k{number}"), waiting(10_000)))).await;
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Timeout, Outcome::NotApplied), "{error}");
    }
    assert!(rig.proxy.accepted() < 10, "{} connections", rig.proxy.accepted());
}

#[tokio::test]
async fn who_waits_for_nothing_goes_behind_nobody_and_is_not_queued() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    assert!(other.locks().acquire("k", waiting(0)).await.unwrap().is_none());
    assert_eq!(rig.waiters(), 0);
    // A living waiter that is held up between the release and its turn.
    rig.ask("HSET", "w", &[&id(1), &place("7:default:k", 1)]);
    rig.ask("ZADD", "q", &["0", &place("7:default:k", 1)]);
    rig.ask("ZADD", "h", &[&(rig.now() + 100).to_string(), &id(1)]);
    release(&holder).await;
    assert!(other.locks().acquire("k", waiting(0)).await.unwrap().is_none(), "somebody is before it");
    until("the other one is dead", || rig.now() > rig.ask("ZSCORE", "h", &[&id(1)]).number() + 650).await;
    take(&other.locks(), "k").await;
    assert_eq!(rig.ask("HLEN", "w", &[]).number(), 0);
}

/// † A waiter that was killed is passed over, whoever looks first.
#[tokio::test]
async fn dead_heads_are_skipped_at_the_next_look_however_many_they_are() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    let long_ago = (rig.now() - 10_000).to_string();
    for number in 0..1_500 {
        let place = place("7:default:k", number);
        rig.ask("ZADD", "q", &["0", &place]);
        rig.ask("HSET", "w", &[&id(number), &place]);
        rig.ask("ZADD", "h", &[&long_ago, &id(number)]);
    }
    let waiter = begin(other.locks().acquire("k", waiting(5_000)));
    until("it waits", || rig.ask("HLEN", "w", &[]).number() == 1).await;
    rig.proxy.record();
    release(&holder).await;
    waiter.await.unwrap().unwrap().expect("its turn comes");
    let tries = rig.proxy.recorded().iter().filter(|request| calls(&ACQUIRE)(request)).count();
    assert!(tries <= 3, "{tries} tries, the last of them a second later");
    assert_eq!((rig.waiters(), rig.ask("ZCARD", "h", &[]).number()), (0, 0));
}

/// † Nobody knows when it was last heard: that was lost.
#[tokio::test]
async fn a_head_that_was_never_heard_is_dead() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    rig.ask("ZADD", "q", &["0", &place("7:default:k", 1)]);
    rig.ask("HSET", "w", &[&id(1), &place("7:default:k", 1)]);
    release(&take(&project.locks(), "k").await).await;
    assert_eq!((rig.waiters(), rig.ask("HLEN", "w", &[]).number()), (0, 0));
}

#[tokio::test]
async fn the_dead_leave_the_queues_of_other_locks_too() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let long_ago = (rig.now() - 10_000).to_string();
    for number in 0..300 {
        let place = place(&format!("7:default:other{number}"), number);
        rig.ask("ZADD", "q", &["0", &place]);
        rig.ask("HSET", "w", &[&id(number), &place]);
        rig.ask("ZADD", "h", &[&long_ago, &id(number)]);
    }
    release(&take(&project.locks(), "k").await).await;
    assert_eq!((rig.waiters(), rig.ask("HLEN", "w", &[]).number(), rig.ask("ZCARD", "h", &[]).number()), (0, 0, 0));
}

/// † A waiter whose heartbeats lie in the future, because the server's clock was set back, is not immortal.
#[tokio::test]
async fn a_dead_head_is_skipped_when_the_clock_was_set_back() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let place = place("7:default:k", 1);
    rig.ask("ZADD", "q", &["0", &place]);
    rig.ask("HSET", "w", &[&id(1), &place]);
    rig.ask("ZADD", "h", &[&(rig.now() + 3_600_000).to_string(), &id(1)]);
    let (lease, took) = timed(project.locks().acquire("k", waiting(5_000))).await;
    lease.unwrap().expect("the first in the queue is dead");
    assert!(took > Duration::from_millis(500), "{took:?}: it had its time all the same");
}

/// † Heartbeats keep a place; a waiter that came too late for one goes back to where it was.
#[tokio::test]
async fn a_place_outlives_a_pause_of_the_process() {
    let rig = Rig::start(&[]);
    let (one, other) = (rig.process(), rig.process());
    let holder = take(&one.locks(), "k").await;
    let first = begin(one.locks().acquire("k", waiting(10_000)));
    until("one waits", || rig.waiters() == 1).await;
    let second = begin(other.locks().acquire("k", waiting(10_000)));
    until("both wait", || rig.waiters() == 2).await;
    // As if the first had been silent for long.
    let places = rig.ask("ZRANGE", "q", &["0", "0"]);
    let place = places.items()[0].text();
    let id = &place["7:default:k".len() + 17..][..32];
    rig.ask("ZREM", "q", &[&place]);
    rig.ask("HDEL", "w", &[id]);
    rig.ask("ZREM", "h", &[id]);
    until("it is back", || rig.waiters() == 2).await;
    assert_eq!(rig.ask("ZRANGE", "q", &["0", "0"]).items()[0].text(), place);
    release(&holder).await;
    let lease = first.await.unwrap().unwrap().expect("it was first");
    assert!(!second.is_finished());
    release(&lease).await;
    second.await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn who_gives_up_leaves_the_queue() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let _holder = take(&project.locks(), "k").await;
    let (nothing, took) = timed(project.locks().acquire("k", waiting(700))).await;
    assert!(nothing.unwrap().is_none());
    assert!(took >= Duration::from_millis(700), "{took:?}");
    assert_eq!((rig.waiters(), rig.ask("HLEN", "w", &[]).number(), rig.ask("ZCARD", "h", &[]).number()), (0, 0, 0));
}

#[tokio::test]
async fn the_first_waiter_has_an_expired_lock_at_once() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    for round in 0..20 {
        let key = format!("k{round}");
        let holder = take(&project.locks(), &key).await;
        // Its last 450 ms: heartbeats alone would find the lock free after 600.
        let began = rig.now();
        let expires = began + 450;
        let raw = format!("{} {} {expires} 30000", holder.id(), holder.fencing_token());
        rig.ask("HSET", "l", &[&format!("7:default:{key}"), &raw]);
        let waiter = begin(project.locks().acquire(&*key, waiting(8_000)));
        until("it waits", || rig.waiters() == 1).await;
        let slow = rig.now() - began > 60;
        let lease = waiter.await.unwrap().unwrap().expect("the lease before it expires");
        let late = i64::try_from(lease.expires_at().unix_ms()).unwrap() - 30_000 - expires;
        if !slow && late < 90 {
            return;
        }
    }
    panic!("never");
}

#[tokio::test]
async fn who_waits_says_so_less_than_four_times_a_second() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let _holder = take(&project.locks(), "k").await;
    let waits = (0..20).map(|_| begin(project.locks().acquire("k", waiting(4_000))));
    let waits: Vec<_> = waits.collect();
    let listens = || rig.say(&["PUBSUB", "CHANNELS", "zlink-project:wake:*"]).items().len() == 1;
    until("all wait, and their process listens", || rig.waiters() == 20 && listens()).await;
    rig.proxy.record();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let sent = rig.proxy.recorded();
    let beats = sent.iter().filter(|request| calls(&ACQUIRE)(request)).count();
    assert!((20 * 7..20 * 4 * 3).contains(&beats), "{beats}");
    assert!(sent.len() <= beats + 1, "and nothing else");
    assert!(join_all(waits).await.into_iter().all(|wait| wait.unwrap().unwrap().is_none()));
}

#[tokio::test]
async fn a_waiter_is_refused_when_memory_is_full_and_a_release_is_not() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let holder = take(&project.locks(), "k").await;
    rig.say(&["CONFIG", "SET", "maxmemory", "1"]);
    for wait_ms in [0, 1_000] {
        let error = project.locks().acquire("free", waiting(wait_ms)).await.unwrap_err();
        assert_eq!(error.code(), crate::contract::Code::OutOfMemory);
    }
    let error = project.locks().acquire("k", waiting(1_000)).await.unwrap_err();
    assert_eq!(error.code(), crate::contract::Code::OutOfMemory);
    renew(&holder).await;
    release(&holder).await;
    assert_eq!((rig.leases(), rig.waiters(), rig.expiring()), (0, 0, 0));
}

fn id(number: usize) -> String {
    format!("{number:032x}")
}

fn place(lock: &str, number: usize) -> String {
    format!("{lock}\0{number:016}{}", id(number))
}
