//! The memory that callers can make a server hold, by the figures of docs/guides/sizing.md, fits into its pod.

use super::{PRODUCTION, SMALL, servers};
use crate::files::text;
use serde_json::Value;

/// One MiB, which is what a manifest counts in. The figures of the document are taken as such too.
const MIB: f64 = 1024.0 * 1024.0;
const KIB: f64 = 1024.0;

const EDGE: &str = "**What callers can make an edge hold**";
const ADMIN: &str = "**What an admin server can hold**";

/// The row that begins with `start`, in the document's sum under `title`.
fn row(title: &str, start: &str) -> String {
    let document = text("docs/guides/sizing.md");
    let sum = document.split(title).nth(1).unwrap();
    let start = format!("| {start}");
    let line = sum.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("no row {start}")).to_owned()
}

/// The memory that the container may take, in bytes.
fn limit(container: &Value) -> f64 {
    let limit = container["resources"]["limits"]["memory"].as_str().unwrap();
    limit.strip_suffix("Gi").unwrap().parse::<f64>().unwrap() * KIB * MIB
}

/// The number right before `unit`, somewhere after `before`.
fn figure(row: &str, before: &str, unit: &str) -> f64 {
    let rest = row
        .split_once(before)
        .unwrap_or_else(|| panic!("{before}: {row}"))
        .1;
    let number = rest.split_once(unit).unwrap_or_else(|| panic!("{unit}: {row}")).0;
    let number = number.rsplit(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{number:?}: {row}"))
}

#[test]
fn memory_that_callers_can_occupy_fits_into_the_pod_of_the_edge() {
    let program = figure(&row(EDGE, "the program"), "|", " MB") * MIB;
    let key = figure(&row(EDGE, "remembered keys"), "×", " KB") * KIB;
    let row = row(EDGE, "each of `proxy.max_connections`");
    let plain = figure(&row, "|", " KB idle")
        + figure(&row, "idle;", " KB more while it is written to")
        + figure(&row, "heads of at most", " KB over HTTP/1.1");
    let tls = figure(&row, "over TLS up to", " KB more");
    for overlay in [SMALL, PRODUCTION] {
        for (name, container, _, settings) in servers(&crate::kustomize::build(overlay)) {
            if name != "edge" {
                continue;
            }
            let proxy = settings.proxy;
            assert!(
                !proxy.streaming,
                "a stream that waits for its caller is not in the sum"
            );
            let connection = match proxy.tls_cert.as_os_str().is_empty() {
                true => plain * KIB,
                false => (plain + tls) * KIB,
            };
            let sum = program
                + key * proxy.max_remembered_keys as f64
                + proxy.max_buffered_bytes as f64
                + connection * proxy.max_connections as f64;
            let limit = limit(&container);
            // An answer of an approved call, in memory as long as it is read and sent.
            let answer = settings.upstream.max_response_bytes as f64;
            assert!(
                sum + answer <= limit,
                "{overlay}: {:.0} of {:.0} MiB",
                (sum + answer) / MIB,
                limit / MIB
            );
            assert_eq!(proxy.max_connections_per_address, proxy.max_connections / 8);
        }
    }
}

#[test]
fn memory_of_an_admin_server_fits_into_its_pod() {
    let fixed = [
        figure(&row(ADMIN, "the program"), "|", " MB"),
        // A pod without a limit of CPU sees every core of its node.
        8.0 * figure(&row(ADMIN, "passwords"), "|", " MB each"),
        figure(&row(ADMIN, "what was read of the archive"), "|", " MB:"),
        figure(&row(ADMIN, "three segments in the making"), "|", " MB:"),
        figure(&row(ADMIN, "longer answers to reads"), "|", " MB,"),
        figure(&row(ADMIN, "exports and usage reports at work"), "|", " MB:"),
    ];
    let connection = figure(
        &row(ADMIN, "each of `admin.max_connections`"),
        "two listeners |",
        " KB",
    ) * KIB;
    let body = figure(&row(ADMIN, "bodies"), "and", " KiB") * KIB;
    for overlay in [SMALL, PRODUCTION] {
        for (name, container, _, settings) in servers(&crate::kustomize::build(overlay)) {
            if name != "admin" {
                continue;
            }
            let admin = settings.admin;
            let sum = fixed.iter().sum::<f64>() * MIB
                + 2.0 * (connection + body) * admin.max_connections as f64
                + admin.max_buffered_bytes as f64;
            let limit = limit(&container);
            assert!(
                sum <= limit,
                "{overlay}: {:.0} of {:.0} MiB",
                sum / MIB,
                limit / MIB
            );
            assert_eq!(admin.max_connections_per_address, admin.max_connections / 8);
        }
    }
}
