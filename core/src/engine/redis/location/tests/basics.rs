use super::rig::*;
use crate::contract::*;

#[tokio::test]
async fn reads_see_value_version_expiry_and_clock_of_one_instant() {
    let rig = Rig::new().await;
    assert!(matches!(rig.store.read(key("a")).await.unwrap(), ReadResult::Missing { .. }));
    let version = rig.put("a", "1").await;
    let ReadResult::Found(value) = rig.store.read(key("a")).await.unwrap() else { panic!() };
    assert_eq!((&value.bytes[..], &value.version, value.expires_at), (&b"1"[..], &version, None));

    let request = WriteRequest::new().mutation(Mutation::put_for(key("a"), vec![0, 255], ms(60_000)));
    let (_, committed) = applied(rig.store.write(request).await);
    let ReadResult::Found(value) = rig.store.read(key("a")).await.unwrap() else { panic!() };
    assert_eq!(value.expires_at, Some(committed.plus(ms(60_000))));
    assert!(value.store_now >= committed && value.version != version);

    rig.put("a", "").await;
    let ReadResult::Found(value) = rig.store.read(key("a")).await.unwrap() else { panic!() };
    assert_eq!((value.bytes.len(), value.expires_at), (0, None), "a put without retention is durable");
    assert_eq!(rig.raw::<i64>("PTTL {p}:r:a").await, -1);
}

#[tokio::test]
async fn an_expired_record_is_missing_everywhere() {
    let rig = Rig::new().await;
    put_for(&rig.store, "a", "1", 30).await;
    until(async || rig.get("a").await.is_none()).await;
    let missing = WriteRequest::new().condition(Condition::Missing { key: key("a") });
    applied(rig.store.write(missing).await);
    assert!(page(&rig.store, ScanRequest::new("", 10)).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn conditions_decide_about_the_whole_commit() {
    let rig = Rig::new().await;
    let first = rig.put("a", "1").await;
    let write = |condition: Condition| {
        let request = WriteRequest::new().condition(condition).mutation(Mutation::put(key("b"), "x"));
        rig.store.write(request.mutation(Mutation::delete(key("a"))))
    };
    assert!(conflicts(write(Condition::Missing { key: key("a") }).await));
    assert!(conflicts(write(Condition::Version { key: key("a"), expected: Version::new("else").unwrap() }).await));
    assert!(conflicts(write(Condition::Version { key: key("c"), expected: first.clone() }).await));
    assert_eq!((rig.get("a").await, rig.get("b").await), (Some("1".into()), None), "nothing changed");
    applied(write(Condition::Version { key: key("a"), expected: first.clone() }).await);
    assert_eq!((rig.get("a").await, rig.get("b").await), (None, Some("x".into())));
    let again = rig.put("a", "1").await;
    assert_ne!(first, again);
    assert!(conflicts(write(Condition::Version { key: key("a"), expected: first }).await), "an earlier life's version");
}

#[tokio::test]
async fn versions_follow_the_puts_and_differ() {
    let rig = Rig::new().await;
    let request = WriteRequest::new()
        .mutation(Mutation::put(key("b"), "1"))
        .mutation(Mutation::delete(key("a")))
        .mutation(Mutation::put(key("c"), "2"));
    let WriteResult::Applied { put_versions, .. } = rig.store.write(request).await.unwrap() else { panic!() };
    let keys: Vec<&str> = put_versions.iter().map(|put| put.key.as_str()).collect();
    assert_eq!(keys, ["b", "c"]);
    assert_ne!(put_versions[0].version, put_versions[1].version);
    for put in put_versions {
        let ReadResult::Found(value) = rig.store.read(put.key).await.unwrap() else { panic!() };
        assert_eq!(value.version, put.version);
    }
    let (versions, _) = applied(rig.store.write(WriteRequest::new()).await);
    assert!(versions.is_empty());
}

#[tokio::test]
async fn a_write_of_everything_that_is_allowed() {
    let rig = Rig::new().await;
    let value = vec![7; 1_900];
    let mut request = WriteRequest::new();
    for at in 0..limits::MAX_WRITE_KEYS {
        let name = key(&format!("{at:04}"));
        request = match at % 3 {
            0 => request.mutation(Mutation::put_for(name, value.clone(), ms(limits::MAX_RETENTION_MS))),
            1 => request.condition(Condition::Missing { key: name.clone() }).mutation(Mutation::put(name, value.clone())),
            _ => request.mutation(Mutation::delete(name)),
        };
    }
    applied(rig.store.write(request.clone()).await);
    assert!(conflicts(rig.store.write(request).await));
    let ReadResult::Found(found) = rig.store.read(key("0000")).await.unwrap() else { panic!() };
    assert_eq!(found.expires_at, Some(StoreTime::from_unix_ms(limits::MAX_TIME_MS)), "expiry saturates, exactly");
    let all = page(&rig.store, ScanRequest::new("", 1_000)).await.unwrap();
    assert_eq!(all.items.len(), 1_000);
    assert_eq!(rest(&rig.store, "", 1_000, &all).await.unwrap().len(), 2_048 - 2_048 / 3 - 1_000);
}

#[tokio::test]
async fn keys_are_any_text_in_byte_order() {
    let rig = Rig::new().await;
    let mut texts = ["\0", "a", "a\0", "{z}", "}{", "{}", "\u{ff5e}", "\u{1f600}", "é"].map(String::from).to_vec();
    texts.push("k".repeat(limits::MAX_KEY));
    for text in &texts {
        rig.put(text, text).await;
    }
    texts.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let all = page(&rig.store, ScanRequest::new("", 100)).await.unwrap();
    let expected: Vec<_> = texts.iter().map(|text| (text.clone(), text.clone())).collect();
    assert_eq!(shown(&all), expected);
    let first = page(&rig.store, ScanRequest::new("", 3)).await.unwrap();
    let mut paged = shown(&first);
    paged.extend(rest(&rig.store, "", 3, &first).await.unwrap());
    assert_eq!(paged, expected);
    let braces = page(&rig.store, ScanRequest::new("{", 100)).await.unwrap();
    assert_eq!(shown(&braces), [("{z}".into(), "{z}".into()), ("{}".into(), "{}".into())]);
}

#[tokio::test]
async fn many_at_once() {
    let rig = Rig::new().await;
    let writes = (0..2_000).map(|at| {
        let store = rig.store.clone();
        tokio::spawn(async move {
            put(&store, &format!("k{}", at % 500), &at.to_string()).await;
            get(&store, &format!("k{}", at % 500)).await.unwrap()
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    assert_eq!(page(&rig.store, ScanRequest::new("k", 1_000)).await.unwrap().items.len(), 500);
    assert_eq!(rig.raw::<u64>("GET {p}:n").await, 2_000, "one sequence number for each commit that puts");
}

#[tokio::test]
async fn a_full_memory_hinders_no_read_and_no_scan() {
    let rig = Rig::new().await;
    for at in 0..20 {
        rig.put(&format!("k{at:02}"), "value").await;
    }
    let version = rig.put("k00", "new").await;
    rig.raw::<()>("CONFIG SET maxmemory 1").await;
    let refused = rig.store.write(WriteRequest::new().mutation(Mutation::put(key("k01"), "x"))).await.unwrap_err();
    assert_eq!((refused.code(), refused.outcome()), (Code::OutOfMemory, Outcome::NotApplied));
    assert_eq!(rig.get("k00").await.as_deref(), Some("new"));
    rig.store.ping().await.unwrap();
    let small = page(&rig.store, ScanRequest::new("k", 100)).await.unwrap();
    assert_eq!((small.items.len(), &small.items[0].value.version), (20, &version));
    let first = page(&rig.store, ScanRequest::new("k", 3)).await.unwrap();
    delete(&rig.store, "k10").await;
    assert_eq!(rest(&rig.store, "k", 3, &first).await.unwrap().len(), 17, "a snapshot of what was there");
}
