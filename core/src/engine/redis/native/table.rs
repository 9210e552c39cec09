//! Which node of a Cluster has which slots.

use std::sync::Arc;

use super::node::Node;
use crate::engine::redis::config::Address;
use crate::engine::redis::slot::{SLOTS, Slot};
use crate::engine::redis::transport::Reply;

/// No node has the slot, as far as is known.
const NOBODY: u16 = u16::MAX;

/// What one node said of the Cluster.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// Slots from, to, and their primary.
    ranges: Vec<(u16, u16, Address)>,
    replicas: Vec<Address>,
}

/// The primaries, with their connections, and their slots.
#[derive(Default)]
pub(super) struct Table {
    owners: Vec<u16>,
    nodes: Vec<(Address, Arc<Node>)>,
    replicas: Vec<Address>,
}

impl Layout {
    /// An answer to CLUSTER SLOTS from the node at `asked`. None if it is something else, or names no slot.
    pub(super) fn of(reply: &Reply, asked: &Address) -> Option<Self> {
        let Reply::Array(items) = reply else { return None };
        let (mut ranges, mut replicas) = (Vec::new(), Vec::new());
        for item in items {
            let Reply::Array(range) = item else { return None };
            let [Reply::Int(from), Reply::Int(to), primary, others @ ..] = &range[..] else { return None };
            let (from, to) = (u16::try_from(*from).ok()?, u16::try_from(*to).ok()?);
            if from > to || to >= SLOTS {
                return None;
            }
            ranges.push((from, to, node(primary, asked)?));
            replicas.extend(others.iter().filter_map(|other| node(other, asked)));
        }
        (!ranges.is_empty()).then_some(Self { ranges, replicas })
    }
}

/// A node's address. One that does not know its own, or does not tell, is where it was asked.
fn node(reply: &Reply, asked: &Address) -> Option<Address> {
    let Address::Tcp(asked, _) = asked else { return None };
    let Reply::Array(fields) = reply else { return None };
    let [host, Reply::Int(port), ..] = &fields[..] else { return None };
    let host = match host {
        Reply::Bytes(host) if !host.is_empty() && host != "?" => std::str::from_utf8(host).ok()?,
        Reply::Bytes(_) | Reply::Nil => asked,
        _ => return None,
    };
    let port = u16::try_from(*port).ok().filter(|port| *port > 0)?;
    Some(Address::Tcp(host.to_owned(), port))
}

/// `node` has slots now that `before` had.
fn take_over(node: &Arc<Node>, before: &Arc<Node>) {
    if !Arc::ptr_eq(node, before) {
        node.take_over(before);
    }
}

impl Table {
    pub(super) fn node_of(&self, slot: Slot) -> Option<&Arc<Node>> {
        let owner = *self.owners.get(usize::from(slot.number()))?;
        self.nodes.get(usize::from(owner)).map(|(_, node)| node)
    }

    /// The node at an address; made by `make` if it is new.
    pub(super) fn node_at(&mut self, address: &Address, make: impl FnOnce() -> Arc<Node>) -> &Arc<Node> {
        let place = self.place_of(address, make);
        &self.nodes[place].1
    }

    /// The slot is said to be at `address`.
    pub(super) fn moved(&mut self, slot: Slot, address: &Address, make: impl FnOnce() -> Arc<Node>) {
        let before = self.node_of(slot).cloned();
        let place = self.place_of(address, make);
        if let Some(before) = before {
            take_over(&self.nodes[place].1, &before);
        }
        self.owners.resize(usize::from(SLOTS), NOBODY);
        self.owners[usize::from(slot.number())] = u16::try_from(place).unwrap_or(NOBODY);
    }

    /// Takes a new layout over. The nodes that are still primaries keep their connections; the others end when nobody uses them.
    pub(super) fn learn(&mut self, layout: Layout, make: impl Fn(&Address) -> Arc<Node>) {
        let mut before = std::mem::take(&mut self.nodes);
        let owned: Vec<Arc<Node>> = before.iter().map(|(_, node)| Arc::clone(node)).collect();
        let owners = std::mem::replace(&mut self.owners, vec![NOBODY; usize::from(SLOTS)]);
        self.replicas = layout.replicas;
        for (from, to, address) in layout.ranges {
            let place = self.place_of(&address, || {
                let kept = before.iter().position(|(other, _)| *other == address);
                kept.map_or_else(|| make(&address), |kept| before.swap_remove(kept).1)
            });
            let range = usize::from(from)..=usize::from(to);
            let mut last = None;
            for owner in owners.get(range.clone()).unwrap_or_default() {
                if last.replace(owner) != Some(owner)
                    && let Some(owner) = owned.get(usize::from(*owner))
                {
                    take_over(&self.nodes[place].1, owner);
                }
            }
            self.owners[range].fill(u16::try_from(place).unwrap_or(NOBODY));
        }
    }

    /// All nodes that are known: primaries first.
    pub(super) fn addresses(&self) -> Vec<Address> {
        self.nodes.iter().map(|(address, _)| address).chain(&self.replicas).cloned().collect()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().map(|(_, node)| node)
    }

    fn place_of(&mut self, address: &Address, make: impl FnOnce() -> Arc<Node>) -> usize {
        let known = self.nodes.iter().position(|(other, _)| other == address);
        known.unwrap_or_else(|| {
            self.nodes.push((address.clone(), make()));
            self.nodes.len() - 1
        })
    }
}

/// What a node says of its Cluster is no layout, or every slot in it has a node that can be asked.
#[cfg(any(test, fuzzing))]
pub(in crate::engine) fn fuzz(reply: &Reply) {
    let Some(layout) = Layout::of(reply, &Address::Tcp("asked".to_owned(), 1)) else { return };
    assert!(!layout.ranges.is_empty());
    for (from, to, address) in &layout.ranges {
        assert!(from <= to && *to < SLOTS);
        assert!(matches!(address, Address::Tcp(host, port) if !host.is_empty() && *port > 0), "{address:?}");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn text(text: &'static str) -> Reply {
        Reply::Bytes(Bytes::from_static(text.as_bytes()))
    }

    fn range(from: i64, to: i64, nodes: Vec<Vec<Reply>>) -> Reply {
        let nodes = nodes.into_iter().map(Reply::Array);
        Reply::Array([Reply::Int(from), Reply::Int(to)].into_iter().chain(nodes).collect())
    }

    fn at(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    #[test]
    fn what_nodes_of_every_version_say() {
        let asked = at("asked", 1);
        let metadata = Reply::Array(vec![text("hostname"), text("h")]);
        let said = Reply::Array(vec![
            // 6.2; 7.0 and newer, with metadata; a node that does not know, or does not tell, what it is called.
            range(0, 9, vec![vec![text("a"), Reply::Int(7000), text("id")], vec![text("r"), Reply::Int(7001), text("id")]]),
            range(10, 16_383, vec![vec![text(""), Reply::Int(7002), text("id"), metadata]]),
        ]);
        let layout = Layout::of(&said, &asked).unwrap();
        assert_eq!(layout.ranges, [(0, 9, at("a", 7000)), (10, 16_383, at("asked", 7002))]);
        assert_eq!(layout.replicas, [at("r", 7001)]);
        for host in [Reply::Nil, text("?")] {
            let said = Reply::Array(vec![range(0, 1, vec![vec![host, Reply::Int(7000)]])]);
            assert_eq!(Layout::of(&said, &asked).unwrap().ranges, [(0, 1, at("asked", 7000))]);
        }
    }

    #[test]
    fn what_is_no_layout() {
        let node = || vec![vec![text("a"), Reply::Int(7000)]];
        for said in [
            Reply::Nil,
            Reply::Array(Vec::new()),
            Reply::Array(vec![Reply::Nil]),
            Reply::Array(vec![range(0, 16_384, node())]),
            Reply::Array(vec![range(5, 4, node())]),
            Reply::Array(vec![range(-1, 4, node())]),
            Reply::Array(vec![range(0, 4, Vec::new())]),
            Reply::Array(vec![range(0, 4, vec![vec![text("a"), Reply::Int(70_000)]])]),
            Reply::Array(vec![range(0, 4, vec![vec![text("a")]])]),
        ] {
            assert_eq!(Layout::of(&said, &at("asked", 1)), None, "{said:?}");
        }
    }
}
