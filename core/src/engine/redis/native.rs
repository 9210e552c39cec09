//! Connections of our own, through redis-rs. (Thin slice: one connection per line, made anew when it breaks.)

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Value};
use tokio::sync::Mutex;

use super::config::{Address, RedisConfig, Server};
use super::transport::{Batch, Failure, Line, Reply, Transport};
use crate::background;
use crate::call::{Call, EngineCounters};
use crate::contract::{Code, Error, Outcome};

#[derive(Clone)]
pub(crate) struct Native(Arc<Inner>);

struct Inner {
    config: RedisConfig,
    lines: Mutex<HashMap<Line, MultiplexedConnection>>,
    counters: EngineCounters,
}

impl Native {
    pub(crate) fn new(config: RedisConfig) -> Self {
        Self(Arc::new(Inner { config, lines: Mutex::default(), counters: EngineCounters::default() }))
    }

    async fn connection(&self, line: Line) -> Result<MultiplexedConnection, Error> {
        let mut lines = self.0.lines.lock().await;
        if let Some(connection) = lines.get(&line) {
            return Ok(connection.clone());
        }
        let Server::Single(Address::Tcp(host, port)) = &self.0.config.server else {
            return Err(Error::internal("being built"));
        };
        let client = redis::Client::open((host.as_str(), *port)).map_err(unavailable)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(unavailable)?;
        lines.insert(line, connection.clone());
        Ok(connection)
    }
}

impl Transport for Native {
    fn ready(&self, line: Line, _deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        let native = self.clone();
        let task = background::spawn_scoped(async move { native.connection(line).await.map(|_| ()) });
        task.boxed()
    }

    fn send(&self, line: Line, batch: Batch, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        let native = self.clone();
        let call = call.clone();
        let work = async move {
            let mut connection = native.connection(line).await.map_err(Failure::NotSent)?;
            let mut pipeline = redis::pipe();
            if batch.atomic {
                pipeline.atomic();
            }
            let count = batch.commands.len();
            for command in &batch.commands {
                let mut built = redis::Cmd::new();
                for arg in command {
                    built.arg(&arg[..]);
                }
                pipeline.add_command(built);
            }
            call.mark_sent();
            native.0.counters.commands_sent.fetch_add(count as u64, Ordering::Relaxed);
            let (offset, expected) = if batch.atomic { (count + 1, 1) } else { (0, count) };
            let answer = connection.send_packed_commands(&pipeline, offset, expected).await;
            match answer {
                Ok(mut values) => {
                    if batch.atomic {
                        match values.pop() {
                            Some(Value::Array(inner)) => values = inner,
                            other => return Err(Failure::Lost(Error::internal(format!("EXEC answered {other:?}")))),
                        }
                    }
                    Ok(values.into_iter().map(reply).collect())
                }
                Err(error) => {
                    native.0.lines.lock().await.remove(&line);
                    Err(Failure::Lost(unavailable(error)))
                }
            }
        };
        let task = background::handle().spawn(work);
        async move { task.await.unwrap_or_else(|error| Err(Failure::Lost(Error::internal(error.to_string())))) }.boxed()
    }

    fn transactions(&self) -> bool {
        true
    }

    fn reconnect(&self, line: Line) {
        let native = self.clone();
        background::handle().spawn(async move { native.0.lines.lock().await.remove(&line) });
    }

    fn counters(&self) -> &EngineCounters {
        &self.0.counters
    }
}

fn unavailable(error: redis::RedisError) -> Error {
    Error::new(Code::Unavailable, Outcome::Unknown, error.to_string())
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Bytes(bytes.into()),
        Value::Okay => Reply::Bytes(Bytes::from_static(b"OK")),
        Value::SimpleString(text) => Reply::Bytes(text.into()),
        Value::Array(items) | Value::Set(items) => Reply::Array(items.into_iter().map(reply).collect()),
        Value::ServerError(error) => {
            Reply::Error { code: error.code().to_owned(), message: error.details().unwrap_or_default().to_owned() }
        }
        Value::Boolean(truth) => Reply::Int(truth.into()),
        other => Reply::Bytes(format!("{other:?}").into()),
    }
}
