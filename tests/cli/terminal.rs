//! The command line on terminals and in pipes: width, colours, pipes that close, invalid UTF-8, hidden passwords.

use crate::{account, cli, ready};
use harness::{Cli, Redis};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

/// Invalid UTF-8.
const NO_TEXT: &[u8] = b"\xff\xfe";

/// Output of a line of bash on a terminal of this many columns.
fn terminal(cli: &Cli, columns: u16, line: &str) -> String {
    let shown = cli.script(&format!(
        "export TERM=xterm; script -qec 'stty rows 30 cols {columns}; {line}' /dev/null < /dev/null"
    ));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    shown.stdout.replace('\r', "")
}

#[test]
fn a_reader_who_leaves_ends_it_quietly() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    for (args, code) in [
        (&["account", "list"][..], 0),
        (&["account", "list", "--json"], 0),
        (&["ledger", "check"], 0),
        (&["completions", "bash"], 0),
        (&["--help"], 0),
        (&["account", "show", "--account", "acct_none", "--json"], 1),
        (&["audit", "export", "--account", &id], 1),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut run = cli.command(args);
        let output = run.stdin(Stdio::null()).stdout(writer).output().unwrap();
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {reported}");
        assert!(
            code == 1 && args[0] == "account" || reported.is_empty(),
            "{args:?}: {reported}"
        );
        assert!(!reported.contains("panicked"), "{reported}");
    }
    let lost = cli.script(&format!(
        "$ADMIN api-key create --account {id} --mode live > /dev/full"
    ));
    assert_eq!(lost.code, Some(1), "a key that nobody saw is a failure: {lost:?}");
    assert!(
        lost.stderr.contains("cannot be written") && !lost.stderr.contains("svc_"),
        "{lost:?}"
    );
    let keys = || {
        let list = cli.json(&["api-key", "list", "--account", &id]);
        list["apiKeys"].as_array().map_or(0, Vec::len)
    };
    let before = keys();
    for (redirected, code, made) in [(">&-", 1, 0), ("> /dev/null", 0, 1)] {
        let closed = cli.script(&format!(
            "$ADMIN api-key create --account {id} --mode live {redirected}"
        ));
        assert_eq!(closed.code, Some(code), "{redirected}: {closed:?}");
        assert_eq!(keys(), before + made, "{redirected}");
    }
}

#[test]
fn arguments_and_variables_may_be_no_text() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let not_utf8 = OsStr::from_bytes(NO_TEXT);
    let mut run = cli.command(&["--json", "account", "show", "--account"]);
    let output = run.arg(not_utf8).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["code"], "USAGE");
    let output = cli
        .command(&["account", "list"])
        .env("SOMETHING_ELSE", not_utf8)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "not one of ours: {output:?}");
    let output = cli
        .command(&["account", "list"])
        .env("TOLLGATE_ADMIN__LISTEN", not_utf8)
        .output()
        .unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), reported.lines().count()),
        (Some(2), 1),
        "{reported}"
    );
    assert!(reported.contains("TOLLGATE_ADMIN__LISTEN"), "{reported}");
}

#[test]
fn a_table_fits_the_terminal_and_is_whole_in_a_pipe() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let name = "long name ".repeat(10);
    let made = cli.json(&["account", "create", "--name", &name, "--plan", "free"]);
    let id = made["accountId"].as_str().unwrap();
    let list = "$ADMIN account list";
    for columns in [40, 60, 100] {
        let shown = terminal(&cli, columns, list);
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}: {shown}");
        assert!(shown.contains(id) && shown.contains('…'), "{columns}: {shown}");
    }
    let piped = cli.run(&["account", "list"]).stdout;
    assert!(piped.contains(name.trim()) && !piped.contains('…'), "{piped}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let redis = Redis::shared();
    let cli = cli(&redis);
    let colour = |line: &str| terminal(&cli, 80, line).contains('\u{1b}');
    assert!(colour("$ADMIN --help"));
    assert!(!colour("NO_COLOR=1 $ADMIN --help"));
    assert!(!cli.run(&["--help"]).stdout.contains('\u{1b}'));
}

#[test]
fn a_password_is_not_typed_where_it_is_shown() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let line = "$ADMIN account create --name A --plan free --owner-email a@example.com --owner-password-stdin; test $? = 2";
    let shown = terminal(&cli, 100, line);
    assert!(shown.contains("not from the terminal"), "{shown}");
    assert_eq!(cli.json(&["account", "list"])["total"], 0);
}
