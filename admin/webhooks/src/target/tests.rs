//! Tests of every spelling of a URL that might hide another host.

use super::*;

fn refused(text: &str) -> String {
    let refused = DeliveryTarget::parse(text, false);
    refused.map_or_else(|bad| bad.to_string(), |target| panic!("{text:?} is {target:?}"))
}

#[test]
fn a_url_is_read_into_its_parts() {
    let target = DeliveryTarget::parse("HTTPS://Hooks.Example.COM:8443/a%20b/?x=1&y=é", false).unwrap();
    assert!(target.tls);
    assert_eq!(
        target.host,
        ReceiverHost::Name(DnsName::try_from("hooks.example.com").unwrap())
    );
    assert_eq!(
        (
            target.port,
            target.authority.to_str().unwrap(),
            target.path.as_str()
        ),
        (8443, "hooks.example.com:8443", "/a%20b/?x=1&y=%C3%A9")
    );
    let plain = DeliveryTarget::parse("http://example.com", false).unwrap();
    assert_eq!(
        (
            plain.tls,
            plain.port,
            plain.authority.to_str().unwrap(),
            plain.path.as_str()
        ),
        (false, 80, "example.com", "/")
    );
    let international = DeliveryTarget::parse("https://bücher.example/", false).unwrap();
    assert_eq!(international.authority, "xn--bcher-kva.example");
    let dotted = DeliveryTarget::parse("https://example.com./x", false).unwrap();
    assert_eq!(
        dotted.host,
        ReceiverHost::Name(DnsName::try_from("example.com").unwrap())
    );
    let address = DeliveryTarget::parse("https://8.8.8.8/", false).unwrap();
    assert_eq!(address.host, ReceiverHost::Address([8, 8, 8, 8].into()));
    let six = DeliveryTarget::parse("http://[2606:4700:4700::1111]:81/", false).unwrap();
    assert_eq!(
        (six.port, six.authority),
        (81, HeaderValue::from_static("[2606:4700:4700::1111]:81"))
    );
    assert_eq!(six.host.server_name().to_str(), "2606:4700:4700::1111");
    let dots = DeliveryTarget::parse("https://example.com/a/../b", false).unwrap();
    assert_eq!(dots.path, "/b");
}

#[test]
fn private_addresses_are_refused_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.000.000.001",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "0x0",
        "10.1",
        "192.168.257",
        "3232235521",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "[fd00::1]",
        "[fe80::1]",
        "[ff02::1]",
    ] {
        for url in [
            format!("http://{host}/"),
            format!("https://{host}:8443/x?y"),
            format!("HTTP://{host}"),
        ] {
            assert_eq!(refused(&url), "url must not be a private address.", "{url}");
        }
        assert!(
            DeliveryTarget::parse(&format!("http://{host}/"), true).is_ok(),
            "{host}"
        );
    }
}

#[test]
fn the_own_machine_is_refused_by_name() {
    for host in [
        "localhost",
        "localhost.",
        "LOCALHOST",
        "LocalHost.",
        "a.localhost",
        "a.b.localhost.",
        "ｌｏｃａｌｈｏｓｔ",
        "%6cocalhost",
        "localhos\u{24e3}",
        "local\u{ad}host",
    ] {
        let url = format!("http://{host}:9091/metrics");
        assert_eq!(refused(&url), "url must not name this machine.", "{url}");
        assert!(DeliveryTarget::parse(&url, true).is_ok(), "{url}");
    }
    for other in ["notlocalhost", "localhost.example.com", "localhost-1.example.com"] {
        assert!(
            DeliveryTarget::parse(&format!("http://{other}/"), false).is_ok(),
            "{other}"
        );
    }
}

#[test]
fn everything_else_is_refused_with_a_sentence_of_its_own() {
    let long = format!("https://example.com/{}", "a".repeat(URL_MAX));
    let long_name = format!("https://{}example.com/", "a.".repeat(130));
    let long_label = format!("https://{}.example.com/", "a".repeat(64));
    let scheme = "url must begin with https:// or http://.";
    let lookup = "url must have a host name that can be looked up.";
    let host = "url must have a host.";
    let form = "url must be a URL with a host name or an address.";
    let port = "url must have a port from 1 to 65535.";
    let blank = "url must not contain spaces, backslashes or control characters.";
    let credentials = "url must not hold credentials.";
    for (url, sentence) in [
        ("", scheme),
        ("example.com/hook", scheme),
        ("//example.com", scheme),
        ("http:example.com", scheme),
        ("http:/example.com", scheme),
        ("http:\\\\example.com", blank),
        ("ftp://example.com/", scheme),
        ("file:///etc/passwd", scheme),
        ("javascript:alert(1)", scheme),
        ("gopher://127.0.0.1:6379/_", scheme),
        ("unix:/run/docker.sock", scheme),
        (" https://example.com/", blank),
        ("https://example.com/\n", blank),
        ("ht\ttp://example.com/", blank),
        ("https://exam\nple.com/", blank),
        ("https://example.com/\u{0}", blank),
        ("https://example.com/a b", blank),
        ("https://example.com/\u{a0}", blank),
        ("http://", host),
        ("http:///example.com", host),
        ("http://\\example.com", blank),
        ("http://?x", host),
        ("http://:80/", form),
        ("https://[::1", form),
        ("https://[fe80::1%25eth0]/", form),
        ("https://1.2.3.4.5/", form),
        ("https://256.1.1.1/", form),
        ("https://4294967296/", form),
        ("https://example.com:65536/", port),
        ("https://example.com:x/", port),
        ("https://exa%00mple.com/", form),
        ("https://exa%2fmple.com/", form),
        ("https://xn--a/", form),
        ("https://user:secret@example.com/", credentials),
        ("https://user@example.com/", credentials),
        ("https://@example.com/", credentials),
        ("https://:@example.com/", credentials),
        ("https://8.8.8.8\\@127.0.0.1/", blank),
        ("https://example.com:0/", port),
        ("https://example.com/#part", "url must not have a fragment (#)."),
        ("https://example.com/#", "url must not have a fragment (#)."),
        ("https://a..example.com/", lookup),
        ("https://.example.com/", lookup),
        ("https://example.com../", lookup),
        ("https://localhost../", lookup),
        ("https://./", lookup),
        ("https://exa$mple.com/", lookup),
        (&long_label, lookup),
        (&long_name, lookup),
        (&long, "url must have at most 2048 bytes."),
    ] {
        assert_eq!(refused(url), sentence, "{url:?}");
    }
}

#[test]
fn an_at_sign_after_the_host_is_no_credential() {
    for url in ["https://example.com/@x", "https://example.com/?to=a@b"] {
        let target = DeliveryTarget::parse(url, false).unwrap();
        assert_eq!(target.authority, "example.com", "{url}");
    }
}
