//! The compose file: its form by the schema of compose files, and that everything in it fits together and to the
//! programs.

use crate::files::{path, run, text};
use crate::image;
use crate::settings::accepted;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const FILE: &str = "deploy/compose/compose.yaml";

/// The file as compose reads it: `<<` merged, variables replaced by their defaults.
fn compose() -> Value {
    let mut text = text(FILE);
    while let Some(start) = text.find("${") {
        let end = start + text[start..].find('}').unwrap();
        let (_, default) = text[start + 2..end]
            .split_once(":-")
            .expect("every variable has a default");
        let default = default.to_owned();
        text.replace_range(start..=end, &default);
    }
    let mut yaml: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    yaml.apply_merge().unwrap();
    serde_json::to_value(yaml).unwrap()
}

fn services(compose: &Value) -> impl Iterator<Item = (&String, &Value)> {
    compose["services"].as_object().unwrap().iter()
}

fn words(value: &Value) -> Vec<&str> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn it_is_a_compose_file() {
    let schema: Value = serde_json::from_str(&text("tests/fixtures/compose-spec/compose-spec.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let compose = compose();
    let errors: Vec<String> = validator
        .iter_errors(&compose)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, [""; 0]);
    // The check can fail.
    let mut wrong = compose;
    wrong["services"]["proxy"]["read_onyl"] = true.into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn every_service_is_locked_down() {
    let compose = compose();
    for (name, service) in services(&compose) {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(
            words(&service["security_opt"]),
            ["no-new-privileges:true"],
            "{name}"
        );
        assert!(
            service["privileged"].is_null() && service["network_mode"].is_null(),
            "{name}"
        );
        let image = service["image"].as_str().unwrap();
        assert!(
            image == "tollgate:latest" || !image.ends_with(":latest"),
            "{name}: {image}"
        );
        // No container runs as root: the image's own user, or a named one.
        let user = service["user"].as_str();
        assert!(
            image == "tollgate:latest" || user.is_some_and(|user| !user.starts_with("0:")),
            "{name}"
        );
        // Published ports are on loopback.
        for port in words(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
        assert!(
            ["operator", "backup", "grafana"].contains(&name.as_str())
                || service["healthcheck"]["test"].is_array(),
            "{name}"
        );
    }
    for network in ["store", "metrics"] {
        assert_eq!(compose["networks"][network]["internal"], true);
    }
    let store = &compose["services"]["redis"];
    assert_eq!(words(&store["networks"]), ["store"]);
    assert_eq!(
        store["healthcheck"]["start_period"], "1h",
        "the servers are not started beside a store that failed while it read its file"
    );
}

#[test]
fn named_files_exist() {
    let compose = compose();
    let names =
        |kind: &str| -> BTreeSet<String> { compose[kind].as_object().unwrap().keys().cloned().collect() };
    let (volumes, networks, secrets) = (names("volumes"), names("networks"), names("secrets"));
    for (name, service) in services(&compose) {
        for volume in words(&service["volumes"]) {
            let source = volume.split(':').next().unwrap();
            match source.starts_with('.') {
                true => assert!(path("deploy/compose").join(source).exists(), "{name}: {source}"),
                false => assert!(volumes.contains(source), "{name}: {source}"),
            }
        }
        assert!(
            words(&service["networks"])
                .iter()
                .all(|network| networks.contains(*network)),
            "{name}"
        );
        for secret in service["secrets"].as_array().unwrap_or(&Vec::new()) {
            let secret = secret.as_str().or(secret["source"].as_str()).unwrap();
            assert!(secrets.contains(secret), "{name}: {secret}");
        }
        for other in service["depends_on"]
            .as_object()
            .into_iter()
            .flat_map(|others| others.keys())
        {
            assert!(compose["services"][other].is_object(), "{name}: {other}");
        }
    }
    let build = &compose["services"]["proxy"]["build"];
    assert_eq!(
        (build["context"].as_str(), build["dockerfile"].as_str()),
        (Some("../.."), Some("deploy/docker/Dockerfile"))
    );
}

/// The environment of a service on top of the image's.
fn environment(service: &Value) -> BTreeMap<String, String> {
    let mut all = image::environment();
    let own = service["environment"].as_object().unwrap();
    all.extend(
        own.iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())),
    );
    all
}

#[test]
fn ports_paths_and_deadlines_agree_with_the_settings() {
    let compose = compose();
    for (name, program) in [("proxy", "tollgate-proxy"), ("admin", "tollgate-admin")] {
        let service = &compose["services"][name];
        let settings = accepted(&environment(service));
        let (listen, server) = match name {
            "proxy" => (settings.proxy.listen, "edge"),
            _ => (settings.admin.listen, "admin"),
        };
        assert!(
            words(&service["ports"])[0].ends_with(&format!(":{}", listen.port())),
            "{name}"
        );
        assert_eq!(words(&service["command"])[0], format!("/usr/local/bin/{program}"));
        let check = words(&service["healthcheck"]["test"]);
        assert_eq!(
            check[..4],
            ["CMD", "/usr/local/bin/tollgate-admin", "health", server]
        );
        image::has_configuration(&words(&service["command"]));
        image::has_configuration(&check);
        let grace: u64 = service["stop_grace_period"]
            .as_str()
            .unwrap()
            .trim_end_matches('s')
            .parse()
            .unwrap();
        assert!(name == "admin" || grace * 1000 > settings.proxy.drain_ms + 5_000);
        // Secrets come by file, from where compose puts them.
        for (key, secret) in environment(service)
            .iter()
            .filter(|(key, _)| key.ends_with("_FILE"))
        {
            let Some(secret) = secret.strip_prefix("/run/secrets/") else {
                assert!(key.contains("PLANS") || key.contains("PRICES"), "{key}");
                continue;
            };
            assert!(words(&service["secrets"]).contains(&secret), "{name}: {secret}");
        }
        let data = settings.proxy.data_dir.parent().unwrap().display().to_string();
        assert!(
            words(&service["volumes"])
                .iter()
                .any(|volume| volume.ends_with(&format!(":{data}")))
        );
    }
}

/// A denial by the edge names the dashboard's address.
#[test]
fn the_programs_agree_on_their_addresses() {
    let compose = compose();
    let of = |name: &str| {
        let settings = accepted(&environment(&compose["services"][name]));
        let admin = settings.public_url().to_string();
        assert!(!admin.contains("0.0.0.0"), "{name}: nobody can open {admin}");
        admin
    };
    let [proxy, admin, operator] = ["proxy", "admin", "operator"].map(of);
    assert_eq!([&proxy, &operator], [&admin; 2]);
    image::has_configuration(&words(&compose["services"]["operator"]["entrypoint"]));
}

#[test]
fn prometheus_scrapes_both_servers() {
    let config: Value = serde_yaml::from_str(&text("deploy/compose/prometheus.yml")).unwrap();
    let compose = compose();
    let jobs = config["scrape_configs"].as_array().unwrap();
    for (name, section) in [("proxy", "PROXY"), ("admin", "ADMIN")] {
        let job = jobs
            .iter()
            .find(|job| job["job_name"] == format!("tollgate-{name}"))
            .unwrap();
        let target = &job["dns_sd_configs"][0];
        assert_eq!(target["names"][0], name);
        let ops = &image::environment()[&format!("TOLLGATE_{section}__OPS_LISTEN")];
        assert!(ops.ends_with(&format!(":{}", target["port"])), "{ops}");
        let networks = words(&compose["services"][name]["networks"]);
        assert!(
            networks.contains(&"metrics")
                && words(&compose["services"]["prometheus"]["networks"]) == ["metrics"]
        );
    }
}

#[test]
fn prepare_makes_the_secrets_once() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["compose", "redis"] {
        run(Command::new("cp")
            .arg("-r")
            .arg(path("deploy").join(folder))
            .arg(dir.path()));
    }
    let place = dir.path().join("compose");
    let _ = std::fs::remove_dir_all(place.join("secrets"));
    let prepare = || run(&mut Command::new(place.join("prepare.sh")));
    let printed = prepare();
    let compose = compose();
    let files = || -> Vec<String> {
        let secrets = compose["secrets"].as_object().unwrap().values();
        secrets
            .map(|secret| std::fs::read_to_string(place.join(secret["file"].as_str().unwrap())).unwrap())
            .collect()
    };
    let first = files();
    assert!(
        first
            .iter()
            .all(|content| !content.trim().is_empty() && !printed.contains(content.trim()))
    );
    prepare();
    assert_eq!(files(), first, "a second run changes no secret");
    // Both ways to rotate leave what containers can read.
    run(Command::new(place.join("prepare.sh")).env("ROTATE", "edge"));
    run(Command::new(place.join("../redis/users.sh"))
        .arg(place.join("secrets"))
        .env("ROTATE", "admin"));
    for secret in compose["secrets"].as_object().unwrap().values() {
        let file = place.join(secret["file"].as_str().unwrap());
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o444, "{}", file.display());
    }
    let first = files();
    // Each user has a password of its own, and the store's file has none of them in clear.
    let passwords: BTreeSet<&str> = first
        .iter()
        .filter_map(|text| text.split(':').nth(2)?.split('@').next())
        .collect();
    let acl = std::fs::read_to_string(place.join("secrets/users.acl")).unwrap();
    assert!(passwords.len() >= 3 && passwords.iter().all(|password| !acl.contains(password)));
    assert!(
        std::fs::read_to_string(place.join("secrets/edge.url"))
            .unwrap()
            .trim()
            .ends_with("@redis:6379")
    );
    // Every variable of the file is in .env.example.
    let example = text("deploy/compose/.env.example");
    for name in text(FILE)
        .split("${")
        .skip(1)
        .map(|rest| rest.split(":-").next().unwrap().to_owned())
    {
        assert!(example.contains(&format!("\n{name}=")), "{name}");
    }
}

/// The backup can read the archive and has a directory of its own to write to. The script reads each of its variables.
#[test]
fn the_backup_is_of_store_and_archive() {
    let compose = compose();
    let backup = &compose["services"]["backup"];
    assert_eq!(backup["user"].as_str().unwrap(), image::user());
    let script = text("deploy/backup/backup.sh");
    let variables = backup["environment"].as_object().unwrap();
    for name in variables.keys() {
        assert!(script.contains(&format!("#   {name} ")), "{name}");
    }
    let archive = accepted(&environment(&compose["services"]["admin"]))
        .audit
        .archive;
    assert_eq!(variables["ARCHIVE"], archive.as_str());
    // The admin server's own volume: a new one would be root's.
    let volume = words(&backup["volumes"])
        .into_iter()
        .find_map(|volume| volume.strip_prefix("admin:"));
    let volume = Path::new(volume.unwrap());
    let backups = Path::new(variables["BACKUPS"].as_str().unwrap());
    assert!(Path::new(&archive).starts_with(volume) && backups.starts_with(volume));
    assert!(!backups.starts_with(&archive), "a backup is not of backups");
    // The same version as the store, which can read the backup.
    assert_eq!(backup["image"], compose["services"]["redis"]["image"]);
    let document = text("docs/guides/backup.md");
    assert!(document.contains(backup["image"].as_str().unwrap()));
}
