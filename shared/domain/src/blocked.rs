//! Blocked addresses (decision D11): ranges, their canonical form, which also applies to the ranges of API keys and
//! trusted proxies, and a fast membership test.

use ipnet::{IpNet, Ipv4Net};
use std::net::IpAddr;

/// Maximum number of blocked ranges.
pub const BLOCKED_MAX: usize = 10_000;
/// Bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_BITS: u8 = 96;

/// Returns a range in canonical form: no bits beyond its length, and IPv4 if within `::ffff:0:0/96`.
pub fn canonical(range: IpNet) -> IpNet {
    let range = range.trunc();
    let IpNet::V6(six) = range else { return range };
    let four = six.addr().to_ipv4_mapped();
    let length = six.prefix_len().checked_sub(MAPPED_BITS);
    match four.zip(length).map(|(four, length)| Ipv4Net::new(four, length)) {
        Some(Ok(four)) => IpNet::V4(four),
        _ => range,
    }
}

/// Parses a range or a single address into canonical form; `None` for any other text.
pub fn parse_range(text: &str) -> Option<IpNet> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    // The standard library refuses leading zeros, which could mean octal digits.
    let address: IpAddr = address.parse().ok()?;
    let range = match length {
        None => IpNet::from(address),
        Some(length) => IpNet::new(address, plain_number(length)?).ok()?,
    };
    Some(canonical(range))
}

/// Parses a number without leading zeros.
fn plain_number(text: &str) -> Option<u8> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let zeros = text.len() > 1 && text.starts_with('0');
    text.parse().ok().filter(|_| digits && !zeros)
}

/// Shortest prefix of an IPv4 range that is not [vast](is_vast).
const VAST_BELOW_V4: u8 = 8;
/// Shortest prefix of an IPv6 range that is not vast.
const VAST_BELOW_V6: u8 = 16;

/// Returns whether the range is larger than any network, so that blocking it is probably a mistake: IPv4 with a prefix
/// below 8 bits, IPv6 below 16.
pub fn is_vast(range: IpNet) -> bool {
    match canonical(range) {
        IpNet::V4(net) => net.prefix_len() < VAST_BELOW_V4,
        IpNet::V6(net) => net.prefix_len() < VAST_BELOW_V6,
    }
}

/// A set of ranges, sorted and merged, so that a membership test is one binary search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressSet {
    four: Vec<(u32, u32)>,
    six: Vec<(u128, u128)>,
}

impl AddressSet {
    /// Creates the set of the addresses in any of `ranges`.
    pub fn new(ranges: impl IntoIterator<Item = IpNet>) -> Self {
        let mut set = Self::default();
        for range in ranges {
            match canonical(range) {
                IpNet::V4(net) => set
                    .four
                    .push((net.network().to_bits(), net.broadcast().to_bits())),
                IpNet::V6(net) => set.six.push((net.network().to_bits(), net.broadcast().to_bits())),
            }
        }
        merge(&mut set.four);
        merge(&mut set.six);
        set
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.four.is_empty() && self.six.is_empty()
    }

    /// Returns whether `address` is in one of the ranges.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => holds(&self.four, address.to_bits()),
            IpAddr::V6(address) => holds(&self.six, address.to_bits()),
        }
    }
}

/// Sorts spans by their start and joins those that overlap.
fn merge<T: Copy + Ord>(spans: &mut Vec<(T, T)>) {
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
}

fn holds<T: Copy + Ord>(spans: &[(T, T)], address: T) -> bool {
    let after = spans.partition_point(|(first, _)| *first <= address);
    after
        .checked_sub(1)
        .and_then(|at| spans.get(at))
        .is_some_and(|(_, last)| address <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_has_one_form() {
        for (given, form) in [
            ("203.0.113.7/32", "203.0.113.7/32"),
            ("203.0.113.7/24", "203.0.113.0/24"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::ffff:203.0.113.7/128", "203.0.113.7/32"),
            ("::ffff:203.0.113.7/120", "203.0.113.0/24"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::ffff:0:0/95", "::fffe:0:0/95"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(canonical(net(given)).to_string(), form, "{given}");
        }
        for all in ["0.0.0.0/0", "::/0", "::ffff:1.2.3.4/96", "9.9.9.9/0"] {
            assert!(is_vast(net(all)), "{all}");
        }
        for vast in ["0.0.0.0/1", "96.0.0.0/7", "::ffff:0:0/103", "::/1", "2000::/15"] {
            assert!(is_vast(net(vast)), "{vast}");
        }
        for narrow in ["10.0.0.0/8", "::ffff:10.0.0.0/104", "2001::/16", "::/96"] {
            assert!(!is_vast(net(narrow)), "{narrow}");
        }
    }

    #[test]
    fn an_address_is_a_range_too() {
        let parse = |text: &str| parse_range(text).map(|range| range.to_string());
        for (text, form) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("::1", "::1/128"),
            ("203.0.113.7", "203.0.113.7/32"),
            ("::ffff:203.0.113.7", "203.0.113.7/32"),
            ("::ffff:203.0.113.7/120", "203.0.113.0/24"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(form), "{text}");
        }
        assert_eq!(parse("0.0.0.0/0").as_deref(), Some("0.0.0.0/0"));
        for bad in [
            "",
            "host",
            "10.0.0.0/33",
            " ::1",
            "::ffff:203.0.113.7/129",
            "10.0.0.0/08",
            "10.0.0.0/00",
            "::/032",
            "010.0.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_ends_of_a_range_are_in_it_and_their_neighbours_are_not() {
        let set =
            AddressSet::new(["203.0.113.0/24", "203.0.113.9/32", "2001:db8::/32", "10.0.0.1/32"].map(net));
        for (address, inside) in [
            ("203.0.113.0", true),
            ("203.0.113.255", true),
            ("203.0.112.255", false),
            ("203.0.114.0", false),
            ("::ffff:203.0.113.4", true),
            ("10.0.0.1", true),
            ("10.0.0.2", false),
            ("2001:db8::", true),
            ("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true),
            ("2001:db9::", false),
            ("::1", false),
        ] {
            assert_eq!(set.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!(AddressSet::new([]).is_empty() && !set.is_empty());
        assert!(!AddressSet::new([]).contains("::1".parse().unwrap()));
    }

    #[test]
    fn every_address_of_a_family_can_be_blocked() {
        let four = AddressSet::new([net("0.0.0.0/0")]);
        let six = AddressSet::new([net("::/0")]);
        for address in ["0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"] {
            let address = address.parse().unwrap();
            assert!(four.contains(address) && !six.contains(address), "{address}");
        }
        for address in ["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"] {
            let address = address.parse().unwrap();
            assert!(six.contains(address) && !four.contains(address), "{address}");
        }
    }

    /// Generates addresses that share most of their bits, so that their ranges overlap and touch.
    fn address() -> impl Strategy<Value = IpAddr> {
        let four = any::<[u8; 2]>().prop_map(|[a, b]| IpAddr::from(Ipv4Addr::new(10, a & 3, 0, b)));
        let six = any::<[u8; 2]>().prop_map(|[a, b]| {
            IpAddr::from(Ipv6Addr::from_bits(
                (0x2001 << 112) | (u128::from(a & 3) << 64) | u128::from(b),
            ))
        });
        let mapped = any::<u8>().prop_map(|b| IpAddr::from(Ipv4Addr::new(10, 0, 0, b).to_ipv6_mapped()));
        prop_oneof![four, six, mapped]
    }

    fn range() -> impl Strategy<Value = IpNet> {
        (address(), any::<u8>()).prop_map(|(address, length)| {
            let most = if address.is_ipv4() { 32 } else { 128 };
            // Short prefixes are rare; otherwise they would cover everything else.
            let length = most - (length % 40).min(most);
            IpNet::new(address, length).unwrap()
        })
    }

    proptest! {
        #[test]
        fn it_agrees_with_trying_each_range(
            ranges in prop::collection::vec(range(), 0..20),
            addresses in prop::collection::vec(address(), 1..40),
        ) {
            let set = AddressSet::new(ranges.iter().copied());
            for address in addresses {
                let each = ranges.iter().any(|range| canonical(*range).contains(&address.to_canonical()));
                prop_assert_eq!(set.contains(address), each, "{} in {:?}", address, ranges);
            }
        }
    }
}
