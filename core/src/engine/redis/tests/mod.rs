//! The way to the server, on real servers, through a proxy and against fake ones.

mod acked;
mod clock;
mod cluster;
mod connecting;
mod credentials;
mod greeting;
mod half_open;
mod hosted;
mod lost;
mod scripts;
mod secured;
mod sentinel;
mod sharing;
mod silence;
pub(super) mod tap;
mod tls;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use zlink_test_servers::{Action, Proxy, RedisServer, Request};

use super::client::Client;
use super::config::RedisConfig;
use super::native::Native;
use super::transport::{Batch, Failure, Line, Reply, Slot, Transport};
use crate::ambient;
use crate::call::Call;
use crate::contract::{Code, Error, Outcome};

/// For tests that start many servers: one at a time, beside all the others.
async fn turn() -> tokio::sync::MutexGuard<'static, ()> {
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ONE.lock().await
}

/// A transport of its own, shared with nobody.
fn native(url: &str) -> Arc<Native> {
    Arc::new(Native::new(RedisConfig::parse(url).unwrap()))
}

fn client(url: &str) -> Client {
    Client::new(native(url))
}

fn reading(ms: u64) -> Call {
    Call::reading(ambient::monotonic() + Duration::from_millis(ms))
}

fn writing(ms: u64) -> Call {
    Call::writing(ambient::monotonic() + Duration::from_millis(ms))
}

fn batch(commands: &[&[&str]]) -> Batch {
    let command = |words: &&[&str]| words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
    Batch { commands: commands.iter().map(command).collect(), atomic: false }
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

fn one(transport: &Arc<Native>, words: &[&str], call: &Call) -> BoxFuture<'static, Result<Reply, Failure>> {
    let sending = transport.send(Line::Small, Slot::default(), Arc::new(batch(&[words])), call);
    async move { sending.await.map(|mut replies| replies.remove(0)) }.boxed()
}

fn not_sent(result: Result<impl std::fmt::Debug, Failure>) -> Error {
    match result {
        Err(Failure::NotSent(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn was_lost(result: Result<impl std::fmt::Debug, Failure>) -> Error {
    match result {
        Err(Failure::Lost(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Waits for something that must come, ten seconds at most.
async fn until(what: &str, mut there: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

/// How long something took.
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let start: Instant = ambient::monotonic();
    let result = future.await;
    (result, ambient::monotonic() - start)
}

/// A server that says hello like Redis 7.0 and for the rest what `say` says.
fn fake(say: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Proxy {
    Proxy::fake(move |request| match request.name().as_str() {
        "HELLO" => hello("redis", "7.0.15", "master"),
        "INFO" => Action::line("-NOPERM this user has no permissions to run the 'info' command"),
        _ => say(request),
    })
    .unwrap()
}

fn hello(server: &str, version: &str, role: &str) -> Action {
    let field = |text: &str| zlink_test_servers::Value::Bytes(text.as_bytes().to_vec());
    let fields = ["server", server, "version", version, "mode", "standalone", "role", role];
    Action::value(&zlink_test_servers::Value::Array(fields.iter().map(|text| field(text)).collect()))
}

fn pair() -> (RedisServer, Proxy) {
    let server = RedisServer::start(&[]).unwrap();
    let proxy = Proxy::to(server.port()).unwrap();
    (server, proxy)
}
