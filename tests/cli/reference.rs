//! docs/reference/cli.md is what `--help` says, command by command, and its examples are command lines that are
//! understood.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --test cli reference` writes it anew.

use crate::{cli, commands};
use harness::{Cli, Redis};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/cli.md");
const REWRITE: &str = "TOLLGATE_REWRITE_DOCS";

const HEAD: &str = "\
# Command line

What `--help` of each command says; a test compares this page with it, and
`TOLLGATE_REWRITE_DOCS=1 cargo test --test cli reference` writes it anew.

A command that is done exits with 0, one that is refused by the state of things with 1, wrong usage or configuration with 2.
With `--json` standard output is exactly one JSON document, also for a failure (`{\"ok\": false, \"error\": \"…\", \"code\": \"…\"}`),
for `--help` and `--version`; logs and the sentence for people go to standard error. On a terminal, tables are cut to its
width; in a pipe they are whole. A reader who leaves (`| head -1`) ends a command quietly; only a secret that nobody saw is
a failure then.

Completions: `source <(tollgate-admin completions bash)`. Manual pages: `tollgate-admin man --out DIR`.

";

/// The long help of a command, at the width of a pipe.
fn help(cli: &Cli, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    let output = cli.run(&words);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{command}");
    let lines = output.stdout.trim_end().lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

fn page(cli: &Cli) -> String {
    let mut page = HEAD.to_owned();
    let mut section = |title: &str, help: &str| {
        let _ = write!(page, "## {title}\n\n```text\n{help}\n```\n\n");
    };
    section("tollgate-admin", &help(cli, ""));
    for command in commands() {
        section(&format!("tollgate-admin {command}"), &help(cli, &command));
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
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let kept = std::fs::read_to_string(Path::new(FILE)).unwrap_or_default();
    let different = kept.lines().zip(page.lines()).find(|(kept, page)| kept != page);
    assert!(
        kept == page,
        "docs/reference/cli.md is not what --help says; {REWRITE}=1 writes it anew: {different:?}"
    );
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

/// The words of each `tollgate-admin …` in a piece of bash, which runs with a function in the program's place.
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
