//! The number of live entries is exact; expired ones leave in their own time.

use futures_util::future::join_all;

use super::*;
use crate::engine::redis::project::reap::REAP;

/// Entries `first..=last` named `k<number>`, made by the server itself; they expire at `expires`, or never.
fn fill(rig: &Rig, first: usize, last: usize, expires: Option<i64>) {
    const FILL: &str = "
        for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
            local name = '1:n:k' .. number
            redis.call('SET', KEYS[1] .. ':s:' .. name, string.rep('0', 15) .. '1' .. string.rep('0', 32) .. ARGV[3]
                .. string.rep('m', 16) .. '1')
            redis.call('ZADD', KEYS[1] .. ':x', tonumber(ARGV[3]) == 0 and '+inf' or ARGV[3], name)
        end
        redis.call('SET', KEYS[1] .. ':f', '1')";
    let expires = format!("{:016}", expires.unwrap_or(0));
    let (first, last) = (first.to_string(), last.to_string());
    let filled = rig.say(&["EVAL", FILL, "1", TAG, &first, &last, &expires]);
    assert_eq!(filled, Value::Nil);
}

const FULL: usize = 100_000;

#[tokio::test]
async fn the_last_place_is_one_persons() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let state = state(&project);
    fill(&rig, 1, FULL - 1, None);
    let racers = join_all((0..50).map(|number| state.set(format!("new{number}"), "1", StateWriteOptions::default()))).await;
    let won = racers.iter().filter(|result| matches!(result, Ok(StateSetResult::Stored(_)))).count();
    let lost = racers.iter().filter(|result| matches!(result, Ok(StateSetResult::LimitReached))).count();
    assert_eq!((won, lost), (1, 49));
    assert_eq!(rig.ask("ZCARD", "x", &[]).number(), 100_000);

    // Updates, and conflicts before the limit.
    assert_eq!(set(&state, "k7", "2").await.version, 2);
    let expecting = |expected| StateWriteOptions { expected_version: Some(expected), ttl_seconds: None };
    assert_eq!(state.set("more", "1", expecting(1)).await.unwrap(), StateSetResult::Conflict);
    assert_eq!(state.set("more", "1", expecting(0)).await.unwrap(), StateSetResult::LimitReached);
    assert_eq!(state.set("k7", "1", expecting(0)).await.unwrap(), StateSetResult::Conflict);

    // A deletion makes room for one, and so does an expiry.
    assert_eq!(state.delete("k1", None).await.unwrap(), StateDeleteResult::Deleted);
    set(&state, "more", "1").await;
    assert_eq!(state.set("even-more", "1", expecting(0)).await.unwrap(), StateSetResult::LimitReached);
    let expires = rig.now() + 400;
    fill(&rig, 2, 2, Some(expires));
    assert_eq!(rig.ask("ZCOUNT", "x", &["-inf", "+inf"]).number(), 100_000);
    let end = ambient::monotonic() + Duration::from_secs(5);
    let entry = loop {
        match state.set("even-more", "1", expecting(0)).await.unwrap() {
            StateSetResult::Stored(entry) => break entry,
            _ => assert!(ambient::monotonic() < end),
        }
    };
    let created = i64::try_from(entry.created_at.unix_ms()).unwrap();
    assert!(created >= expires, "{created}, not before {expires}");
    assert_eq!(state.set("again", "1", expecting(0)).await.unwrap(), StateSetResult::LimitReached);
}

#[tokio::test]
async fn a_hundred_thousand_expired_entries_do_not_count_and_leave_in_small_steps() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let state = state(&project);
    fill(&rig, 1, FULL, Some(rig.now() - 1));
    rig.proxy.record();
    assert_eq!(set(&state, "k1", "2").await.version, 1, "what expired is absent");
    assert_eq!(state.get("k2").await.unwrap(), None);
    assert_eq!(state.delete("k2", Some(1)).await.unwrap(), StateDeleteResult::Conflict);
    assert_eq!(state.delete("k2", None).await.unwrap(), StateDeleteResult::Missing);
    let deadline = ambient::monotonic() + Duration::from_secs(60);
    while rig.ask("ZCARD", "x", &[]).number() > 1 {
        assert!(ambient::monotonic() < deadline, "they do not leave");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(rig.say(&["DBSIZE"]).number(), 3, "one entry, the names and the format");
    let steps = rig.proxy.recorded();
    let steps: Vec<usize> = steps.iter().filter(|step| calls(&REAP)(step)).map(|step| step.args.len()).collect();
    assert!(steps.len() >= FULL / 32 && steps.iter().all(|length| *length <= 3 + 2 + 2 * 32), "{} steps", steps.len());
}

/// † An entry that is written anew between the two halves of a step stays.
#[tokio::test]
async fn what_was_written_again_is_not_removed() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let state = state(&project);
    fill(&rig, 1, 3, Some(rig.now() - 1));
    rig.proxy.judge({
        let (port, done) = (rig.server.port(), AtomicUsize::new(0));
        move |request| {
            if calls(&REAP)(request) && done.fetch_add(1, Ordering::SeqCst) == 0 {
                let mut talk = zlink_test_servers::Talk::to(("127.0.0.1", port)).unwrap();
                talk.say(&["ZADD", &format!("{TAG}:x"), "+inf", "1:n:k2"]).unwrap();
            }
            zlink_test_servers::Action::Pass
        }
    });
    set(&state, "other", "1").await;
    until("the others are gone", || rig.ask("ZCARD", "x", &[]).number() == 2).await;
    assert_eq!(rig.ask("EXISTS", "s:1:n:k2", &[]).number(), 1);
    assert_eq!(rig.ask("EXISTS", "s:1:n:k1", &[]).number() + rig.ask("EXISTS", "s:1:n:k3", &[]).number(), 0);
}

/// † Native expiry is a net under what is left behind, and takes nothing away that still counts.
#[tokio::test]
async fn native_expiry_comes_later_than_ours_and_only_when_nothing_is_left() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let state = state(&project);
    let expiring = |ttl| StateWriteOptions { ttl_seconds: Some(ttl), expected_version: None };
    let end = |key: &str| rig.ask("PEXPIRETIME", key, &[]).number();
    let long = stored(state.set("long", "1", expiring(500)).await).expires_at.unwrap().unix_ms();
    let long = i64::try_from(long).unwrap() + 60_000;
    assert_eq!((end("s:1:n:long"), end("x")), (long, long));
    stored(state.set("short", "1", expiring(5)).await);
    assert_eq!(end("x"), long);
    set(&state, "durable", "1").await;
    assert_eq!((end("s:1:n:durable"), end("x")), (-1, -1));
    stored(state.set("short", "1", expiring(5)).await);
    assert_eq!(end("x"), -1);
    set(&state, "long", "2").await;
    assert_eq!(end("s:1:n:long"), -1, "it does not expire any more");
    stored(state.set("durable", "1", expiring(5)).await);
    assert_eq!(end("x"), -1, "long is durable now");
    assert_eq!(state.delete("long", None).await.unwrap(), StateDeleteResult::Deleted);
    let last = stored(state.set("durable", "1", expiring(50)).await).expires_at.unwrap().unix_ms();
    assert_eq!(end("x"), i64::try_from(last).unwrap() + 60_000);
}

#[tokio::test]
async fn one_call_each_and_refused_whole_when_memory_is_full() {
    let rig = Rig::start(&[]);
    let project = rig.process();
    let state = state(&project);
    set(&state, "k", "1").await;
    state.get("k").await.unwrap();
    assert_eq!(state.delete("k", None).await.unwrap(), StateDeleteResult::Deleted);
    for key in ["k", "deleted"] {
        rig.proxy.record();
        set(&state, key, "1").await;
        assert_eq!(rig.proxy.recorded().len(), 1);
    }
    assert_eq!(rig.proxy.recorded().len(), 0);
    state.get("k").await.unwrap().unwrap();
    let names: Vec<String> = rig.proxy.recorded().iter().map(zlink_test_servers::Request::name).collect();
    assert_eq!(names, ["MULTI", "TIME", "GET", "GET", "EXEC"], "one round trip");

    rig.say(&["CONFIG", "SET", "maxmemory", "1"]);
    for key in ["k", "new"] {
        let error = state.set(key, "2", StateWriteOptions::default()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome()), (Code::OutOfMemory, Outcome::NotApplied));
    }
    assert_eq!(state.get("k").await.unwrap().unwrap().value.as_str(), "1");
    assert_eq!(rig.ask("ZCARD", "x", &[]).number(), 2);
    assert_eq!(state.delete("deleted", Some(1)).await.unwrap(), StateDeleteResult::Deleted, "which frees memory");
    assert_eq!(rig.ask("ZCARD", "x", &[]).number(), 1);
}
