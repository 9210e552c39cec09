//! A process that ends while operations are under way: at once, in order, and with the code that it chose.

use std::process::{Command, Stdio};
use std::time::Duration;

use zlink_store::{
    BlobReference, Key, LocationStore, LockOptions, Mutation, Project, ProjectId, ProjectOptions, RelocationStore, Retention,
    StateWriteOptions, StoreOptions, WriteRequest,
};
use zlink_test_servers::{Proxy, RedisServer};

/// Where the child finds its server; how it ends.
const URL: &str = "ZLINK_TEST_EXIT_URL";
const WAY: &str = "ZLINK_TEST_EXIT_WAY";

/// The child. Without its variables, in the parent's own run, there is nothing to do.
#[test]
fn child() {
    let (Ok(url), Ok(way)) = (std::env::var(URL), std::env::var(WAY)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = || StoreOptions::with_prefix("p").unwrap();
    let records = LocationStore::open(&*url, options()).unwrap();
    let blobs = RelocationStore::open(&*url, options()).unwrap();
    let project = Project::open(&*url, ProjectId::new("w", "p").unwrap(), ProjectOptions::default()).unwrap();
    let state = project.state().namespace("n").unwrap();
    for number in 0..32 {
        let key = || Key::new(format!("k{number}")).unwrap();
        let reference = BlobReference::new(format!("b{number}")).unwrap();
        let waiting = LockOptions { wait_ms: 5_000, ..LockOptions::default() };
        runtime.spawn(records.read(key()));
        runtime.spawn(records.write(WriteRequest::new().mutation(Mutation::put(key(), vec![7; 1_000]))));
        runtime.spawn(blobs.put(reference, vec![7; 300_000], Retention::from_ms(60_000).unwrap()));
        runtime.spawn(state.set("k", "1", StateWriteOptions::default()));
        runtime.spawn(project.locks().acquire("lock", waiting));
    }
    // Connected, sent, and some of it answered, where anybody answers.
    std::thread::sleep(Duration::from_millis(100));
    match &*way {
        // As a panic or a signal handler would have it: nothing is closed or dropped.
        "exit" => std::process::exit(0),
        // Those who wait are dropped, with their runtime, before the stores.
        "drop" => drop(runtime),
        // The other way round.
        _ => {
            drop((records, blobs, state, project));
            runtime.shutdown_background();
        }
    }
    std::process::exit(0);
}

#[test]
fn a_process_ends_at_once_with_operations_in_flight() {
    let server = RedisServer::start(&[]).unwrap();
    for silent in [false, true] {
        let proxy = Proxy::to(server.port()).unwrap();
        if silent {
            proxy.swallow();
        }
        for way in ["exit", "drop", "stores first"] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--nocapture"])
                .env(URL, proxy.url())
                .env(WAY, way)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Beside the tenth of a second that it works: far less than the timeouts of what it leaves behind.
            let ended = (0..210).find_map(|_| {
                std::thread::sleep(Duration::from_millis(10));
                child.try_wait().unwrap()
            });
            let _ = child.kill();
            let said = String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned();
            assert_eq!(ended.map(|status| status.code()), Some(Some(0)), "{way}, silent: {silent}: {said}");
            assert!(!said.contains("panicked"), "{way}: {said}");
        }
    }
}
