//! Sentinel and Cluster as they are secured: TLS with client certificates between all, users of their own with the least rights.

use std::sync::LazyLock;

use zlink_test_servers::{Certificates, Cluster, ClusterSettings, SentinelSettings, SentinelTrio, Settings, User, rights};

use super::*;
use crate::contract::{
    BlobPutResult, BlobReadResult, BlobReference, Key, LockOptions, Mutation, ProjectId, ReadResult, ReleaseResult, Retention,
    ScanRequest, ScanResult, WriteRequest, WriteResult,
};
use crate::engine::StoreOptions;
use crate::{LocationStore, Project, ProjectOptions, RelocationStore};

static CERTIFICATES: LazyLock<Arc<Certificates>> = LazyLock::new(|| Arc::new(Certificates::make().unwrap()));

const PASSWORD: &str = "p@:/#%+=&?w";

/// The key prefix is `app`, as on the page.
fn user(name: &str, rules: &[&str]) -> Option<User> {
    Some(User { name: name.to_owned(), password: format!("{name}{PASSWORD}"), rules: rules.join(" ") })
}

fn trio() -> SentinelTrio {
    let secret = |text: &str| Some(text.to_owned());
    SentinelTrio::with(SentinelSettings {
        tls: Some(Arc::clone(&CERTIFICATES)),
        password: secret("of data"),
        user: user("us/er", &rights::of_data()),
        sentinel_password: secret("of sentinels"),
        sentinel_user: user("as:ks", &rights::of_sentinels()),
        aof: true,
        ..SentinelSettings::default()
    })
    .unwrap()
}

fn cluster() -> Cluster {
    let rules = [rights::of_data(), rights::of_cluster()].concat();
    Cluster::with(ClusterSettings {
        tls: Some(Arc::clone(&CERTIFICATES)),
        password: Some("of data".to_owned()),
        user: user("us/er", &rules),
        aof: true,
        ..ClusterSettings::default()
    })
    .unwrap()
}

/// Everything that a user may do who has the key prefix `app`, waiting for a lock among it. The blobs' store, which stays open,
/// has been at every shard.
async fn everything_works(url: &str, name: &str) -> RelocationStore {
    let options = || StoreOptions::with_prefix("app").unwrap();
    let records = LocationStore::open(url, options()).unwrap();
    let key = Key::new(name).unwrap();
    let put = records.write(WriteRequest::new().mutation(Mutation::put(key.clone(), "v"))).await.unwrap();
    assert!(matches!(put, WriteResult::Applied { .. }), "{put:?}");
    assert!(matches!(records.read(key).await.unwrap(), ReadResult::Found(_)));
    let page = records.scan(ScanRequest::new(name, 10)).await.unwrap();
    assert!(matches!(&page, ScanResult::Page(page) if page.items.len() == 1), "{page:?}");
    let blobs = RelocationStore::open(url, options()).unwrap();
    for number in 0..16 {
        let (blob, bytes) = (BlobReference::new(format!("{name}/{number}")).unwrap(), vec![7; 300_000]);
        let put = blobs.put(blob.clone(), bytes.clone(), Retention::from_ms(60_000).unwrap()).await.unwrap();
        assert!(matches!(put, BlobPutResult::Stored { .. }), "{put:?}");
        let read = blobs.read(blob).await.unwrap();
        assert!(matches!(read, BlobReadResult::Found { bytes: read, .. } if read == bytes));
    }
    let project = Project::open(url, ProjectId::new("w", name).unwrap(), ProjectOptions::default()).unwrap();
    let (locks, waiting) = (project.locks(), LockOptions { wait_ms: 10_000, ..LockOptions::default() });
    let lease = locks.acquire("lock", waiting.clone()).await.unwrap().unwrap();
    let (next, released) = tokio::join!(locks.acquire("lock", waiting), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        lease.release().await
    });
    assert_eq!(released.unwrap(), ReleaseResult::Released);
    assert_eq!(next.unwrap().unwrap().release().await.unwrap(), ReleaseResult::Released);
    blobs
}

/// How many connections the user has; all came by TLS.
fn by_tls(server: &RedisServer) -> usize {
    let list = server.say(&["CLIENT", "LIST"]).text();
    let ours: Vec<_> = list.lines().filter(|line| line.contains("user=us/er ")).collect();
    let port = format!("laddr=127.0.0.1:{} ", server.tls_port());
    assert!(ours.iter().all(|line| line.contains(&port)), "{list}");
    ours.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_what_they_name_by_tls_as_users_of_their_own() {
    let _turn = turn().await;
    let mut trio = trio();
    let url = trio.url();
    let open = everything_works(&url, "before").await;
    let records = LocationStore::open(&*url, StoreOptions::with_prefix("app").unwrap()).unwrap();
    records.ping().await.unwrap();
    assert!(by_tls(trio.server(0)) > 0);
    trio.in_step(2);
    trio.servers()[0].kill().unwrap();
    let promoted = tokio::task::block_in_place(|| trio.promoted(0));
    let (read, took) = timed(records.read(Key::new("before").unwrap())).await;
    assert!(matches!(read.unwrap(), ReadResult::Found(_)));
    assert!(took < Duration::from_secs(5), "{took:?} after the promotion");
    let again = everything_works(&url, "after").await;
    assert!(by_tls(trio.server(promoted)) > 0);
    drop((open, again));
    // The one right that the sentinels' user has is needed.
    for sentinel in trio.sentinels() {
        sentinel.say(&["ACL", "SETUSER", "as:ks", "nocommands"]);
    }
    let error = not_sent(one(&native(&url), &["TIME"], &writing(10_000)).await);
    assert_eq!((error.code(), error.outcome()), (Code::Unauthenticated, Outcome::NotApplied), "{error}");
    assert!(error.message().contains("SENTINEL") && error.message().contains("sentinel_user"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_by_tls_as_a_user_with_nodes_that_are_found_by_redirections() {
    let _turn = turn().await;
    let mut cluster = cluster();
    // One node is enough to find the others.
    let url = cluster.url_at(&[cluster.node(4).tls_port()]);
    let open = everything_works(&url, "before").await;
    for shard in 0..3 {
        assert!(by_tls(cluster.node(shard)) > 0, "blobs lie in every shard");
    }
    // MOVED to a node that the store knows, and ASK.
    let slot = Slot::of(b"app").number();
    let from = cluster.owner(slot);
    let to = (from + 1) % 3;
    let records = LocationStore::open(&*url, StoreOptions::with_prefix("app").unwrap()).unwrap();
    let before = Key::new("before").unwrap();
    records.ping().await.unwrap();
    cluster.begin_move(slot, to);
    let nodes = |rule: &str| (0..6).for_each(|node| drop(cluster.node(node).say(&["ACL", "SETUSER", "us/er", rule])));
    nodes("-asking");
    let gone = Key::new("nowhere").unwrap();
    let error = records.read(gone.clone()).await.unwrap_err();
    assert_eq!((error.code(), error.outcome()), (Code::Unauthenticated, Outcome::NotApplied), "{error}");
    assert!(error.message().contains("command ASKING"), "{error}");
    nodes("+asking");
    assert!(matches!(records.read(gone).await.unwrap(), ReadResult::Missing { .. }));
    while cluster.move_keys(slot, from, to, 1) > 0 {
        assert!(matches!(records.read(before.clone()).await.unwrap(), ReadResult::Found(_)), "while the slot moves");
    }
    cluster.end_move(slot, from, to);
    drop(everything_works(&url, "moved").await);
    // A node that has only just become a primary.
    cluster.settled().unwrap();
    cluster.nodes()[to].kill().unwrap();
    let promoted = tokio::task::block_in_place(|| cluster.promoted(slot, to));
    let (read, took) = timed(records.read(before)).await;
    assert!(matches!(read.unwrap(), ReadResult::Found(_)));
    assert!(took < Duration::from_secs(5), "{took:?} after the promotion");
    let again = everything_works(&url, "after").await;
    assert!(by_tls(cluster.node(promoted)) > 0);
    drop((open, again));
}

/// Which of the two sides refuses is said, and no password.
#[tokio::test]
async fn what_a_secured_side_refuses_is_told_apart() {
    let _turn = turn().await;
    let trio = trio();
    let data = trio.url().replace("us%2Fer:us%2Fer", "us%2Fer:x");
    let watch = trio.url().replace("sentinel_password=", "sentinel_password=x");
    let own = Certificates::make().unwrap();
    let without = |names: &[&str]| {
        let url = trio.url();
        let (front, parameters) = url.split_once('?').unwrap();
        let kept: Vec<_> = parameters.split('&').filter(|one| !names.iter().any(|name| one.starts_with(name))).collect();
        format!("{front}?{}", kept.join("&"))
    };
    let as_nobody = without(&["sentinel_"]);
    let no_certificate = without(&["tls_cert", "tls_key"]);
    let other_ca = without(&["tls_"]) + "&" + &own.parameters(true);
    let other_name = format!("{}&tls_server_name=redis.test", trio.url());
    let (no_key, no_tls) = (format!("{as_nobody}&sentinel_user=as%3Aks"), trio.url().replace("rediss+", "redis+"));
    for (url, code, said) in [
        (data, Code::Unauthenticated, "refused the user or the password"),
        (watch, Code::Unauthenticated, "sentinel_password"),
        (as_nobody, Code::Unauthenticated, "sentinel_password"),
        (no_key, Code::Unauthenticated, "sentinel_password"),
        (no_certificate, Code::Unavailable, "client certificate"),
        (other_ca, Code::Unavailable, "tls_ca"),
        (other_name, Code::Unavailable, "tls_server_name"),
    ] {
        let (result, took) = timed(one(&native(&url), &["TIME"], &writing(30_000))).await;
        let error = not_sent(result);
        assert_eq!((error.code(), error.outcome()), (code, Outcome::NotApplied), "{url}: {error}");
        assert!(error.message().contains(said) && !error.message().contains("%"), "{url}: {error}");
        assert!(took < Duration::from_secs(10), "nothing to wait for: {took:?}");
    }
    assert_eq!(RedisConfig::parse(&no_tls).unwrap_err().code(), Code::InvalidArgument, "certificates want TLS");
}

/// One server by a unix socket and a replica, with the least rights on both and every write on disk.
#[tokio::test]
async fn a_primary_by_its_unix_socket_as_a_user() {
    let settings = Settings { unix: true, aof: true, password: Some("of data".to_owned()), ..Settings::default() };
    let users = user("us/er", &[&rights::of_data()[..], &["+wait"]].concat()).iter().map(User::setting).collect();
    let primary = RedisServer::with(Settings { users, ..settings.clone() }).unwrap();
    let replica = RedisServer::with(Settings { replica_of: Some(primary.port()), ..settings }).unwrap();
    let login = format!(
        "us%2Fer:{}@",
        percent_encoding::utf8_percent_encode(&format!("us/er{PASSWORD}"), percent_encoding::NON_ALPHANUMERIC)
    );
    let (_, socket) = primary.unix_url().split_once('@').map(|(front, path)| (front.to_owned(), path.to_owned())).unwrap();
    let url = format!("redis+unix://{login}{socket}?min_acked_replicas=1");
    drop(everything_works(&url, "k").await);
    let kept = || replica.say(&["EXISTS", "{app}:r:k"]).number() == 1;
    assert!(kept(), "a replica acknowledged it");
}
