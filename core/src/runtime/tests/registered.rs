//! Options and names: what is wrong is said before anything starts.

use std::sync::Arc;
use std::time::Duration;

use super::rig::*;
use crate::contract::Code;
use crate::runtime::*;

#[test]
fn a_store_is_registered_once_and_the_second_call_names_the_first() {
    let (first, second) = (Provider::on(store()), Provider::on(store()));
    let mut options = options(&first, long());
    let error = options.add_location_store(Arc::clone(&second) as _).unwrap_err();
    assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some("addLocationStore")));
    assert!(error.message().contains("the test's provider"), "{error}");
    options.add_relocation_store(Arc::clone(&first) as _).unwrap();
    let error = options.add_relocation_store(second).unwrap_err();
    assert_eq!(error.argument_name(), Some("addRelocationStore"));
}

#[test]
fn times_are_positive_and_leave_room_for_the_margin() {
    LocationRuntimeOptions::default().validate().unwrap();
    let ms = Duration::from_millis;
    type Set = fn(&mut LocationRuntimeOptions, Duration);
    let each: [(&str, Set); 6] = [
        ("ownerLeaseTtl", |times, to| times.owner_lease_ttl = to),
        ("renewInterval", |times, to| times.renew_interval = to),
        ("renewTimeout", |times, to| times.renew_timeout = to),
        ("fencingMargin", |times, to| times.fencing_margin = to),
        ("pollingInterval", |times, to| times.polling_interval = to),
        ("operationTimeout", |times, to| times.operation_timeout = to),
    ];
    for (name, set) in each {
        for wrong in [Duration::ZERO, Duration::from_nanos(1), ms(1 << 31), Duration::MAX] {
            let mut times = LocationRuntimeOptions::default();
            set(&mut times, wrong);
            assert_eq!(times.validate().unwrap_err().argument_name(), Some(name), "{wrong:?}");
        }
    }
    let exact = LocationRuntimeOptions {
        owner_lease_ttl: ms(1_000),
        renew_interval: ms(300),
        renew_timeout: ms(299),
        fencing_margin: ms(400),
        ..LocationRuntimeOptions::default()
    };
    exact.validate().unwrap();
    let over = LocationRuntimeOptions { renew_timeout: ms(300), ..exact };
    assert_eq!(over.validate().unwrap_err().argument_name(), Some("renewInterval"));
}

#[test]
fn a_routing_id_has_one_text_form() {
    let all: Vec<u8> = (0..=254).collect();
    for bytes in [&b"node-1"[..], b"a.b_c~d:e@f", b"\0", "h\u{e9}".as_bytes(), b"%41", &all] {
        let id = RoutingId::new(bytes).unwrap();
        assert_eq!(RoutingId::parse(&id.to_string()).unwrap(), id);
        assert_eq!(id.as_bytes(), bytes);
    }
    assert_eq!(RoutingId::parse("node-1").unwrap().to_string(), "node-1");
    assert_eq!(RoutingId::new(&b"a b"[..]).unwrap().to_string(), "a%20b");
    for wrong in ["", "a b", "%", "%4", "%zz", "%41", "%c3%a9", "\u{e9}", &"x".repeat(256)] {
        assert_eq!(RoutingId::parse(wrong).unwrap_err().argument_name(), Some("nodeRid"), "{wrong:?}");
    }
    assert!(RoutingId::new(vec![0; 255]).is_ok());
    assert!(RoutingId::new(vec![0; 256]).is_err());
}

#[test]
fn the_longest_names_make_a_key() {
    for mesh in ["/".repeat(MeshName::MAX), "%".repeat(MeshName::MAX), "\0".repeat(MeshName::MAX), "\u{e9}".repeat(64)] {
        let id = NodeId { mesh_name: MeshName::new(mesh).unwrap(), node_rid: RoutingId::new(vec![255; 255]).unwrap() };
        assert_eq!(keys::node_of(&keys::node(&id).unwrap()).unwrap(), id);
    }
    let id = GlobalId::new("x".repeat(GlobalId::MAX)).unwrap();
    keys::object(ObjectKind::InstanceSpot, &id).unwrap();
    assert_eq!(GlobalId::new("").unwrap_err().argument_name(), Some("globalId"));
    assert_eq!(Role::new("x".repeat(65)).unwrap_err().argument_name(), Some("role"));
}
