//! The short way to a free lock, and the long way: they do the same.

use super::*;

/// What lies in the project about a lock: its lease without what differs from one to the next, and when it is to expire.
fn about(rig: &Rig, lease: &LockLease) -> [String; 3] {
    let lock = format!("7:default:{}", lease.key());
    let raw = rig.ask("HGET", "l", &[&lock]).text();
    let expires = lease.expires_at().unix_ms().to_string();
    let shape = raw.replace(&lease.id(), "ID").replace(&lease.fencing_token().to_string(), "TOKEN").replace(&expires, "EXPIRES");
    let lock_of_id = rig.ask("HGET", "l", &[&lease.id()]).text().replace(&lock, "LOCK");
    [shape, lock_of_id, rig.ask("ZSCORE", "d", &[&lock]).text().replace(&expires, "EXPIRES")]
}

/// Somebody who waits for another lock, alive for long: no short way leads past it.
fn somebody_waits(rig: &Rig) {
    let (id, long) = ("f".repeat(32), (rig.now() + 600).to_string());
    let place = format!("7:default:theirs\0{:016}{id}", 1);
    rig.ask("ZADD", "q", &["0", &place]);
    rig.ask("HSET", "w", &[&id, &place]);
    rig.ask("ZADD", "h", &[&long, &id]);
}

#[tokio::test]
async fn both_ways_leave_the_same_behind() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let locks = project.locks();
    // The first of all finds no layout, and goes the long way.
    let first = take(&locks, "first").await;
    let short = take(&locks, "short").await;
    somebody_waits(&rig);
    let long = take(&locks, "long").await;
    let all = [&first, &short, &long];
    assert!(all.is_sorted_by_key(|lease| lease.fencing_token()));
    assert_eq!(
        all.map(|lease| about(&rig, lease)),
        [(); 3].map(|()| ["ID TOKEN EXPIRES 30000", "LOCK", "EXPIRES"].map(String::from))
    );
    assert_eq!(rig.ask("GET", "t", &[]).text(), long.fencing_token().to_string());
    release(&long).await;
    rig.say(&["DEL", &format!("{TAG}:q"), &format!("{TAG}:w"), &format!("{TAG}:h")]);
    release(&short).await;
    assert_eq!((rig.leases(), rig.expiring()), (1, 1));
    release(&first).await;
    assert_eq!((rig.leases(), rig.expiring(), rig.ask("HLEN", "l", &[]).number()), (0, 0, 1));
}

#[tokio::test]
async fn an_expired_lease_is_lost_on_both_ways() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let locks = project.locks();
    for long in [false, true] {
        let lease = take(&locks, "k").await;
        let raw = format!("{} {} {} 30000", lease.id(), lease.fencing_token(), rig.now());
        rig.ask("HSET", "l", &["7:default:k", &raw]);
        if long {
            somebody_waits(&rig);
        }
        assert_eq!(lease.renew(None).await.unwrap(), RenewResult::Lost);
        assert!(locks.attach(&lease.id()).await.unwrap().is_none());
        assert_eq!(lease.release().await.unwrap(), ReleaseResult::Lost);
        let next = take(&locks, "k").await;
        assert!(next.fencing_token() > lease.fencing_token());
        release(&next).await;
    }
}

#[tokio::test]
async fn the_expired_leases_of_other_locks_leave_with_the_next_acquire() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    for number in 0..10 {
        let lease = take(&project.locks(), &format!("old{number}")).await;
        let (lock, now) = (format!("7:default:{}", lease.key()), rig.now().to_string());
        rig.ask("HSET", "l", &[&lock, &format!("{} {} {now} 30000", lease.id(), lease.fencing_token())]);
        rig.ask("ZADD", "d", &[&now, &lock]);
        let next = take(&project.locks(), "k").await;
        assert!(next.fencing_token() > lease.fencing_token());
        assert_eq!((rig.leases(), rig.expiring()), (1, 1));
        release(&next).await;
    }
}

/// † The short way does not renew the native expiry of the keys with every lease.
#[tokio::test]
async fn what_holds_leases_outlives_them_and_then_goes_by_itself() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let locks = project.locks();
    let ends = || ["l", "d"].map(|key| rig.ask("PEXPIRETIME", key, &[]).number());
    let outlived = |lease: &LockLease| {
        let expires = i64::try_from(lease.expires_at().unix_ms()).unwrap();
        assert!(ends().iter().all(|end| (expires + 5_000..=expires + 120_000).contains(end)), "{:?} {expires}", ends());
    };
    let longest = || LockOptions { lease_ms: 60_000, ..LockOptions::default() };
    let renewed = take(&locks, "renewed").await;
    // What is left of it is just enough, not enough, next to nothing, or unknown.
    for left in [Some(72_000), Some(62_000), Some(2_000), None] {
        for renews in [false, true] {
            let end = (rig.now() + left.unwrap_or(5_000)).to_string();
            for key in ["l", "d"] {
                rig.ask("PEXPIREAT", key, &[&end]);
            }
            rig.ask("HSET", "l", &["", left.map_or("?", |_| &end)]);
            if renews {
                assert!(matches!(renewed.renew(Some(60_000)).await.unwrap(), RenewResult::Renewed { .. }));
                outlived(&renewed);
            } else {
                let lease = locks.acquire("k", longest()).await.unwrap().unwrap();
                outlived(&lease);
                release(&lease).await;
            }
        }
    }
    release(&renewed).await;
    // Empty, they keep their expiry for whoever comes next.
    for _ in 0..3 {
        let lease = take(&locks, "again").await;
        outlived(&lease);
        release(&lease).await;
    }
    assert_eq!(["t", "f"].map(|key| rig.ask("PTTL", key, &[]).number()), [-1, -1], "the last token never goes");
}
