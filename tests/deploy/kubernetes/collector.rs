//! The component `otlp`: network policies allow egress to the collector that it names.

use super::{PRODUCTION, SMALL, list, named};
use crate::image;
use crate::kustomize::build_with;
use crate::settings::accepted;
use harness::assert_fields;
use serde_json::json;

/// Pods can reach the collector if the component names one, and none otherwise.
#[test]
fn a_collector_is_reached_where_one_is_named() {
    for overlay in [SMALL, PRODUCTION] {
        let resources = build_with(overlay, "deploy/kubernetes/components/otlp");
        let settings = &named(&resources, "ConfigMap", "tollgate-settings")["data"];
        let endpoint = settings["TOLLGATE_TELEMETRY__OTLP_ENDPOINT"].as_str().unwrap();
        let port: u16 = endpoint.rsplit(':').next().unwrap().parse().unwrap();
        for name in ["tollgate-edge", "tollgate-admin"] {
            let rules = list(&named(&resources, "NetworkPolicy", name)["spec"]["egress"]);
            let collector =
                json!([{ "namespaceSelector": { "matchLabels": { "tollgate/collector": "yes" } } }]);
            let last = rules.last().unwrap();
            assert_fields!(last, {
                "to": collector, "ports": [{ "protocol": "TCP", "port": port }],
            }, "{name}");
        }
        let mut variables = image::environment();
        let pairs = settings.as_object().unwrap().iter();
        variables.extend(pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())));
        assert_eq!(accepted(&variables).telemetry.otlp_endpoint, endpoint);
    }
}
