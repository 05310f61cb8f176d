//! The manifests as Kubernetes would get them: valid by its own schemas, every pod locked down, and everything that one
//! file says of another, or of the programs, is true.

mod archive;
mod collector;
mod commands;
mod ingress;
mod memory;

use crate::files::{path, run};
use crate::installation::Installation;
use crate::kustomize::{build, documents};
use crate::settings::accepted;
use crate::{image, systemd};
use harness::assert_fields;
use serde_json::{Value, json};
use settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const SMALL: &str = "deploy/kubernetes/overlays/small";
const PRODUCTION: &str = "deploy/kubernetes/overlays/production";
/// Schemas of these versions: the oldest that the documents name, and the newest that the package has.
const VERSIONS: [&str; 2] = ["1.30", "1.37"];
/// The secrets that docs/guides/deployment.md says how to make.
const SECRETS: [&str; 7] = [
    "tollgate-master-key",
    "tollgate-edge-store",
    "tollgate-admin-store",
    "tollgate-operator-store",
    "tollgate-backup-store",
    "tollgate-redis-users",
    "tollgate-s3",
];

/// The jobs that an operator creates by hand.
fn operator() -> Vec<Value> {
    let files = ["store-init", "operator", "operator-s3"];
    files
        .iter()
        .flat_map(|name| documents(&path(&format!("deploy/kubernetes/{name}.yaml"))))
        .collect()
}

/// All kustomizations and jobs, for rules that hold for all of them.
fn everything() -> Vec<Value> {
    [build(SMALL), build(PRODUCTION), operator()].concat()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn named<'a>(resources: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = resources
        .iter()
        .find(|resource| resource["kind"] == kind && resource["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Workloads, each with its pod template.
fn pods(resources: &[Value]) -> Vec<(String, &Value)> {
    let kinds = ["Deployment", "StatefulSet", "Job", "CronJob"];
    let running = resources
        .iter()
        .filter(|resource| kinds.iter().any(|kind| resource["kind"] == *kind));
    running
        .map(|resource| {
            let template = match resource["kind"].as_str() {
                Some("CronJob") => &resource["spec"]["jobTemplate"]["spec"]["template"],
                _ => &resource["spec"]["template"],
            };
            let component = &template["metadata"]["labels"]["app.kubernetes.io/component"];
            (component.as_str().unwrap().to_owned(), template)
        })
        .collect()
}

#[test]
fn they_are_valid_by_the_schemas_of_kubernetes() {
    let python = harness::python_package(
        env!("CARGO_TARGET_TMPDIR"),
        "kubernetes-validate",
        "kubernetes-validate==1.37.0",
    );
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = build(SMALL);
    let at = wrong
        .iter()
        .position(|resource| resource["kind"] == "Deployment")
        .unwrap();
    wrong[at]["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = json!({});
    for (name, resources) in [
        ("small", build(SMALL)),
        ("production", build(PRODUCTION)),
        ("operator", operator()),
        ("wrong", wrong),
    ] {
        let file = dir.path().join(format!("{name}.yaml"));
        // The Prometheus operator's resources have no schema here.
        let known = resources
            .iter()
            .filter(|resource| resource["kind"] != "PodMonitor");
        let texts: Vec<String> = known.map(|resource| resource.to_string()).collect();
        std::fs::write(&file, texts.join("\n---\n")).unwrap();
        for version in VERSIONS {
            let mut check = Command::new(python.join("bin/kubernetes-validate"));
            let check = check.args(["--strict", "--quiet", "-k", version]).arg(&file);
            let done = check.output().unwrap();
            let printed = format!(
                "{}{}",
                String::from_utf8_lossy(&done.stdout),
                String::from_utf8_lossy(&done.stderr)
            );
            let clean = done.status.success() && printed.trim().is_empty();
            assert_eq!(clean, name != "wrong", "{name} {version}: {printed}");
        }
    }
}

#[test]
fn every_pod_is_locked_down() {
    for (name, pod) in pods(&everything()) {
        let spec = &pod["spec"];
        assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
        assert!(spec["securityContext"]["runAsUser"].as_u64().unwrap() > 0);
        assert_fields!(spec["securityContext"]["seccompProfile"], { "type": "RuntimeDefault" }, "{name}");
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(spec[field].is_null(), "{name}: {field}");
        }
        for container in list(&spec["containers"]) {
            let context = json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] } });
            assert_eq!(container["securityContext"], context, "{name}");
            assert!(container["resources"]["requests"]["cpu"].is_string(), "{name}");
            assert!(container["resources"]["limits"]["memory"].is_string(), "{name}");
        }
        for volume in list(&spec["volumes"]) {
            assert!(volume["hostPath"].is_null(), "{name}");
        }
    }
    let resources = build(SMALL);
    let labels = &named(&resources, "Namespace", "tollgate")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted");
    assert_fields!(named(&resources, "ServiceAccount", "tollgate"), {
        "automountServiceAccountToken": false,
    });
}

/// Environment variables of a container of ours.
fn environment(resources: &[Value], container: &Value) -> BTreeMap<String, String> {
    let mut all = image::environment();
    for source in list(&container["envFrom"]) {
        let map = named(
            resources,
            "ConfigMap",
            source["configMapRef"]["name"].as_str().unwrap(),
        );
        let data = map["data"].as_object().unwrap().iter();
        all.extend(data.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())));
    }
    for variable in list(&container["env"]) {
        let value = variable["value"].as_str().unwrap_or("from a secret");
        all.insert(variable["name"].as_str().unwrap().to_owned(), value.to_owned());
    }
    all
}

/// Name, container, pod and settings of each of our servers in an overlay.
fn servers(resources: &[Value]) -> Vec<(String, Value, Value, Settings)> {
    let ours = pods(resources)
        .into_iter()
        .filter(|(name, _)| name == "edge" || name == "admin");
    ours.map(|(name, pod)| {
        let container = pod["spec"]["containers"][0].clone();
        let settings = accepted(&environment(resources, &container));
        (name, container, pod.clone(), settings)
    })
    .collect()
}

#[test]
fn settings_are_accepted_and_ports_are_theirs() {
    for overlay in [SMALL, PRODUCTION] {
        let resources = build(overlay);
        for (name, container, _, settings) in servers(&resources) {
            let (listen, ops) = match name.as_str() {
                "edge" => (settings.proxy.listen, settings.proxy.ops_listen),
                _ => (settings.admin.listen, settings.admin.ops_listen),
            };
            let port = |at: usize| container["ports"][at]["containerPort"].as_u64().unwrap();
            assert_eq!((port(0), port(1)), (listen.port().into(), ops.port().into()));
            assert_eq!(container["ports"][1]["name"], "ops");
            // The data directory is a volume, and the only one that can be written to.
            let mounts = list(&container["volumeMounts"]);
            let writable: Vec<&Value> = mounts.iter().filter(|mount| mount["readOnly"] != true).collect();
            assert_eq!(writable.len(), 1);
            let data = writable[0]["mountPath"].as_str().unwrap();
            assert!(settings.proxy.data_dir.starts_with(data));
            let archive = &settings.audit.archive;
            let place = if overlay == SMALL { data } else { "s3://" };
            assert!(name == "edge" || archive.starts_with(place), "{archive}");
        }
        // Jobs that use the archive mount it where the servers do.
        let place = servers(&resources)
            .into_iter()
            .find_map(|(name, _, _, settings)| (name == "admin").then_some(settings.audit.archive));
        for job in operator() {
            let settings = accepted(&environment(
                &resources,
                &job["spec"]["template"]["spec"]["containers"][0],
            ));
            assert_eq!(Some(settings.audit.archive), place);
        }
    }
}

#[test]
fn the_document_about_upgrades_says_what_the_manifest_says() {
    let text = crate::files::text("docs/guides/upgrading.md");
    let resources = build(SMALL);
    let edge = named(&resources, "Deployment", "tollgate-edge");
    let spec = &edge["spec"]["template"]["spec"];
    for printed in [
        format!(
            "terminationGracePeriodSeconds: {}",
            spec["terminationGracePeriodSeconds"]
        ),
        format!(
            "periodSeconds: {}\n",
            spec["containers"][0]["readinessProbe"]["periodSeconds"]
        ),
        "{ name: TOLLGATE_PROXY__DRAIN_DELAY_MS, value: \"10000\" }".to_owned(),
    ] {
        assert!(text.contains(&printed), "{printed}");
    }
    let manifest = crate::files::text("deploy/kubernetes/base/edge.yaml");
    assert!(
        manifest.contains("TOLLGATE_PROXY__DRAIN_DELAY_MS, value: \"10000\"")
            && !manifest.contains("preStop")
    );
}

#[test]
fn the_store_has_a_limit_that_leaves_room_for_a_rewrite() {
    let conf = crate::files::text("deploy/redis/redis.conf");
    let limit = conf
        .lines()
        .find_map(|line| line.strip_prefix("maxmemory "))
        .unwrap();
    let gigabytes: u64 = limit.strip_suffix("gb").unwrap().parse().unwrap();
    assert!(gigabytes > 0);
    let resources = build(SMALL);
    let store = named(&resources, "StatefulSet", "tollgate-redis");
    let pod = &store["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"];
    assert_eq!(*pod, format!("{}Gi", gigabytes * 2));
    let compose = crate::files::text("deploy/compose/compose.yaml");
    assert!(compose.contains(&format!("\n    mem_limit: {}g\n", gigabytes * 2)));
}

#[test]
fn a_pod_has_the_time_to_end() {
    for (name, container, pod, settings) in [SMALL, PRODUCTION]
        .iter()
        .flat_map(|overlay| servers(&build(overlay)))
    {
        let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
        let readiness = &container["readinessProbe"];
        let noticed =
            readiness["periodSeconds"].as_u64().unwrap() * readiness["failureThreshold"].as_u64().unwrap();
        let (delay_ms, drain_ms) = match name.as_str() {
            "edge" => (settings.proxy.drain_delay_ms, settings.proxy.drain_ms),
            _ => (settings.admin.drain_delay_ms, systemd::ADMIN_STOP_SECONDS * 1000),
        };
        assert!(delay_ms >= noticed * 1000, "{name}: {delay_ms} ms");
        assert!(grace * 1000 >= delay_ms + drain_ms + 5_000, "{name}: {grace} s");
    }
}

#[tokio::test]
async fn probes_ask_what_the_programs_answer() {
    let installation = Installation::start();
    let (edge, admin) = (installation.edge(), installation.admin());
    let daemons = BTreeMap::from([("edge", &*edge), ("admin", &*admin)]);
    let mut count = 0;
    for (name, container, _, _) in servers(&build(SMALL)) {
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let get = &container[probe]["httpGet"];
            assert_eq!(get["port"], "ops", "{name}");
            let answer = daemons[name.as_str()].ops(get["path"].as_str().unwrap()).unwrap();
            assert_eq!(answer.0, 200, "{name} {probe}: {answer:?}");
            count += 1;
        }
    }
    assert_eq!(count, 6);
    // The store's probe, by the user that it names.
    let resources = build(SMALL);
    let store = named(&resources, "StatefulSet", "tollgate-redis");
    let command = &store["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["exec"]["command"];
    let words: Vec<&str> = list(command).iter().map(|word| word.as_str().unwrap()).collect();
    let port = installation.redis().port().to_string();
    assert_eq!(
        run(Command::new(words[0]).args(["-p", &port]).args(&words[1..])).trim(),
        "PONG"
    );
    let mut wrong = Command::new(words[0]);
    wrong.args(["-p", "1"]).args(&words[1..]);
    assert!(!wrong.output().unwrap().status.success());
}

#[test]
fn selectors_find_their_pods() {
    for overlay in [SMALL, PRODUCTION] {
        let resources = build(overlay);
        let all = pods(&resources);
        let selected = |wanted: &Value| {
            let wanted = wanted.as_object().unwrap();
            let fits = |pod: &Value| {
                wanted
                    .iter()
                    .all(|(name, value)| pod["metadata"]["labels"][name] == *value)
            };
            all.iter().find(|(_, pod)| fits(pod)).map(|(_, pod)| *pod)
        };
        for resource in &resources {
            let spec = &resource["spec"];
            match resource["kind"].as_str().unwrap() {
                "Service" => {
                    let pod = selected(&spec["selector"]).expect("a pod");
                    let ports = list(&pod["spec"]["containers"][0]["ports"]);
                    for port in list(&spec["ports"]) {
                        assert!(ports.iter().any(|of| of["name"] == port["targetPort"]), "{port}");
                    }
                }
                kind @ ("Deployment" | "StatefulSet" | "PodDisruptionBudget") => {
                    let policy = &spec["unhealthyPodEvictionPolicy"];
                    assert!(
                        kind != "PodDisruptionBudget" || policy == "AlwaysAllow",
                        "no pod is ready without the store, and nodes must be drained then, too"
                    );
                    assert!(selected(&spec["selector"]["matchLabels"]).is_some(), "{resource}");
                }
                "HorizontalPodAutoscaler" => {
                    let target = &spec["scaleTargetRef"];
                    let scaled = named(
                        &resources,
                        target["kind"].as_str().unwrap(),
                        target["name"].as_str().unwrap(),
                    );
                    assert!(
                        scaled["spec"]["replicas"].is_null(),
                        "each `apply` would set back what the scaler decided"
                    );
                }
                "Ingress" => {
                    for rule in list(&spec["rules"]) {
                        let service = &rule["http"]["paths"][0]["backend"]["service"];
                        let service = (service["name"].as_str().unwrap(), &service["port"]["name"]);
                        let found = named(&resources, "Service", service.0);
                        assert_eq!(found["spec"]["ports"][0]["name"], *service.1);
                    }
                }
                "PodMonitor" => scrapes_as_the_alerts_expect(&spec["podMetricsEndpoints"][0]),
                _ => {}
            }
        }
    }
}

/// Asserts that both servers' port is scraped under the job names that rules and dashboards use.
fn scrapes_as_the_alerts_expect(endpoint: &Value) {
    assert_eq!(endpoint["port"], "ops");
    let config: Value =
        serde_yaml::from_str(&crate::files::text("deploy/prometheus/prometheus.yml")).unwrap();
    let wanted: Vec<&Value> = list(&config["scrape_configs"])
        .iter()
        .map(|job| &job["job_name"])
        .collect();
    let named: Vec<&Value> = list(&endpoint["relabelings"])
        .iter()
        .map(|rule| &rule["replacement"])
        .collect();
    assert_eq!(named, wanted);
}

#[test]
fn nothing_connects_but_what_has_to() {
    let resources = build(SMALL);
    let denied = &named(&resources, "NetworkPolicy", "deny-everything")["spec"];
    assert_fields!(denied, { "podSelector": {}, "policyTypes": ["Ingress", "Egress"] });
    let ports = |name: &str, way: &str| -> BTreeSet<u64> {
        let rules = list(&named(&resources, "NetworkPolicy", name)["spec"][way]);
        let all = rules.iter().flat_map(|rule| list(&rule["ports"]));
        all.map(|port| port["port"].as_u64().unwrap()).collect()
    };
    assert_eq!(ports("tollgate-edge", "ingress"), [8080, 9090].into());
    assert_eq!(ports("tollgate-edge", "egress"), [53, 443, 6379].into());
    assert_eq!(ports("tollgate-admin", "ingress"), [8081, 9091].into());
    assert_eq!(ports("tollgate-redis", "ingress"), [6379].into());
    assert!(ports("tollgate-redis", "egress").is_empty());
    assert!(ports("tollgate-operator", "ingress").is_empty());
    for name in ["tollgate-operator", "tollgate-backup"] {
        assert_eq!(ports(name, "egress"), [53, 6379].into(), "{name}");
    }
    // Pods that resolve names may use a cache on their node.
    for policy in resources
        .iter()
        .filter(|resource| resource["kind"] == "NetworkPolicy")
    {
        for rule in list(&policy["spec"]["egress"]) {
            let cache = json!({ "ipBlock": { "cidr": "169.254.20.10/32" } });
            let is_dns = list(&rule["ports"]).iter().any(|port| port["port"] == 53);
            assert_eq!(list(&rule["to"]).contains(&cache), is_dns, "{policy}");
        }
    }
    // The store's policy admits every pod that connects to it.
    let admitted =
        &named(&resources, "NetworkPolicy", "tollgate-redis")["spec"]["ingress"][0]["from"][0]["podSelector"];
    let admitted = list(&admitted["matchExpressions"][0]["values"]);
    for (name, _) in pods(&[resources.clone(), operator()].concat()) {
        assert!(name == "store" || admitted.contains(&json!(name)), "{name}");
    }
    // No way to private addresses, metadata services among them, but to the store.
    for name in ["tollgate-edge", "tollgate-admin"] {
        for rule in list(&named(&resources, "NetworkPolicy", name)["spec"]["egress"]) {
            let block = &rule["to"][0]["ipBlock"];
            let private = ["10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];
            assert!(
                block.is_null()
                    || private
                        .iter()
                        .all(|range| list(&block["except"]).contains(&json!(range)))
            );
        }
    }
    // The component s3 takes the volume away, two servers share the work, and the operator reaches the bucket.
    let production = build(PRODUCTION);
    let operator = &named(&production, "NetworkPolicy", "tollgate-operator")["spec"]["egress"];
    let bucket = list(operator).last().unwrap();
    assert_eq!(bucket["ports"], json!([{ "protocol": "TCP", "port": 443 }]));
    assert_eq!(list(&bucket["to"][0]["ipBlock"]["except"]).len(), 6);
    assert!(
        production
            .iter()
            .all(|resource| resource["kind"] != "PersistentVolumeClaim")
    );
    assert_fields!(named(&production, "Deployment", "tollgate-admin")["spec"], { "replicas": 2 });
}

#[test]
fn secrets_are_those_that_the_document_makes() {
    let document = crate::files::text("docs/guides/deployment.md");
    let mut seen = BTreeSet::new();
    let text = serde_json::to_string(&everything()).unwrap();
    for (mark, after) in [
        ("\"secret\":{", "\"name\":\""),
        ("secretKeyRef\":{", "\"name\":\""),
        ("\"secretName\":", "\""),
    ] {
        for (at, _) in text.match_indices(mark) {
            let rest = &text[at + mark.len()..];
            let name = rest.split(after).nth(1).unwrap().split('"').next().unwrap();
            seen.insert(name.to_owned());
        }
    }
    seen.retain(|name| !name.ends_with("-tls") && name != "data" && !name.is_empty());
    let known: BTreeSet<String> = SECRETS.map(str::to_owned).into();
    let strange: Vec<&String> = seen
        .iter()
        .filter(|name| name.starts_with("tollgate") && !known.contains(*name))
        .collect();
    assert_eq!(strange, Vec::<&String>::new(), "{seen:?}");
    for name in SECRETS {
        assert!(document.contains(name) && text.contains(name), "{name}");
    }
    assert!(
        everything().iter().all(|resource| resource["kind"] != "Secret"),
        "a secret in the repository"
    );
}
