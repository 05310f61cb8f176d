//! docs/reference/cli.md has the `--help` of every command, without the parts that all of them share. Every example in
//! a help is a command line that the parser accepts.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test cli reference` writes the page anew.

use crate::{cli, commands};
use harness::{Cli, Redis, compare_written};
use std::fmt::Write as _;
use std::process::Command;

const FILE: &str = "docs/reference/cli.md";

const HEAD: &str = "\
# Command line

The `--help` of each command, [written by a test](../../CONTRIBUTING.md#build-and-test). What many commands of
`tollgate-admin` share is said here only, and `--help` has an example of each:

| | |
|---|---|
| `--config FILE` | the configuration file, by default `config/tollgate.toml`; every key also as `TOLLGATE_<SECTION>__<KEY>` |
| `--json` | exactly one JSON document on standard output, also for `--help`, `--version` and a failure (`{\"ok\": false, \"error\": \"…\", \"code\": \"…\"}`); logs and sentences for people go to standard error |
| `-h`, `--help` | the short or the whole help |
| `--account ID` | the account, where a usage has it and no option of that name follows |
| `--mode MODE` | `live` (default) or `test`, for `agent`, `audit` and `deposit` |
| `--agent ID`, `--email EMAIL`, `--id ID` | the agent, the user's e-mail (with `--account` where several accounts have it), the decision id `allow_…` of a hold |
| exit code 0 | done |
| exit code 1 | refused: the store has no ledger or does not answer, there is no such account, or a reason listed below for the command; or standard output was closed before a secret that is printed once (if it was closed from the start, nothing was done) |
| exit code 2 | wrong usage or configuration; nothing was touched |
| exit code 3 | of `ledger check` and `audit`: the result is undetermined. `ledger check` and `audit verify` that get no answer end so too, with the code `STORE`, `STORE_CLOCK`, `ARCHIVE` or `LATER_RELEASE` in the document: exit code 1 is a fault of what is checked |

A command without *Changes* changes nothing. On a terminal, tables are cut to its width; in a pipe they are whole.
Completions: `source <(tollgate-admin completions bash)`. Manual pages: `tollgate-admin man --out DIR`.

";

/// Options that every command of `tollgate-admin` has. The head of the page explains them.
const COMMON_OPTIONS: [&str; 3] = ["      --config <FILE>", "      --json", "  -h, --help"];
/// Options of many commands, with their general text. The head of the page explains them.
const FREQUENT_OPTIONS: [&str; 6] = [
    "      --account <ID>\n          The account\n\n",
    "      --mode <MODE>\n          live or test\n\n          [default: live]\n          [possible values: live, test]\n\n",
    "      --agent <ID>\n          The agent\n\n",
    "      --email <EMAIL>\n          The user's e-mail\n\n",
    "      --account <ID>\n          The account, where several have the e-mail\n\n",
    "      --id <ID>\n          The decision id, allow_…\n\n",
];
/// Refusals of many commands. The head of the page explains them.
const COMMON_REFUSALS: [&str; 2] = [
    "there is no such account",
    "the store is no ledger, or does not answer",
];
/// Exit codes that mean the same for every command. The head of the page explains them.
const COMMON_EXIT_CODES: [&str; 2] = [
    "  0  done",
    "  2  wrong usage or configuration; nothing was touched",
];

/// The long help of a command, at the width of a pipe.
fn help(cli: &Cli, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    let output = cli.run(&words);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{command}");
    let lines = output.stdout.trim_end().lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

/// A help text without the options and exit codes that every command has, and without the two most frequent options.
fn without_common(help: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut skips_option = false;
    for line in help.lines().filter(|line| !COMMON_EXIT_CODES.contains(line)) {
        // An option's text is indented further than its name.
        let is_text = line.is_empty() || line.starts_with("          ");
        skips_option = COMMON_OPTIONS.contains(&line) || (skips_option && is_text);
        if !skips_option {
            kept.push(line);
        }
    }
    let mut text = kept.join("\n").replace("\nChanges: ", "\n\nChanges: ");
    for frequent in FREQUENT_OPTIONS {
        text = text.replace(frequent, "");
    }
    let text = text.replace("\n\n\n", "\n\n");
    text.replace("Options:\n\nChanges: ", "Changes: ")
        .replace("Options:\nChanges: ", "Changes: ")
}

/// A text without its example if that is a single line, which adds little to the usage.
fn without_plain_example(text: &str) -> String {
    let Some((before, after)) = text.split_once("\n\nExample:\n") else {
        return text.to_owned();
    };
    let (example, rest) = after.split_once("\n\n").unwrap_or((after, ""));
    match (example.contains('\n'), rest) {
        (true, _) => text.to_owned(),
        (false, "") => before.to_owned(),
        (false, rest) => format!("{before}\n\n{rest}"),
    }
}

/// A command's own part of its help, without the summary where a description follows it.
fn particular(help: &str) -> String {
    let (description, rest) = help.split_once("\nUsage: ").unwrap_or(("", help));
    let description = description
        .split_once("\n\n")
        .map_or(description, |(_, long)| long);
    let text = without_common(rest)
        .replace(" [OPTIONS]", "")
        .replace("Changes: nothing.\n\n", "")
        .replace("\nExit codes:\n  1  refused: ", "\nExit code 1: ")
        .replace("\n  3  ", "\nExit code 3: ");
    let common = COMMON_REFUSALS
        .iter()
        .find_map(|refusal| text.strip_suffix(&format!("\n\nExit code 1: {refusal}")));
    let text = without_plain_example(common.unwrap_or(&text));
    format!("{description}\nUsage: {text}")
}

fn page(cli: &Cli) -> String {
    let mut page = HEAD.to_owned();
    let mut section = |title: &str, help: &str| {
        let _ = write!(page, "## {title}\n\n```text\n{help}\n```\n\n");
    };
    let whole = without_common(&help(cli, ""));
    // After the options come first steps, which the guides have, and text that the head of the page has.
    let (commands_by_group, _) = whole.split_once("\n\nFirst steps").unwrap();
    section("tollgate-admin", commands_by_group);
    for command in commands() {
        let help = particular(&help(cli, &command));
        section(&command, &help);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate-proxy"))
        .arg("--help")
        .env_clear()
        .output();
    let edge = String::from_utf8(output.unwrap().stdout).unwrap();
    section("tollgate-proxy", edge.trim_end());
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[test]
fn docs_cli_md_is_what_help_says() {
    let redis = Redis::shared();
    let page = page(&cli(&redis));
    compare_written(FILE, &page, "--test cli reference");
}

#[test]
fn help_teaches_and_every_example_is_understood() {
    let redis = Redis::shared();
    let cli = cli(&redis);
    for command in commands() {
        let help = help(&cli, &command);
        for part in [
            "\nChanges: ",
            "\nExample:\n",
            "\nExit codes:\n  0  done\n  1  refused: ",
        ] {
            assert!(help.contains(part), "{command} --help has no {part:?}");
        }
        let examples = help
            .split("\nExample:\n")
            .nth(1)
            .unwrap()
            .split("\nExit codes:")
            .next()
            .unwrap();
        let lines = words_of(&cli, examples);
        assert!(!lines.is_empty(), "{command}");
        for line in lines {
            let understood = cli::command().try_get_matches_from(&line);
            assert!(
                understood.is_ok(),
                "{command}: {line:?}: {}",
                understood.unwrap_err()
            );
            assert!(line[1..].join(" ").starts_with(&command), "{command}: {line:?}");
        }
    }
}

/// The words of each `tollgate-admin …` in a piece of bash, which runs with a function in place of the program.
fn words_of(cli: &Cli, script: &str) -> Vec<Vec<String>> {
    let script = format!(
        "tollgate-admin() {{ printf '%s\\037' tollgate-admin \"$@\" >&3; echo >&3; }}\nPASSWORD=secret\n\
         exec 3> words\n{{ {script}\n}} > /dev/null 2>&1\nexec 3>&-; wait; cat words"
    );
    let output = cli.script(&script);
    let lines = output.stdout.lines();
    lines
        .map(|line| line.split_terminator('\u{1f}').map(str::to_owned).collect())
        .collect()
}
