//! Fencing tokens grow whatever becomes of the data.

use super::*;

async fn token(project: &Project) -> u64 {
    let lease = take(&project.locks(), "k").await;
    release(&lease).await;
    lease.fencing_token()
}

/// Sets the last token so far ahead that the clock alone cannot make up for its loss.
fn ahead(rig: &Rig) -> u64 {
    let ahead = u64::try_from(rig.now()).unwrap() * 1_000 + 3_600_000_000;
    rig.ask("SET", "t", &[&ahead.to_string()]);
    ahead
}

#[tokio::test]
async fn a_token_is_never_behind_the_clock_nor_behind_the_last_one() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let before = u64::try_from(rig.now()).unwrap() * 1_000;
    let first = token(&project).await;
    assert!(first >= before && first < before + 60_000_000);
    let ahead = ahead(&rig);
    assert_eq!(token(&project).await, ahead + 1);
    assert_eq!(token(&project).await, ahead + 2);
}

/// † The counter is gone while the lock is held; what is left is the lease itself.
#[tokio::test]
async fn the_lease_alone_keeps_the_token_across_release_and_expiry() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let keys = ["f", "x", "d", "q", "w", "h", "t"].map(|key| format!("{TAG}:{key}"));
    let del: Vec<&str> = std::iter::once("DEL").chain(keys.iter().map(String::as_str)).collect();

    ahead(&rig);
    let lease = take(&project.locks(), "k").await;
    rig.ask("DEL", "t", &[]);
    release(&lease).await;
    assert_eq!(token(&project).await, lease.fencing_token() + 1, "released");

    // The counter has begun anew, with another lock.
    ahead(&rig);
    let lease = take(&project.locks(), "k").await;
    rig.ask("DEL", "t", &[]);
    release(&take(&project.locks(), "other").await).await;
    release(&lease).await;
    assert_eq!(token(&project).await, lease.fencing_token() + 1, "released behind another");

    // It expires: in what is left of it, since nobody waits for five seconds here.
    for sweeper in ["k", "other"] {
        ahead(&rig);
        let lease = take(&project.locks(), "k").await;
        rig.say(&del);
        let raw = format!("{} {} {} 30000", lease.id(), lease.fencing_token(), rig.now());
        rig.ask("HSET", "l", &["7:default:k", &raw]);
        if sweeper == "other" {
            rig.ask("ZADD", "d", &[&rig.now().to_string(), "7:default:k"]);
        }
        let next = take(&project.locks(), sweeper).await;
        assert_eq!(next.fencing_token(), lease.fencing_token() + 1, "expired, found by {sweeper}");
        release(&next).await;
    }
}

#[tokio::test]
async fn tokens_grow_when_everything_was_deleted() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let mut last = 0;
    for command in [&["FLUSHALL"][..], &["FLUSHDB"], &["DEL", "zlink-project{1:w:p}:t"]] {
        let next = token(&project).await;
        assert!(next > last);
        last = next;
        rig.say(command);
    }
    assert!(token(&project).await > last);
}

#[tokio::test]
async fn tokens_that_are_used_up_are_an_error_and_never_a_wrong_number() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    rig.ask("SET", "t", &[&(limits::MAX_SAFE_INTEGER - 1).to_string()]);
    assert_eq!(token(&project).await, limits::MAX_SAFE_INTEGER);
    for last in ["9007199254740991", "9007199254740992", "9999999999999999"] {
        rig.ask("SET", "t", &[last]);
        let error = project.locks().acquire("k", LockOptions::default()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Internal, Outcome::NotApplied));
        assert_eq!((rig.leases(), rig.ask("GET", "t", &[]).text()), (0, last.to_owned()));
    }
    for foreign in ["", "x", "-1", "1.5", "1e15", "99999999999999999999"] {
        rig.ask("SET", "t", &[foreign]);
        let error = project.locks().acquire("k", LockOptions::default()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::Incompatible, Outcome::NotApplied), "{foreign}");
    }
}

#[tokio::test]
async fn tokens_grow_across_a_restart_and_a_promotion_that_lost_the_last_writes() {
    let settings = zlink_test_servers::Settings { aof: true, ..Default::default() };
    let server = RedisServer::with(settings).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    let mut rig = Rig { server, proxy };
    let project = rig.process();
    let ahead = ahead(&rig);
    assert_eq!(token(&project).await, ahead + 1);
    rig.server.kill().unwrap();
    rig.server.restart().unwrap();
    assert_eq!(token(&project).await, ahead + 2);

    rig.ask("DEL", "t", &[]);
    let settings = zlink_test_servers::Settings { replica_of: Some(rig.server.port()), ..Default::default() };
    let replica = RedisServer::with(settings).unwrap();
    until("the replica is there", || rig.say(&["INFO", "replication"]).text().contains("state=online")).await;
    let before = token(&project).await;
    until("the replica has it", || replica.say(&["GET", &format!("{TAG}:t")]).text() == before.to_string()).await;
    replica.say(&["REPLICAOF", "NO", "ONE"]);
    let mut last = before;
    for _ in 0..100 {
        last = token(&project).await;
    }
    assert_eq!(replica.say(&["GET", &format!("{TAG}:t")]).text(), before.to_string(), "it missed them");
    rig.proxy.retarget(replica.port());
    rig.proxy.cut_all();
    assert!(token(&project).await > last);
}
