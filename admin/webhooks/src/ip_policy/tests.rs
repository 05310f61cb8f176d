//! Tests of every special block, its first and last address and its neighbours, and of every mapping of IPv4 into IPv6.

use super::*;

fn public(text: &str) -> bool {
    is_public(text.parse().unwrap())
}

/// First and last address of each refused IPv4 block, and the neighbouring addresses if they are public.
const BLOCKS_V4: [(&str, &str, Option<&str>, Option<&str>); 16] = [
    ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
    (
        "10.0.0.0",
        "10.255.255.255",
        Some("9.255.255.255"),
        Some("11.0.0.0"),
    ),
    (
        "100.64.0.0",
        "100.127.255.255",
        Some("100.63.255.255"),
        Some("100.128.0.0"),
    ),
    (
        "127.0.0.0",
        "127.255.255.255",
        Some("126.255.255.255"),
        Some("128.0.0.0"),
    ),
    (
        "168.63.129.16",
        "168.63.129.16",
        Some("168.63.129.15"),
        Some("168.63.129.17"),
    ),
    (
        "169.254.0.0",
        "169.254.255.255",
        Some("169.253.255.255"),
        Some("169.255.0.0"),
    ),
    (
        "172.16.0.0",
        "172.31.255.255",
        Some("172.15.255.255"),
        Some("172.32.0.0"),
    ),
    (
        "192.0.0.0",
        "192.0.0.255",
        Some("191.255.255.255"),
        Some("192.0.1.0"),
    ),
    ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
    (
        "192.88.99.0",
        "192.88.99.255",
        Some("192.88.98.255"),
        Some("192.88.100.0"),
    ),
    (
        "192.168.0.0",
        "192.168.255.255",
        Some("192.167.255.255"),
        Some("192.169.0.0"),
    ),
    (
        "198.18.0.0",
        "198.19.255.255",
        Some("198.17.255.255"),
        Some("198.20.0.0"),
    ),
    (
        "198.51.100.0",
        "198.51.100.255",
        Some("198.51.99.255"),
        Some("198.51.101.0"),
    ),
    (
        "203.0.113.0",
        "203.0.113.255",
        Some("203.0.112.255"),
        Some("203.0.114.0"),
    ),
    ("224.0.0.0", "239.255.255.255", Some("223.255.255.255"), None),
    ("240.0.0.0", "255.255.255.255", None, None),
];

#[test]
fn ipv4_blocks_are_refused_up_to_their_edges() {
    for (first, last, below, above) in BLOCKS_V4 {
        assert!(!public(first), "{first}");
        assert!(!public(last), "{last}");
        for neighbour in [below, above].into_iter().flatten() {
            assert!(public(neighbour), "{neighbour}");
        }
    }
    for well_known in ["8.8.8.8", "1.1.1.1", "93.184.216.34", "169.253.0.1"] {
        assert!(public(well_known), "{well_known}");
    }
    for metadata in [
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "169.254.170.2",
    ] {
        assert!(!public(metadata), "{metadata}");
    }
}

/// Returns the classification of an address by the standard library, as a second opinion.
fn surely_special(ip: Ipv4Addr) -> bool {
    ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || ip.is_multicast()
        || ip.is_broadcast()
        || ip.is_unspecified()
}

#[test]
fn one_address_of_every_ipv4_network_of_256_agrees_with_the_standard_library() {
    for network in 0..=0x00ff_ffff_u32 {
        let ip = Ipv4Addr::from_bits(network << 8 | 0x11);
        assert!(!(surely_special(ip) && is_public_v4(ip)), "{ip}");
    }
}

#[test]
fn ipv6_is_refused_outside_of_global_unicast_and_in_its_special_blocks() {
    for refused in [
        "::",
        "::1",
        "::2",
        "::ffff",
        "100::",
        "100::1",
        "100:0:0:1::1",
        "1fff:ffff::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2", // Teredo
        "2001:2::1",
        "2001:10::1",
        "2001:1f:ffff::1",
        "2001:20::1",
        "2001:2f:ffff::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "3ffe::1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254", // a cloud's metadata
        "fdff::1",
        "fe80::1",
        "fe80::5efe:808:808",
        "febf::1",
        "fec0::1",
        "feff::1",
        "ff00::1",
        "ff02::1",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ] {
        assert!(!public(refused), "{refused}");
    }
    for allowed in [
        "2000::1",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "3ffd:ffff::1",
        "3fff:1000::1",
    ] {
        assert!(public(allowed), "{allowed}");
    }
}

/// Returns the spellings of an IPv4 address as an IPv6 one, and whether a public address may be reached that way.
fn disguises(ip: Ipv4Addr) -> [(String, bool); 11] {
    let [a, b, c, d] = ip.octets();
    let groups = format!("{:x}:{:x}", ip.to_bits() >> 16, ip.to_bits() & 0xffff);
    [
        (format!("::ffff:{a}.{b}.{c}.{d}"), false),          // mapped
        (format!("::{a}.{b}.{c}.{d}"), false),               // compatible
        (format!("::ffff:0:{groups}"), false),               // translated
        (format!("64:ff9b::{a}.{b}.{c}.{d}"), true),         // NAT64
        (format!("64:ff9b:1::{groups}"), false),             // NAT64 of the site
        (format!("64:ff9b:0:0:0:1:{groups}"), false),        // next to NAT64
        (format!("2002:{groups}::1"), true),                 // 6to4
        (format!("2a00:1450:4001:1:0:5efe:{groups}"), true), // ISATAP
        (format!("2a00:1450:4001:1:200:5efe:{groups}"), true),
        (format!("2a00:1450:4001:1:300:5efe:{groups}"), true),
        (format!("2002:808:808:1:200:5efe:{groups}"), true), // one within the other
    ]
}

#[test]
fn ipv4_in_ipv6_is_judged_by_the_ipv4_address() {
    for (first, last, below, above) in BLOCKS_V4 {
        for inner in [first, last] {
            for (outer, _) in disguises(inner.parse().unwrap()) {
                assert!(!public(&outer), "{outer} hides {inner}");
            }
        }
        for inner in [below, above].into_iter().flatten() {
            for (outer, allowed) in disguises(inner.parse().unwrap()) {
                assert_eq!(public(&outer), allowed, "{outer} holds {inner}");
            }
        }
    }
    // Not an ISATAP address: the group before has other bits.
    assert!(public("2a00:1450:4001:1:1:5efe:a00:1"));
}
