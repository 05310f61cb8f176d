//! Tests of the slots of keys, of the map of slots, and of what nodes report.

use super::*;

#[derive(Clone)]
struct Name(String);

impl HasAddress for Name {
    fn address(&self) -> &str {
        &self.0
    }
}

fn make(address: &str) -> RedisResult<Name> {
    let none = || redis::RedisError::from((redis::ErrorKind::InvalidClientConfig, "no address"));
    let name = Name(address.to_owned());
    (address != "bad").then_some(name).ok_or_else(none)
}

#[test]
fn slots_are_those_of_redis() {
    // Values of `CLUSTER KEYSLOT`.
    for (key, slot) in [
        ("foo", 12_182),
        ("bar", 5_061),
        ("123456789", 12_739),
        ("{foo}x", 12_182),
        ("{}foo", 9_500),
    ] {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
}

#[test]
fn a_command_goes_where_its_first_key_is() {
    let foo = Some(12_182);
    assert_eq!(slot_of_command(redis::cmd("GET").arg("foo")), foo);
    assert_eq!(
        slot_of_command(redis::cmd("EVALSHA").arg("sha").arg(1).arg("foo").arg("bar")),
        foo
    );
    assert_eq!(
        slot_of_command(redis::cmd("EVAL").arg("source").arg(0).arg("foo")),
        None
    );
    assert_eq!(slot_of_command(redis::cmd("CLUSTER").arg("INFO")), None);
    assert_eq!(slot_of_command(&redis::cmd("TIME")), None);
}

#[test]
fn a_map_knows_each_slot_and_takes_corrections() {
    let ranges = [
        (0, 99, "a:1".to_owned()),
        (100, 16_383, "b:1".to_owned()),
        (50, 50, "b:1".to_owned()),
    ];
    let map = Arc::new(SlotMap::build(&ranges, make));
    let at = |map: &SlotMap<Name>, slot| map.at(slot).map(|name| name.0.clone());
    assert_eq!(at(&map, 49).as_deref(), Some("a:1"));
    assert_eq!(at(&map, 50).as_deref(), Some("b:1"));
    assert_eq!(at(&map, 16_383).as_deref(), Some("b:1"));
    assert_eq!(map.masters().len(), 2);
    let moved = map.with_slot(7, &Name("c:1".to_owned()));
    assert_eq!(at(&moved, 7).as_deref(), Some("c:1"));
    assert_eq!(at(&moved, 8).as_deref(), Some("a:1"));
    assert!(Arc::ptr_eq(&moved, &moved.with_slot(7, &Name("c:1".to_owned()))));
    let met = moved.with_master(&Name("d:1".to_owned()));
    assert!(met.find("d:1").is_some() && Arc::ptr_eq(&met, &met.with_master(&Name("d:1".to_owned()))));
    assert_eq!(at(&met, 7).as_deref(), Some("c:1"));
    let empty = Arc::new(SlotMap::<Name>::default());
    assert!(empty.at(7).is_none() && empty.any(3).is_none());
    assert_eq!(
        at(&empty.with_slot(7, &Name("c:1".to_owned())), 7).as_deref(),
        Some("c:1")
    );
}

#[test]
fn the_report_of_a_node_is_parsed_and_invalid_ranges_are_skipped() {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let node = |host: Value| Value::Array(vec![host, Value::Int(7_000), text("id")]);
    let slots = vec![
        vec![
            Value::Int(0),
            Value::Int(5),
            node(text("10.0.0.1")),
            node(text("10.0.0.9")),
        ],
        vec![Value::Int(6), Value::Int(9), node(text(""))],
        vec![Value::Int(10), Value::Int(10), node(Value::Nil)],
        vec![Value::Int(11)],
    ];
    let report = parse_report(
        "cluster_state:ok\r\ncluster_current_epoch:12\r\n".to_owned(),
        slots,
        "host:1",
    );
    assert_eq!(report.rank(), (12, 11));
    let addresses: Vec<_> = report
        .ranges
        .iter()
        .map(|(_, _, address)| address.as_str())
        .collect();
    assert_eq!(addresses, ["10.0.0.1:7000", "host:7000", "host:7000"]);
}

#[test]
fn a_master_lists_each_replica_that_may_take_its_place() {
    let nodes = "\
        m1 10.0.0.1:7000@17000,host myself,master - 0 0 3 connected 0-5460\n\
        r1 10.0.0.2:7000@17000 slave m1 0 1700000000000 3 connected\n\
        r2 10.0.0.3:7000@17000 slave,fail? m1 1700000000000 1700000000000 3 disconnected\n\
        r3 10.0.0.4:7000@17000 slave,fail m1 1700000000000 1700000000000 3 disconnected\n\
        r4 10.0.0.5:7000@17000 slave m2 0 1700000000000 2 connected\n\
        m2 10.0.0.6:7000@17000 master - 0 1700000000000 2 connected 5461-10922\n";
    let listed = |usable, failed| ListedReplicas {
        usable,
        failed,
        without_slots: 0,
    };
    assert_eq!(replicas_listed(nodes), listed(2, 1));
    assert_eq!(
        replicas_listed(&nodes.replace("myself,", "")),
        listed(0, 0),
        "nobody says whose they are"
    );
    let replica = nodes
        .replace("myself,", "")
        .replace("slave m2", "myself,slave m2");
    assert_eq!(replicas_listed(&replica), listed(0, 0), "a replica has none");
    assert_eq!(replicas_listed(""), listed(0, 0));
}

#[test]
fn a_new_replica_is_listed_as_a_master_without_slots() {
    // As a master of a cluster lists its replica for some seconds after `CLUSTER REPLICATE`.
    let nodes = "\
        r1 127.0.0.1:26349@26348 master - 0 1795861926013 4 connected\n\
        m1 127.0.0.1:26343@26342 myself,master - 0 1795861926000 1 connected 0-5460\n\
        r2 127.0.0.1:26351@26350 slave m2 0 1795861927020 2 connected\n\
        m2 127.0.0.1:26345@26344 master - 0 1795861925007 2 connected 5461-10921\n";
    let listed = replicas_listed(nodes);
    assert_eq!((listed.usable, listed.failed, listed.without_slots), (0, 0, 1));
    assert!(listed.may_have_followed());
    let counted = replicas_listed(&nodes.replace("master - 0 1795861926013", "slave m1 0 1795861926013"));
    assert_eq!((counted.usable, counted.without_slots), (1, 0));
    let own = "m1 127.0.0.1:26343@26342 myself,master - 0 0 1 connected\n";
    assert!(
        !replicas_listed(own).may_have_followed(),
        "it is not its own replica"
    );
}

#[test]
fn a_host_of_ipv6_stands_in_brackets() {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let node = |host: &str| Value::Array(vec![text(host), Value::Int(7_000), text("id")]);
    let slots = vec![
        vec![Value::Int(0), Value::Int(5), node("fd00::1")],
        vec![Value::Int(6), Value::Int(9), node("")],
    ];
    let report = parse_report(String::new(), slots, "[fd00::2]:7001");
    let addresses: Vec<_> = report
        .ranges
        .iter()
        .map(|(_, _, address)| address.as_str())
        .collect();
    assert_eq!(addresses, ["[fd00::1]:7000", "[fd00::2]:7000"]);
    for address in addresses {
        super::super::client(&format!("redis://{address}"), None).unwrap();
    }
    for same in ["[::1]:7000", "10.0.0.1:7000", "host:7000", "host"] {
        assert_eq!(bracketed(same), same);
    }
}

#[test]
fn an_address_that_is_none_costs_its_own_slots_only() {
    let ranges = [(0, 99, "bad".to_owned()), (100, 16_383, "b:1".to_owned())];
    let map = SlotMap::build(&ranges, make);
    assert!(map.at(99).is_none());
    assert_eq!(map.at(100).map(|name| name.0.as_str()), Some("b:1"));
}

#[test]
fn an_older_report_counts_only_when_no_newer_one_arrives_for_long() {
    let (mut news, began) = (BestReport::default(), Instant::now());
    let at = |seconds| began + Duration::from_secs(seconds);
    assert!(news.accepts((7, 16_384), at(0)));
    assert!(!news.accepts((6, 16_384), at(1)));
    assert!(!news.accepts((7, 16_000), at(2)));
    assert!(news.accepts((7, 16_384), at(9)));
    assert!(!news.accepts((6, 16_384), at(18)));
    assert!(news.accepts((6, 16_384), at(19)));
    assert!(news.accepts((8, 100), at(19)));
    assert!(!news.accepts((7, 16_384), at(20)));
}
