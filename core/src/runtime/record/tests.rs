use proptest::prelude::*;

use super::*;
use crate::contract::{StoreTime, limits};
use crate::runtime::names::{MeshName, NodeEndpoint, NodeId, Role, RoutingId, StableType};
use crate::runtime::node::NodeState;
use crate::runtime::object::ObjectKind;

fn owner() -> impl Strategy<Value = OwnerId> {
    any::<[u8; 16]>().prop_map(OwnerId)
}

fn time() -> impl Strategy<Value = StoreTime> {
    (1..=limits::MAX_TIME_MS).prop_map(StoreTime::from_unix_ms)
}

prop_compose! {
    fn node()(
        owner in owner(), lease_generation: u64, endpoint in "\\PC{1,80}", role in "\\PC{1,16}", draining: bool, state in 1u8..=6,
        weight: u32, updated_at in time(), lost_at in proptest::option::of(time()),
    ) -> NodeRecord {
        NodeRecord {
            owner, lease_generation, endpoint: NodeEndpoint::new(endpoint).unwrap(), role: Role::new(role).unwrap(), draining,
            state: NodeState::from_number(state).unwrap(), weight, updated_at, lost_at,
        }
    }
}

prop_compose! {
    fn object()(
        kind in 1u8..=3, phase in 0usize..3, stable_type in "\\PC{1,64}", object_generation: u64, owner_generation: u64,
        mesh in "\\PC{1,32}", rid in proptest::collection::vec(any::<u8>(), 1..=255), owner in owner(), lease_generation: u64,
    ) -> ObjectRecord {
        ObjectRecord {
            kind: ObjectKind::from_number(kind).unwrap(),
            phase: [ObjectPhase::Reserved, ObjectPhase::Active, ObjectPhase::Gone][phase],
            stable_type: StableType::new(stable_type).unwrap(), object_generation, owner_generation,
            node: NodeId { mesh_name: MeshName::new(mesh).unwrap(), node_rid: RoutingId::new(rid).unwrap() },
            owner, lease_generation,
        }
    }
}

/// What decodes has one encoding: these bytes. Nothing else does, and nothing panics.
fn decodes_only_itself<R: Record>(bytes: &[u8]) {
    match R::decode(bytes) {
        Ok(record) => assert_eq!(record.encode(), bytes),
        Err(error) => assert_eq!(error.code(), Code::Incompatible),
    }
}

fn all_decode_only_themselves(bytes: &[u8]) {
    decodes_only_itself::<LeaseRecord>(bytes);
    decodes_only_itself::<NodeRecord>(bytes);
    decodes_only_itself::<ObjectRecord>(bytes);
}

proptest! {
    #[test]
    fn leases_come_back(generation: u64) {
        let record = LeaseRecord { generation };
        prop_assert_eq!(LeaseRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn nodes_come_back(record in node()) {
        prop_assert_eq!(NodeRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn objects_come_back(record in object()) {
        prop_assert_eq!(ObjectRecord::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn no_bytes_are_guessed_at(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in "[lno]") {
        all_decode_only_themselves(&bytes);
        let mut headed = vec![FORMAT];
        headed.extend(kind.as_bytes());
        headed.extend(&bytes);
        all_decode_only_themselves(&headed);
    }

    #[test]
    fn no_part_of_a_record_is_one(record in object(), cut: proptest::sample::Index, bit in 0u8..8) {
        let bytes = record.encode();
        let at = cut.index(bytes.len());
        prop_assert!(ObjectRecord::decode(&bytes[..at]).is_err());
        let mut longer = bytes.clone();
        longer.push(0);
        prop_assert!(ObjectRecord::decode(&longer).is_err());
        let mut bent = bytes;
        bent[at] ^= 1 << bit;
        all_decode_only_themselves(&bent);
    }
}

#[test]
fn a_newer_format_says_so() {
    let error = LeaseRecord::decode(&[FORMAT + 1, b'l', 1]).unwrap_err();
    assert_eq!(error.code(), Code::Incompatible);
    assert!(error.message().contains("update this runtime"), "{error}");
}
