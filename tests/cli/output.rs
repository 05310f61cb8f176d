//! One document on standard output with `--json`, one line on standard error, and the exit codes of decision D59.

use crate::{cli, document, ready, refused};
use harness::Redis;

#[test]
fn help_and_version_are_no_mistakes() {
    let redis = Redis::shared();
    for args in [
        &["--help"][..],
        &["--version"],
        &["account", "create", "--help"],
        &["sandbox-upstream", "--help"],
    ] {
        let output = cli(&redis).run(args);
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        assert!(
            output.stdout.len() > 20 && output.stderr.is_empty(),
            "{args:?}: {output:?}"
        );
    }
}

/// Cases that cannot be a line of `every/cases.txt`.
#[test]
fn wrong_usage_exits_2_with_one_document() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let check = |args: &[&str]| {
        let answer = refused(&cli, args, 2);
        let sentence = answer["error"].as_str();
        assert!(
            sentence.is_some_and(|line| !line.contains('\n')),
            "{args:?}: {answer}"
        );
        assert_eq!(answer["ok"], false, "{args:?}");
    };
    check(&["account", "create", "--name", " ", "--plan", "free"]);
    check(&["agent", "freeze", "--account", "acct_1", "--agent", "a b"]);
    check(&["--config", "/nonexistent/tollgate.toml", "account", "list"]);
    assert_eq!(cli.json(&["account", "list"])["total"], 0, "nothing was made");
}

#[test]
fn a_bad_configuration_is_one_line_and_exits_2() {
    let redis = Redis::shared();
    for (name, value) in [
        ("TOLLGATE_STORE__TIMEOUT_MS", "soon"),
        ("TOLLGATE_STORE__URK", "1"),
        ("TOLLGATE_STORE__URL", "ftp://127.0.0.1"),
    ] {
        let output = cli(&redis).env(name, value).run(&["account", "list"]);
        assert_eq!(
            (output.code, output.stderr.lines().count()),
            (Some(2), 1),
            "{name}: {output:?}"
        );
        assert!(
            output.stdout.is_empty() && output.stderr.starts_with("tollgate-admin: "),
            "{output:?}"
        );
    }
}

#[test]
fn a_store_that_is_down_exits_1() {
    let redis = Redis::start();
    let cli = ready(&redis);
    redis.kill9();
    let answer = refused(&cli, &["account", "list"], 1);
    assert_eq!(answer["code"], "STORE");
    let plain = cli.run(&["account", "list"]);
    assert!(
        plain.stdout.is_empty() && plain.stderr.contains("did not answer"),
        "{plain:?}"
    );
    let address = format!("redis://127.0.0.1:{}", redis.port());
    let named = format!("the store's address is {address} (store.url, TOLLGATE_STORE__URL; settings: ");
    assert!(plain.stderr.contains(&named), "{plain:?}");
}

#[test]
fn a_wrong_password_is_named_as_such() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let url = format!("redis://stranger:secret-word@127.0.0.1:{}", redis.port());
    let output = cli.env("TOLLGATE_STORE__URL", &url).run(&["account", "list"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    for part in [
        "the store rejected the credentials",
        "the store's address is redis://127.0.0.1:",
    ] {
        assert!(output.stderr.contains(part), "{output:?}");
    }
    assert!(!output.stderr.contains("secret-word"), "{output:?}");
}

#[test]
fn without_json_standard_output_is_for_people() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let output = cli.run(&["account", "create", "--name", "Ann's", "--plan", "free"]);
    assert!(
        output.stdout.starts_with("Account acct_") && output.stderr.is_empty(),
        "{output:?}"
    );
    let list = cli.run(&["account", "list"]).stdout;
    assert!(
        list.starts_with("ACCOUNT") && list.contains("Ann's") && list.lines().count() == 2,
        "{list}"
    );
    document(&cli.run(&["--json", "account", "list"]), 0);
}
