//! Commands: those of containers and jobs, and those that an operator runs in the admin server's pod.

use super::{everything, list, operator, pods};
use crate::ADMIN;
use crate::files::{path, run};
use crate::image;
use crate::installation::{Installation, address};
use harness::Cli;
use serde_json::Value;
use std::process::Command;

/// Every container of ours reads the configuration file of the image.
#[test]
fn containers_read_the_file_of_the_image() {
    let mut count = 0;
    for (name, pod) in pods(&everything()) {
        for container in list(&pod["spec"]["containers"]) {
            if container["image"].as_str().unwrap().starts_with("tollgate") {
                let words: Vec<&str> = list(&container["command"])
                    .iter()
                    .map(|word| word.as_str().unwrap())
                    .collect();
                assert!(words[0].starts_with("/usr/local/bin/tollgate-"), "{name}");
                image::has_configuration(&words);
                count += 1;
            }
        }
    }
    assert_eq!(count, 7);
}

/// kustomize does not see the jobs: each line that creates one sets the image, and one whose image cannot be pulled
/// ends.
#[test]
fn jobs_have_the_image_of_the_overlay_and_an_end() {
    let mut count = 0;
    let files =
        ["store-init", "operator", "operator-s3"].map(|name| format!("deploy/kubernetes/{name}.yaml"));
    let documents = crate::documents::documents();
    for file in files.iter().chain(&documents) {
        for line in crate::files::text(file).lines() {
            let line = line.trim_start_matches("# ").trim_start();
            if line.contains("kubectl create --namespace tollgate --filename ") {
                let (sed, create) = line.split_once(" | ").unwrap_or_default();
                assert!(
                    create.starts_with("kubectl create --namespace tollgate --filename -"),
                    "{file}: {line}"
                );
                let made = run(Command::new("bash")
                    .args(["-ec", sed])
                    .env("IMAGE", "registry.example.com/a/tollgate:1.2.3")
                    .current_dir(path("")));
                let job: Value = serde_yaml::from_str(&made).unwrap();
                let image = &job["spec"]["template"]["spec"]["containers"][0]["image"];
                assert_eq!(image, "registry.example.com/a/tollgate:1.2.3", "{file}: {line}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 5);
    for job in operator() {
        assert!(job["spec"]["activeDeadlineSeconds"].is_u64(), "{job}");
    }
}

/// A job has no standard input and no files of the operator. Such commands run with the admin server's user of the
/// store.
#[test]
fn commands_that_read_something_run_in_the_pod_of_the_admin_server() {
    let installation = Installation::start();
    let made = installation
        .cli
        .json(&["account", "create", "--name", "Acme", "--plan", "startup"]);
    let account = made["accountId"].as_str().unwrap();
    let url = address(installation.dir.path(), "admin", &installation.place());
    let cli = Cli::new(ADMIN, url)
        .env("PASSWORD", "correct horse battery staple")
        .env(
            "FILE",
            path("tests/fixtures/litellm-prices.json").display().to_string(),
        );
    let document = crate::files::text("docs/guides/deployment.md");
    let lines: Vec<&str> = document
        .lines()
        .filter(|line| line.contains("$in_admin "))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        let line = line
            .replace("acct_…", account)
            .replace("< model_prices_and_context_window.json", "< \"$FILE\"");
        let done = cli.script(&format!("set -o pipefail; in_admin=$ADMIN; {line}"));
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
    }
    let users = installation.cli.json(&["user", "list", "--account", account]);
    assert_eq!(users["users"][0]["role"], "owner", "{users}");
}
