//! Accounts with users, made by the operator's command line.

use crate::fixture::Fixture;
use harness::words;
use serde_json::{Map, Value, json};

/// The password of every user.
const PASSWORD: &str = "correct horse battery staple";
/// Attempts of a command that gets no connection to the store within its fixed 250 ms.
const ATTEMPTS: usize = 5;

/// An account called `name` on `plan` with a user of each of `roles`, and an API key of each mode that may do
/// everything.
pub fn account(fixture: &Fixture, name: &str, plan: &str, roles: &[&str]) -> Value {
    let made = done(
        fixture,
        &["account", "create", "--name", name, "--plan", plan],
        "",
    );
    let id = made["accountId"].as_str().expect("the account's id");
    let users: Map<String, Value> = roles
        .iter()
        .map(|&role| {
            let email = format!("{role}@{}.example", slug(name));
            (role.to_owned(), user(fixture, id, &email, role))
        })
        .collect();
    let key = |mode: &str| {
        let options = format!("--account {id} --mode {mode} --permissions read,write,approve");
        let options = words(&options);
        done(fixture, &[&["api-key", "create"][..], &options].concat(), "")["key"].clone()
    };
    json!({ "id": id, "name": name, "users": users, "liveKey": key("live"), "testKey": key("test") })
}

/// One more user of an account.
pub fn user(fixture: &Fixture, account: &str, email: &str, role: &str) -> Value {
    let options = format!("user create --account {account} --email {email} --role {role}");
    let options = words(&options);
    let made = done(fixture, &[&options[..], &["--password-stdin"]].concat(), PASSWORD);
    json!({ "id": made["userId"], "email": email, "role": role, "password": PASSWORD })
}

/// The document of a command. Three browsers share two cores, so a connection can take long; without one nothing was
/// sent, and the command is run again.
fn done(fixture: &Fixture, args: &[&str], stdin: &str) -> Value {
    let args = [args, &["--json"]].concat();
    let run = || fixture.cli().run_with_stdin(&args, stdin);
    let mut output = run();
    for _ in 1..ATTEMPTS {
        if !output.stdout.contains("no connection in time") {
            break;
        }
        output = run();
    }
    assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
    serde_json::from_str(&output.stdout).expect("a document")
}

/// The letters and digits of a name, as many as a part of an address may have.
fn slug(name: &str) -> String {
    const LONGEST: usize = 63;
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    let kept: String = kept.take(LONGEST).collect();
    if kept.is_empty() {
        "nobody".to_owned()
    } else {
        kept.to_lowercase()
    }
}
