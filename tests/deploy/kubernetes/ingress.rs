//! The ingress of the component, against the settings of the edge behind it.

use super::{PRODUCTION, named, servers};
use crate::kustomize::build;

/// A stream may pause for as long as the edge allows it.
#[test]
fn the_ingress_waits_longer_than_the_edge() {
    let resources = build(PRODUCTION);
    let ingress = named(&resources, "Ingress", "tollgate-edge");
    let annotations = &ingress["metadata"]["annotations"];
    let seconds = annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"]
        .as_str()
        .unwrap();
    let waits_ms = seconds.parse::<u64>().unwrap() * 1000;
    let (_, _, _, settings) = servers(&resources)
        .into_iter()
        .find(|(name, ..)| name == "edge")
        .unwrap();
    let proxy = &settings.proxy;
    for within_ms in [
        proxy.stream_idle_ms,
        proxy.stream_first_byte_ms,
        settings.upstream.timeout_ms,
    ] {
        assert!(waits_ms > within_ms, "{within_ms}");
    }
}
