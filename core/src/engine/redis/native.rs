//! Connections of our own to one deployment, shared by every store of an equal configuration.

mod asking;
mod bounce;
mod cluster;
mod common;
mod node;
mod redirect;
mod sentinel;
mod table;

#[cfg(any(test, fuzzing))]
pub(in crate::engine) use self::table::fuzz;

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use self::cluster::Cluster;
use self::common::Common;
use self::node::{Node, Place};
use self::sentinel::Sentinels;
use super::bells::{Bells, Dialer};
use super::config::{RedisConfig, Server};
use super::transport::{Batch, Failure, Line, Reply, Scripts, Slot, Transport};
use crate::call::{Call, EngineCounters};
use crate::contract::Error;

/// A connection for each line, made when it is needed. Clones share them.
#[derive(Clone)]
pub(super) struct Native(Arc<Inner>);

struct Inner {
    servers: Servers,
    bells: Arc<Bells>,
    common: Arc<Common>,
}

#[derive(Clone)]
enum Servers {
    /// One server, or the one that is the primary now.
    One(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Native {
    pub(super) fn new(config: RedisConfig) -> Self {
        let common = Common::new(config);
        let config = &common.config;
        let one = |place| Servers::One(Node::new(Arc::clone(&common), place));
        let servers = match &config.server {
            Server::Single(address) => one(Place::At(address.clone())),
            Server::Sentinel { sentinels, master, username, password } => {
                let (user, password) = (username.as_deref(), password.as_ref());
                one(Place::Found(Arc::new(Sentinels::new(sentinels, master, user, password, config.tls.as_ref()))))
            }
            Server::Cluster(seeds) => Servers::Cluster(Cluster::new(Arc::clone(&common), seeds)),
        };
        let dialer: Arc<dyn Dialer> = match &servers {
            Servers::One(node) => Arc::clone(node) as _,
            Servers::Cluster(cluster) => Arc::clone(cluster) as _,
        };
        Self(Arc::new(Inner { servers, bells: Bells::new(dialer), common }))
    }
}

impl Transport for Native {
    fn ready(&self, line: Line, slot: Slot, deadline: Instant) -> BoxFuture<'static, Result<(), Error>> {
        let servers = self.0.servers.clone();
        async move {
            let link = match servers {
                Servers::One(node) => node.link(line, deadline).await,
                Servers::Cluster(cluster) => cluster.link(line, slot, deadline).await,
            };
            link.map(|_| ())
        }
        .boxed()
    }

    fn send(&self, line: Line, slot: Slot, batch: Arc<Batch>, call: &Call) -> BoxFuture<'static, Result<Vec<Reply>, Failure>> {
        let (servers, call) = (self.0.servers.clone(), call.clone());
        async move {
            match servers {
                Servers::One(node) => node.carry(line, batch, &call).await,
                Servers::Cluster(cluster) => cluster.carry(line, slot, batch, &call).await,
            }
        }
        .boxed()
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
        match &self.0.servers {
            Servers::One(node) => node.close(),
            Servers::Cluster(cluster) => cluster.close(),
        }
        self.0.bells.close();
    }
}
