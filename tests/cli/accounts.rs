//! Accounts, their plans and their users.

use crate::{account, document, ready, refused, written};
use harness::{Redis, assert_fields, words};
use serde_json::json;
use store::keys::{self, AccountKeys};
use store::script::change::VERSION_STEP;

const PASSWORD: &str = "a-canary-password";

#[test]
fn an_account_is_created_listed_and_shown() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let made = cli.json(&["account", "create", "--name", "Acme \"Ltd\"", "--plan", "builder"]);
    assert_eq!(made["ownerUserId"], json!(null));
    let id = made["accountId"].as_str().unwrap();
    let shown = cli.json(&["account", "show", "--account", id]);
    assert_fields!(shown, { "name": "Acme \"Ltd\"", "plan": "builder", "generation": 1, "users": [] });
    let list = cli.json(&["account", "list"]);
    assert_eq!(
        (&list["total"], &list["accounts"][0]["accountId"]),
        (&json!(1), &json!(id))
    );
    assert_fields!(refused(&cli, &["account", "show", "--account", "acct_none"], 1), { "code": "NOT_FOUND" });
}

#[test]
fn a_plan_is_changed_once() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    let set = cli.json(&["account", "set-plan", "--account", &id, "--plan", "free"]);
    let changed = json!(1 + VERSION_STEP);
    assert_fields!(set, { "plan": "free", "version": changed });
    let same = cli.json(&["account", "set-plan", "--account", &id, "--plan", "free"]);
    assert_eq!(same["version"], changed, "nothing changed");
    let none = refused(
        &cli,
        &words("account set-plan --account acct_none --plan free"),
        1,
    );
    assert_eq!(none["code"], "NOT_FOUND");
}

#[test]
fn an_owners_password_is_kept_as_a_hash_only() {
    let redis = Redis::start_durable();
    let cli = ready(&redis);
    let args = words(
        "account create --name x --plan free --owner-email Ann@Example.com --owner-password-stdin --json",
    );
    let made = document(&cli.run_with_stdin(&args, &format!("{PASSWORD}\n")), 0);
    let id = made["accountId"].as_str().unwrap();
    let user = &cli.json(&["account", "show", "--account", id])["users"][0];
    assert_eq!(
        user,
        &json!({ "userId": made["ownerUserId"], "email": "ann@example.com", "role": "owner" })
    );
    let record: String = redis.command(&["HGET", &AccountKeys::new(id).users(), "ann@example.com"]);
    assert!(record.contains("$argon2id$v=19$"), "{record}");
    let written = written(&redis);
    assert!(
        written.contains("ann@example.com"),
        "the searched files are those of the store"
    );
    assert!(!written.contains(PASSWORD), "the password is nowhere in clear");

    // An address can own any number of accounts (decision D74).
    let again = document(&cli.run_with_stdin(&args, PASSWORD), 0);
    assert_ne!(again["accountId"], id);
    assert_eq!(cli.json(&["account", "list"])["total"], 2);
    for bad in ["", "short", &"x".repeat(1025)] {
        assert_fields!(document(&cli.run_with_stdin(&args, bad), 2), {
            "code": "USAGE",
        }, "{} bytes", bad.len());
    }
}

#[test]
fn users_are_added_with_their_roles() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (id, other) = (account(&cli), account(&cli));
    let add = |account: &str, email: &str, role: &str| {
        let args =
            format!("user create --account {account} --email {email} --role {role} --password-stdin --json");
        cli.run_with_stdin(&words(&args), PASSWORD)
    };
    for role in ["owner", "admin", "manager", "viewer"] {
        let made = document(&add(&id, &format!("{role}@example.com"), role), 0);
        assert!(made["userId"].as_str().unwrap().starts_with("usr_"), "{made}");
    }
    assert_eq!(
        cli.json(&["account", "show", "--account", &id])["users"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert_fields!(document(&add(&id, "OWNER@example.com", "viewer"), 1), { "code": "CONFLICT" });
    document(&add(&other, "OWNER@example.com", "viewer"), 0);
    assert_fields!(document(&add("acct_none", "new@example.com", "viewer"), 1), { "code": "NOT_FOUND" });
    document(&add(&other, "new@example.com", "viewer"), 0);
}

#[test]
fn of_many_accounts_made_at_once_for_one_email_each_is_found() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let args =
        words("account create --name x --plan free --owner-email a@example.com --owner-password-stdin");
    let codes: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| cli.run_with_stdin(&args, PASSWORD).code))
            .collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap().unwrap())
            .collect()
    });
    assert_eq!(codes, [0; 4]);
    let listed = cli.json(&["account", "list"]);
    assert_eq!(listed["total"], 4);
    let lookup: String = redis.command(&["GET", &keys::user_lookup("a@example.com")]);
    for account in listed["accounts"].as_array().unwrap() {
        let id = account["accountId"].as_str().unwrap();
        assert!(lookup.contains(id), "{lookup}: {id}");
    }
}

/// A crash between the list and the record leaves an id without a record.
#[test]
fn an_id_without_a_record_is_skipped() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    redis.command::<u64>(&["SADD", "tollgate/accounts", "acct_ghost"]);
    assert_fields!(cli.json(&["account", "list"])["accounts"][0], { "accountId": id });
    assert_eq!(cli.json(&["account", "list"])["total"], 1);
    assert_eq!(cli.json(&["store", "accept"])["accepted"], 1);
    assert_eq!(cli.json(&["keys", "rotate"])["reencrypted"], 0);
    assert_eq!(
        redis.command::<u64>(&["EXISTS", &AccountKeys::new("acct_ghost").record()]),
        0
    );
}
