//! Texts of `--help` in addition to the options: groups of commands, changes, examples, refusals.
//!
//! The derived command line describes the options; a [`HelpPage`] describes the effects. Pages are grouped in files so
//! that they read as one text; docs/reference/cli.md is generated from them.

mod money;
mod people;
mod proof;
mod setup;

use crate::context::CommandKind;
use clap::{ArgMatches, Command};
use std::fmt::Write as _;

/// Help texts of one command in addition to its options.
pub(super) struct HelpPage {
    /// Words of the command, without the program's name.
    pub path: &'static str,
    /// Its purpose, in one paragraph.
    pub about: &'static str,
    /// Its effect, which decides the check of the store before it runs; `changes` says the same to people.
    pub kind: CommandKind,
    /// Its changes, and where they are recorded. Begins with "nothing" or "files" if `kind` is [`CommandKind::Read`].
    pub changes: &'static str,
    /// Command lines with plausible values.
    pub examples: &'static [&'static str],
    /// When it exits with code 1.
    pub refused: &'static str,
}

/// All pages, by group.
const PAGES: [&[HelpPage]; 4] = [setup::PAGES, people::PAGES, money::PAGES, proof::PAGES];

/// The groups of commands in `tollgate-admin --help`; every command is in exactly one.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run", &["serve", "health", "sandbox-upstream", "bench"]),
    (
        "Set up",
        &["store", "account", "user", "api-key", "prices", "keys"],
    ),
    ("Money", &["deposit", "escrow", "holds", "decision"]),
    ("Stop and prove", &["agent", "ip", "audit", "ledger"]),
    ("This program", &["completions", "man", "help"]),
];

const FIRST_STEPS: &str = "\
First steps on a new store:
  tollgate-admin store init
  printf '%s\\n' \"$PASSWORD\" | tollgate-admin account create --name 'Acme Ltd' --plan startup \\
    --owner-email ann@example.com --owner-password-stdin
  tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode live
  tollgate-admin serve

Exit codes: 0 done, 1 refused, 2 wrong usage or configuration, 3 a check could not be made. With --json a failure is
{\"ok\": false, \"error\": \"…\", \"code\": \"…\"}. Logs go to standard error.

`tollgate-admin COMMAND --help` says what each command changes, with examples.";

/// Adds pages and groups to `command`.
pub(super) fn with_help(command: Command) -> Command {
    let command = described(command, "");
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        grouped(&command)
    );
    command.help_template(template).after_help(FIRST_STEPS)
}

/// Returns the kind of the command that was parsed. Tests ensure that each has a page; without one it would be checked
/// most strictly.
pub(super) fn kind_of(matches: &ArgMatches) -> CommandKind {
    let words = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    let path: Vec<&str> = words.map(|(name, _)| name).collect();
    page(&path.join(" ")).map_or(CommandKind::Change, |page| page.kind)
}

fn page(path: &str) -> Option<&'static HelpPage> {
    PAGES.iter().copied().flatten().find(|page| page.path == path)
}

/// Adds its page to each command below `command`, whose words are `path`.
fn described(command: Command, path: &str) -> Command {
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        let path = path.trim_start();
        let sub = match page(path) {
            Some(page) => page.lay_over(sub),
            None => sub,
        };
        described(sub, path)
    })
}

/// Meaning of exit code 3, for the commands that have it.
const UNDETERMINED: &[(&str, &str)] = &[
    (
        "audit verify",
        "the result is undetermined: the store or the archive does not answer, or a later release wrote an entry; or, \
         with --require-proof, the end is not proven",
    ),
    ("audit recompute", "a price table was not kept"),
    (
        "ledger check",
        "the result is undetermined: some checks are inconclusive, or the store or the archive does not answer",
    ),
];

impl HelpPage {
    fn lay_over(&self, command: Command) -> Command {
        let short = command.get_about().map(ToString::to_string).unwrap_or_default();
        let mut undetermined = UNDETERMINED.iter().filter(|(path, _)| *path == self.path);
        let undetermined = undetermined
            .next()
            .map_or_else(String::new, |(_, when)| format!("\n  3  {when}"));
        let after = format!(
            "Changes: {}\n\nExample:\n  {}\n\nExit codes:\n  0  done\n  1  refused: {}\n  2  wrong usage or configuration; \
             nothing was touched{undetermined}",
            self.changes,
            self.examples.join("\n  "),
            self.refused,
        );
        command
            .long_about(format!("{short}\n\n{}", self.about))
            .after_long_help(after)
    }
}

/// Returns the list of commands, grouped under titles.
fn grouped(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (title, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(list, "{title}:");
        for name in names {
            let about = match *name {
                "help" => Some("Print this, or the help of a command".to_owned()),
                name => command
                    .find_subcommand(name)
                    .and_then(|sub| sub.get_about().map(ToString::to_string)),
            };
            if let Some(about) = about {
                let _ = writeln!(list, "  {name:<width$}  {about}");
            }
        }
        list.push('\n');
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    /// Collects the words of every command without subcommands.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            if !sub.has_subcommands() || sub.is_args_conflicts_with_subcommands_set() {
                found.push(path.clone());
            }
            leaves(sub, &path, found);
        }
    }

    #[test]
    fn every_command_has_one_page_and_every_page_a_command() {
        let mut found = Vec::new();
        leaves(&command(), "", &mut found);
        let mut pages: Vec<&str> = PAGES.iter().copied().flatten().map(|page| page.path).collect();
        pages.sort_unstable();
        found.sort_unstable();
        assert_eq!(
            pages, found,
            "a command without a page in cli/help/, or the reverse"
        );
        for page in PAGES.iter().copied().flatten() {
            assert!(
                page.about.ends_with('.') && page.changes.ends_with('.'),
                "{}",
                page.path
            );
            let changes_nothing = page.changes.starts_with("nothing") || page.changes.starts_with("files ");
            assert_eq!(changes_nothing, page.kind == CommandKind::Read, "{}", page.path);
            assert!(
                !page.examples.is_empty() && !page.refused.is_empty(),
                "{}",
                page.path
            );
        }
    }

    #[test]
    fn a_parsed_command_has_the_kind_of_its_page() {
        let kind = |line: &str| kind_of(&command().try_get_matches_from(line.split(' ')).unwrap());
        assert_eq!(kind("tollgate-admin store init"), CommandKind::Change);
        assert_eq!(kind("tollgate-admin store check --json"), CommandKind::Read);
        assert_eq!(kind("tollgate-admin store accept"), CommandKind::Accept);
        assert_eq!(
            kind("tollgate-admin deposit cancel --reference r"),
            CommandKind::Change
        );
        assert_eq!(kind("tollgate-admin audit key"), CommandKind::Read);
    }

    #[test]
    fn every_command_stands_in_one_group() {
        let command = command();
        let named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        for sub in command.get_subcommands() {
            let times = named.iter().filter(|name| **name == sub.get_name()).count();
            assert_eq!(times, 1, "{} in GROUPS", sub.get_name());
        }
    }
}
