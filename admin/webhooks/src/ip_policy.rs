//! Allowed addresses of deliveries: the public ones (decision D44).
//!
//! For IPv4 the special blocks are listed and the rest is public. For IPv6 it is the other way round: only global
//! unicast addresses, 2000::/3, can be public, except for the special blocks within. An IPv6 address that a gateway or
//! tunnel maps to an IPv4 address is also judged by the IPv4 address.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that belong to nobody on the public internet.
const REFUSED_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),        // this network; 0.0.0.0 reaches this machine
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // carrier-grade NAT, and some clouds' metadata
    v4(127, 0, 0, 0, 8),      // loopback
    v4(168, 63, 129, 16, 32), // a cloud's host agent: looks public, replies only inside
    v4(169, 254, 0, 0, 16),   // link-local, and most clouds' metadata
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // 6to4 relays, deprecated
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved, and broadcast
];

/// Global unicast addresses. Loopback, unspecified, mapped, compatible and translated IPv4, discard-only, unique local,
/// site-local, link-local, multicast and segment routing (5f00::/16) addresses are all outside.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Blocks within that belong to nobody on the public internet.
const REFUSED_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments: Teredo, benchmarks, ORCHID, DRIP
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x3ffe, 0, 16),     // former test network (6bone), returned
    v6(0x3fff, 0, 20),     // documentation
];

/// IPv4 addresses behind NAT64: the last four bytes. The local-use prefix 64:ff9b:1::/48 is refused altogether.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 96);
/// IPv4 addresses behind 6to4: the four bytes after the prefix.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 16);
/// Seventh group of an ISATAP address, whose last four bytes are an IPv4 address.
const ISATAP: u16 = 0x5efe;
/// The bits "universal" and "group" of the group before it, which are ignored.
const ISATAP_FLAGS: u16 = 0x0300;

/// Returns whether the address belongs to a host on the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !REFUSED_V4.iter().any(|block| block.contains(&ip))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let bytes = ip.octets();
    if NAT64.contains(&ip) {
        return is_public_v4(last_four(bytes));
    }
    if !GLOBAL_V6.contains(&ip) || REFUSED_V6.iter().any(|block| block.contains(&ip)) {
        return false;
    }
    let [_, _, a, b, c, d, ..] = bytes;
    if SIX_TO_FOUR.contains(&ip) && !is_public_v4(Ipv4Addr::new(a, b, c, d)) {
        return false;
    }
    let [.., flags, isatap, _, _] = ip.segments();
    let tunnelled = isatap == ISATAP && flags & !ISATAP_FLAGS == 0;
    !tunnelled || is_public_v4(last_four(bytes))
}

fn last_four(bytes: [u8; 16]) -> Ipv4Addr {
    let [.., a, b, c, d] = bytes;
    Ipv4Addr::new(a, b, c, d)
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

/// Returns a block by its first two groups; the others are zero.
const fn v6(first: u16, second: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix)
}

#[cfg(test)]
mod tests;
