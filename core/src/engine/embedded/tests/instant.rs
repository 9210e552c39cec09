//! † Clock and state are of one instant: what a read saw at its instant is what lay there then.

use std::sync::atomic::AtomicBool;
use std::thread;

use tempfile::TempDir;

use super::*;

/// Moves on with every look at it. A look takes long: if the state is let go between the look and what it is for, whoever waits
/// meanwhile gets in between.
#[derive(Debug, Default)]
struct Ticking(AtomicU64);

impl Ambient for Ticking {
    fn now(&self) -> StoreTime {
        let now = self.0.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        StoreTime::from_unix_ms(now)
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        ambient::system().fill_random(buffer);
    }
}

fn done<T: 'static>(operation: Operation<T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(operation).unwrap()
}

/// Commits one value after the other while others read, and compares the instants that both were told.
fn every_value_is_seen_between_its_commit_and_the_next(store: &LocationStore, count: usize) {
    let over = AtomicBool::new(false);
    let (commits, seen) = thread::scope(|scope| {
        let read = || {
            let mut seen = Vec::new();
            while !over.load(Ordering::SeqCst) {
                if let ReadResult::Found(found) = done(store.read(key("a"))) {
                    let which: usize = std::str::from_utf8(&found.bytes).unwrap().parse().unwrap();
                    seen.push((which, found.store_now));
                }
            }
            seen
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        let commit = |which: usize| match done(store.write(put("a", &which.to_string()))) {
            WriteResult::Applied { store_now, .. } => store_now,
            WriteResult::Conflict { .. } => panic!("a conflict"),
        };
        let commits: Vec<StoreTime> = (0..count).map(commit).collect();
        over.store(true, Ordering::SeqCst);
        (commits, readers.map(|reader| reader.join().unwrap()).concat())
    });
    assert!(!seen.is_empty());
    for (which, at) in seen {
        assert!(commits[which] <= at, "value {which} was seen at {at:?}, before its commit at {:?}", commits[which]);
        let next = commits.get(which + 1);
        assert!(next.is_none_or(|next| at <= *next), "value {which} was seen at {at:?}, after the commit at {next:?}");
    }
}

#[test]
fn in_memory() {
    let store = location(&Core::new(Memory::new(Arc::new(Ticking::default()))), "");
    every_value_is_seen_between_its_commit_and_the_next(&store, 300);
}

#[test]
fn in_a_folder() {
    let folder = TempDir::new().unwrap();
    let core = crate::engine::embedded::file::open(folder.path(), Arc::new(Ticking::default())).unwrap();
    every_value_is_seen_between_its_commit_and_the_next(&location(&core, ""), 200);
}
