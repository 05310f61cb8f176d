//! Pods that use the archive: the operator's jobs and the backup.

use super::{SMALL, list, named, operator, pods};
use crate::files::{path, run, text};
use crate::installation::Installation;
use crate::kustomize::{build, documents};
use harness::assert_fields;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn a_pod_that_reads_the_archive_runs_where_it_is() {
    let resources = build(SMALL);
    let mut seen = BTreeSet::new();
    for (name, pod) in pods(&[resources.clone(), operator()].concat()) {
        let volumes = list(&pod["spec"]["volumes"]);
        let claims = volumes
            .iter()
            .any(|volume| volume["persistentVolumeClaim"]["claimName"] == "tollgate-admin");
        if !claims || name == "admin" {
            continue;
        }
        let affinity =
            &pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
        let admin = named(&resources, "Deployment", "tollgate-admin");
        assert_fields!(affinity, {
            "labelSelector": admin["spec"]["selector"],
        }, "{name}: the volume is on one node at a time");
        assert_eq!(affinity["topologyKey"], "kubernetes.io/hostname");
        assert_fields!(pod["spec"]["securityContext"], {
            "runAsUser": admin["spec"]["template"]["spec"]["securityContext"]["runAsUser"],
        });
        // By default the kubelet changes the modes of all files of the archive for each job.
        assert_eq!(
            pod["spec"]["securityContext"]["fsGroupChangePolicy"], "OnRootMismatch",
            "{name}"
        );
        seen.insert(name);
    }
    assert_eq!(seen, ["backup", "operator"].map(str::to_owned).into());
}

/// During a restore the admin server does not run, and a pod with an affinity to its node would wait for ever.
#[test]
fn the_jobs_of_a_restore_wait_for_no_admin_server() {
    let guide = text("docs/guides/backup.md");
    let line = guide.lines().find(|line| line.contains("affinity:/")).unwrap();
    let (command, _) = line.trim().split_once(" | kubectl create").unwrap();
    let mut shell = Command::new("bash");
    let shell = shell.args(["-euc", command]).current_dir(path("."));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.yaml");
    std::fs::write(
        &file,
        run(shell.env("IMAGE", "registry.example.com/tollgate:0.1.0")),
    )
    .unwrap();
    let mut job = documents(&path("deploy/kubernetes/operator.yaml")).remove(0);
    let pod = &mut job["spec"]["template"]["spec"];
    assert!(pod.as_object_mut().unwrap().remove("affinity").is_some());
    pod["containers"][0]["image"] = "registry.example.com/tollgate:0.1.0".into();
    assert_eq!(documents(&file), [job], "{line}");
}

/// Runs the CronJob's script here: the script in its config map, with its environment.
#[test]
fn the_backup_runs_as_its_job_says() {
    let installation = Installation::start();
    let dir = tempfile::tempdir().unwrap();
    let resources = build(SMALL);
    let pods = pods(&resources);
    let (_, pod) = pods.iter().find(|(name, _)| name == "backup").unwrap();
    let container = &pod["spec"]["containers"][0];
    let words: Vec<&str> = list(&container["command"])
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let [shell, script] = words[..] else {
        panic!("{words:?}")
    };
    let file = dir.path().join("backup.sh");
    let map = named(&resources, "ConfigMap", "tollgate-backup");
    assert_eq!(script, "/usr/local/lib/tollgate/backup.sh");
    std::fs::write(&file, map["data"]["backup.sh"].as_str().unwrap()).unwrap();
    // The mounts are at other paths here.
    let mounts = list(&container["volumeMounts"]);
    let mut command = Command::new(shell);
    command.arg(&file);
    for variable in list(&container["env"]) {
        let (name, value) = (
            variable["name"].as_str().unwrap(),
            variable["value"].as_str().unwrap(),
        );
        let mounted = mounts
            .iter()
            .any(|mount| value.starts_with(mount["mountPath"].as_str().unwrap()));
        let value = match name {
            "STORE_URL_FILE" => installation.url_file("backup"),
            _ if mounted => format!("{}{value}", dir.path().display()),
            _ => value.to_owned(),
        };
        assert_eq!(mounted, value.contains('/'), "{name}");
        command.env(name, value);
    }
    std::fs::create_dir_all(format!("{}/var/lib/tollgate/archive", dir.path().display())).unwrap();
    let printed = run(&mut command);
    assert!(printed.contains("/var/lib/tollgate-backups/20"), "{printed}");
    assert_eq!(container["image"], {
        let store = named(&resources, "StatefulSet", "tollgate-redis");
        store["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    });
}
