//! Connections of our own to one deployment, shared by every store of an equal configuration.

mod asking;
mod common;
mod node;
mod sentinel;

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::common::Common;
use self::node::{Node, Place};
use self::sentinel::Sentinels;
use super::bells::Bells;
use super::config::{RedisConfig, Server};
use super::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::Error;

/// A connection for each line, made when it is needed. Clones share them.
#[derive(Clone)]
pub(super) struct Native(Arc<Inner>);

struct Inner {
    node: Arc<Node>,
    bells: Arc<Bells>,
    common: Arc<Common>,
}

impl Native {
    pub(super) fn new(config: RedisConfig) -> Self {
        let place = match &config.server {
            Server::Single(address) => Place::At(address.clone()),
            Server::Sentinel { sentinels, master, username, password } => {
                let (user, password) = (username.as_deref(), password.as_ref());
                Place::Found(Arc::new(Sentinels::new(sentinels, master, user, password, config.tls.as_ref())))
            }
            Server::Cluster(_) => Place::Nowhere,
        };
        let common = Common::new(config);
        let node = Node::new(Arc::clone(&common), place);
        let bells = Bells::new(Arc::clone(&node) as _);
        Self(Arc::new(Inner { node, bells, common }))
    }
}

impl Transport for Native {
    fn ready(&self, line: Line, _slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        let node = Arc::clone(&self.0.node);
        async move { node.link(line, deadline).await.map(|_| ()) }.boxed()
    }

    fn send(&self, line: Line, _slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        let (node, call) = (Arc::clone(&self.0.node), call.clone());
        async move { node.carry(line, batch, &call).await }.boxed()
    }

    fn transactions(&self) -> bool {
        true
    }

    fn scripts(&self) -> &Scripts {
        &self.0.common.scripts
    }

    fn min_acked_replicas(&self) -> u32 {
        self.0.common.config.min_acked_replicas
    }

    fn counters(&self) -> &EngineCounters {
        &self.0.common.counters
    }

    fn bells(&self) -> Option<Arc<Bells>> {
        Some(Arc::clone(&self.0.bells))
    }

    fn close(&self) {
        self.0.node.close();
        self.0.bells.close();
    }
}
