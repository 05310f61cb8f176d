//! The operator's command line as a script uses it: output, exit codes, and effects in the store.
#![cfg(test)]

mod accounts;
mod agents;
mod api_keys;
mod decisions;
mod deposits;
mod escrows;
mod every;
mod holds;
mod ip;
mod ledger;
mod master_keys;
mod output;
mod prices;
mod reference;
mod shells;
mod store;
mod terminal;

use harness::{Cli, CliOutput, Redis};
use serde_json::Value;

/// Commands on the store of `redis`.
fn cli(redis: &Redis) -> Cli {
    Cli::new(env!("CARGO_BIN_EXE_tollgate-admin"), redis.url())
}

/// Initialises the store of `redis`. Returns commands on it.
fn ready(redis: &Redis) -> Cli {
    let cli = cli(redis);
    assert_eq!(cli.json(&["store", "init"])["ok"], true);
    cli
}

/// Creates an account. Returns its id.
fn account(cli: &Cli) -> String {
    let made = cli.json(&["account", "create", "--name", "Test", "--plan", "startup"]);
    made["accountId"].as_str().expect("an id").to_owned()
}

/// Runs a command with `--json` that must exit with `code`. Returns its document.
#[track_caller]
fn refused(cli: &Cli, args: &[&str], code: i32) -> Value {
    document(&cli.run(&[args, &["--json"]].concat()), code)
}

/// Returns the only document on standard output.
#[track_caller]
fn document(output: &CliOutput, code: i32) -> Value {
    assert!(!output.stderr.trim().is_empty() || code == 0, "{output:?}");
    output.document(code)
}

/// Everything that a durable server has written to its append-only files, as text.
fn written(redis: &Redis) -> String {
    let files = std::fs::read_dir(redis.dir().join("appendonlydir")).expect("the append-only directory");
    let texts = files.map(|file| std::fs::read(file.expect("a file").path()).expect("its content"));
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

/// The words of every command that does something, sorted.
fn commands() -> Vec<String> {
    let mut found = Vec::new();
    // Groups whose commands are still to be listed.
    let mut groups = vec![String::new()];
    while let Some(group) = groups.pop() {
        let root = cli::command();
        let words = group.split_whitespace();
        let command = words.fold(&root, |at, word| at.find_subcommand(word).expect("a group"));
        for sub in command.get_subcommands() {
            let words = format!("{group} {}", sub.get_name());
            if !sub.has_subcommands() || sub.is_args_conflicts_with_subcommands_set() {
                found.push(words.trim_start().to_owned());
            }
            groups.push(words);
        }
    }
    found.sort_unstable();
    found
}
