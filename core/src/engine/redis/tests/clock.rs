//! The clock of the machine that a store runs on has no say: what expires does so by the server's.

use super::super::blob::RedisRelocation;
use super::super::location::RedisLocation;
use super::super::project::RedisProject;
use super::*;
use crate::ambient::Ambient;
use crate::call::OperationTimeout;
use crate::contract::*;
use crate::{LocationStore, Project, RelocationStore};

const HOUR: u64 = 3_600_000;

/// A clock that is wrong by an hour.
#[derive(Debug)]
struct Wrong {
    ahead: bool,
}

impl Ambient for Wrong {
    fn now(&self) -> StoreTime {
        let now = ambient::system().now().unix_ms();
        StoreTime::from_unix_ms(if self.ahead { now + HOUR } else { now - HOUR })
    }

    fn fill_random(&self, buffer: &mut [u8]) {
        ambient::system().fill_random(buffer);
    }
}

fn near(time: StoreTime, other: StoreTime) -> bool {
    time.unix_ms().abs_diff(other.unix_ms()) < HOUR / 4
}

#[tokio::test]
async fn a_wrong_clock_of_the_clients_machine_moves_no_expiry() {
    let server = RedisServer::start(&[]).unwrap();
    let right = ambient::system();
    for ahead in [false, true] {
        let client = || Client::new(Arc::new(Native::new(RedisConfig::parse(&server.url()).unwrap())));
        let prefix = KeyPrefix::new("p").unwrap();
        let wrong: Arc<dyn Ambient> = Arc::new(Wrong { ahead });
        let records = RedisLocation::new(client(), &prefix, Arc::clone(&wrong));
        let records = LocationStore::on(Arc::new(records), OperationTimeout::new(5_000).unwrap());
        let blobs = RedisRelocation::new(client(), prefix, Arc::clone(&wrong));
        let blobs = RelocationStore::on(Arc::new(blobs), OperationTimeout::new(5_000).unwrap());
        let project = RedisProject::new(client(), &ProjectId::new("w", "p").unwrap(), wrong);
        let project = Project::on(Arc::new(project), OperationTimeout::new(5_000).unwrap());
        let minute = Retention::from_ms(60_000).unwrap();

        let key = Key::new("k").unwrap();
        records.write(WriteRequest::new().mutation(Mutation::put_for(key.clone(), "v", minute))).await.unwrap();
        let ReadResult::Found(value) = records.read(key.clone()).await.unwrap() else { panic!("it expired") };
        assert!(near(value.store_now, right.now()));
        assert!(near(value.expires_at.unwrap(), right.now()));

        let name = BlobReference::new(format!("b{ahead}")).unwrap();
        let put = blobs.put(name.clone(), "bytes", minute).await.unwrap();
        let BlobPutResult::Stored { expires_at, .. } = put else { panic!("{put:?}") };
        assert!(near(expires_at, right.now()));
        assert!(matches!(blobs.read(name).await.unwrap(), BlobReadResult::Found { .. }));

        let state = project.state().namespace("n").unwrap();
        let options = StateWriteOptions { ttl_seconds: Some(60), ..StateWriteOptions::default() };
        assert!(matches!(state.set("k", "1", options).await.unwrap(), StateSetResult::Stored(_)));
        let entry = state.get("k").await.unwrap().expect("it expired");
        assert!(near(entry.updated_at, right.now()) && near(entry.expires_at.unwrap(), right.now()));

        let lease = project.locks().acquire("k", LockOptions::default()).await.unwrap().expect("it is free");
        assert!(near(lease.expires_at(), right.now()));
        assert!(project.locks().acquire("k", LockOptions::default()).await.unwrap().is_none(), "it expired");
        assert_eq!(lease.release().await.unwrap(), ReleaseResult::Released);

        let put = Mutation::put_for(key.clone(), "v", Retention::from_ms(1).unwrap());
        records.write(WriteRequest::new().mutation(put)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(matches!(records.read(key).await.unwrap(), ReadResult::Missing { .. }), "it lives on");
    }
}
