//! The keys of the runtime's records: the kind first, so that a filter is a prefix.
//!
//! | key | record |
//! |---|---|
//! | `zlr/l/` owner, 32 hex digits | lease |
//! | `zlr/n/` mesh, percent-encoded, `/` rid, base64url | node |
//! | `zlr/a/` global id | actor |
//! | `zlr/s/` global id | user spot or instance spot: one id space |

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::names::{GlobalId, MeshName, NodeId, RoutingId};
use super::object::ObjectKind;
use super::record::OwnerId;
use crate::contract::{Code, Error, Key, Outcome};

/// All node descriptors.
pub(super) const NODES: &str = "zlr/n/";
const IN_A_MESH: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

pub(super) fn lease(owner: OwnerId) -> Result<Key, Error> {
    Key::new(format!("zlr/l/{owner:?}"))
}

/// The descriptors of one mesh.
pub(super) fn nodes_of(mesh: &MeshName) -> String {
    format!("{NODES}{}/", utf8_percent_encode(mesh.as_str(), IN_A_MESH))
}

pub(super) fn node(node: &NodeId) -> Result<Key, Error> {
    Key::new(nodes_of(&node.mesh_name) + &URL_SAFE_NO_PAD.encode(node.node_rid.as_bytes()))
}

/// Which node a descriptor's key names.
pub(super) fn node_of(key: &Key) -> Result<NodeId, Error> {
    let parsed = || {
        let (mesh, rid) = key.as_str().strip_prefix(NODES)?.split_once('/')?;
        let mesh = percent_decode_str(mesh).decode_utf8().ok()?;
        let rid = URL_SAFE_NO_PAD.decode(rid).ok()?;
        Some(NodeId { mesh_name: MeshName::new(mesh.as_ref()).ok()?, node_rid: RoutingId::new(rid).ok()? })
    };
    parsed().ok_or_else(foreign)
}

/// The objects that share an id space with `kind`.
pub(super) fn objects(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Actor => "zlr/a/",
        ObjectKind::UserSpot | ObjectKind::InstanceSpot => "zlr/s/",
    }
}

pub(super) fn object(kind: ObjectKind, id: &GlobalId) -> Result<Key, Error> {
    Key::new(format!("{}{id}", objects(kind)))
}

/// Which id an object's key names.
pub(super) fn id_of(kind: ObjectKind, key: &Key) -> Result<GlobalId, Error> {
    let id = key.as_str().strip_prefix(objects(kind)).and_then(|id| GlobalId::new(id).ok());
    id.ok_or_else(foreign)
}

fn foreign() -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, "a key among the location runtime's was not written by one")
}
