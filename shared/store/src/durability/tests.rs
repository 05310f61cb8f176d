//! Tests of configured durability, of the servers' offers, and of the results.

use super::*;

fn always() -> Vec<(String, String)> {
    let pairs = ALWAYS.iter();
    pairs
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn info(version: &str, aof: &str, replicas: u8) -> String {
    let online =
        (0..replicas).map(|at| format!("slave{at}:ip=10.0.0.{at},port=1,state=online,offset=5,lag=0\r\n"));
    let online: String = online.collect();
    format!(
        "# Server\r\nredis_version:{version}\r\naof_enabled:{aof}\r\nconnected_slaves:{replicas}\r\n{online}"
    )
}

#[test]
fn a_disk_is_confirmed_by_waitaof_or_by_always_and_by_nothing_else() {
    let disk = |version, aof, config: Option<&[_]>| Offer::from_info(&info(version, aof, 0), config).disk;
    assert_eq!(disk("8.0.0", "1", None), Ok(Disk::WaitAof));
    assert_eq!(disk("8.0.2", "1", Some(&[])), Ok(Disk::WaitAof));
    // These have the command, but it replies too early.
    for early in [
        "7.0.15",
        "7.2.4",
        "7.4.9",
        "7.2.4\r\nvalkey_version:8.1.1",
        "8.0.0\r\nvalkey_version:9.0.0",
    ] {
        assert_eq!(disk(early, "1", Some(&always())), Ok(Disk::Always), "{early}");
        assert!(
            disk(early, "1", Some(&[])).unwrap_err().contains("Valkey"),
            "{early}"
        );
    }
    assert!(disk("7.0.15", "1", None).unwrap_err().contains("CONFIG GET"));
    for (at, (name, _)) in ALWAYS.iter().enumerate() {
        let mut config = always();
        config[at].1 = "other".to_owned();
        assert!(disk("7.0.15", "1", Some(&config)).is_err(), "{name}");
        config.remove(at);
        assert!(disk("7.0.15", "1", Some(&config)).is_err(), "{name}");
    }
    for version in ["7.0.15", "8.0.2"] {
        assert!(
            disk(version, "0", Some(&always()))
                .unwrap_err()
                .contains("appendonly")
        );
    }
    assert!(disk("", "1", None).is_err(), "an unknown version has no WAITAOF");
}

#[test]
fn one_server_that_cannot_is_enough_to_say_no() {
    let good = Offer::from_info(&info("8.0.2", "1", 2), None);
    let bad = Offer::from_info(&info("8.0.2", "0", 1), None);
    let of = |requested, offers: &[Offer]| DurabilityStatus::from_offers(requested, offers);
    let alone = |offer: &Offer| Offer {
        replicas: 0,
        listed: 0,
        had_replica: false,
        ..offer.clone()
    };
    assert_eq!(of(Durability::Auto, &[alone(&good)]).confirmed, Durability::Aof);
    let auto = of(Durability::Auto, &[alone(&good), alone(&bad)]);
    assert_eq!((auto.confirmed, auto.refuses()), (Durability::Async, false));
    assert!(auto.sentence().contains("appendonly no"));
    let both = [good.clone(), bad];
    let aof = of(Durability::Aof, &both);
    assert!(aof.refuses() && aof.sentence().contains("store.durability = aof"));
    assert!(!of(Durability::Aof, std::slice::from_ref(&good)).refuses());
    assert!(!of(Durability::Replicas(1), &both).refuses());
    let two = of(Durability::Replicas(2), &both);
    assert!(two.refuses() && two.sentence().contains("has 1 replicas"));
    assert!(!of(Durability::Async, &both).refuses());
}

#[test]
fn auto_waits_for_a_replica_that_may_take_over_and_the_others_say_what_they_risk() {
    let offer = |replicas, listed| Offer::from_info(&info("7.0.15", "1", replicas), None).listed(listed);
    let of = |requested, offers: &[Offer]| DurabilityStatus::from_offers(requested, offers);
    let auto = of(Durability::Auto, &[offer(1, 1), offer(2, 0)]);
    assert_eq!((auto.confirmed, &auto.lacks), (Durability::Replicas(1), &None));
    assert!(!auto.exposed && !auto.refuses());
    // Listed but not in sync: it may still take over.
    let behind = of(Durability::Auto, &[offer(1, 1), offer(0, 1)]);
    assert_eq!(behind.confirmed, Durability::Replicas(1));
    assert!(behind.sentence().contains("a replica that does not follow it"));
    // A master without replicas confirms only by itself.
    let mixed = of(Durability::Auto, &[offer(1, 1), offer(0, 0)]);
    assert_eq!(mixed.confirmed, Durability::Async);
    assert!(mixed.sentence().contains("CONFIG GET"));
    for requested in [Durability::Async, Durability::Aof] {
        let always = Offer::from_info(&info("8.0.2", "1", 1), None);
        let status = of(requested, std::slice::from_ref(&always));
        assert!(status.exposed, "{requested}");
        assert!(
            status.sentence().contains("a failover may take back"),
            "{requested}"
        );
        assert!(
            !of(
                requested,
                &[Offer {
                    replicas: 0,
                    listed: 0,
                    ..always
                }]
            )
            .exposed,
            "{requested}"
        );
    }
    assert!(!of(Durability::Replicas(1), &[offer(1, 1)]).exposed);
}

#[test]
fn a_server_reports_whether_a_replica_followed_recently() {
    let of = |lines: &str| Offer::from_info(&(info("7.0.15", "1", 0) + lines), None).had_replica;
    assert!(of(
        "repl_backlog_active:1\r\nsync_full:1\r\nsync_partial_ok:0\r\n"
    ));
    assert!(of(
        "repl_backlog_active:1\r\nsync_full:0\r\nsync_partial_ok:2\r\n"
    ));
    // It has taken over, and no replica has followed it so far.
    assert!(!of(
        "repl_backlog_active:1\r\nsync_full:0\r\nsync_partial_ok:0\r\n"
    ));
    // The last replica left more than `repl-backlog-ttl` ago.
    assert!(!of(
        "repl_backlog_active:0\r\nsync_full:1\r\nsync_partial_ok:2\r\n"
    ));
    assert!(!of(""));
}

#[test]
fn a_backup_is_no_replica() {
    let receiving = "connected_slaves:2\r\nslave0:ip=10.0.0.1,port=0,state=wait_bgsave,offset=0,lag=0\r\n\
                     slave1:ip=10.0.0.2,port=0,state=send_bulk,offset=0,lag=0\r\n";
    let traces = "run_id:abc\r\nrepl_backlog_active:1\r\nsync_full:1\r\n";
    let offer = Offer::from_info(&[receiving, traces].concat(), None);
    assert_eq!(offer.replicas, 0);
    assert!(!offer.clone().marked(None).had_replica);
    // The mark of a server that has taken over, or was started anew, names another process.
    assert!(!offer.clone().marked(Some("abd")).had_replica);
    assert!(offer.marked(Some("abc")).had_replica);
}
