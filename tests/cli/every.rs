//! Every command with good, repeated, refused and bad input: exit code and one JSON document each time. The list of
//! commands is that of the command line itself, so that a command without a case here fails.

use crate::escrows::EscrowFixture;
use crate::holds::{agent, hold};
use crate::{account, commands, document, refused};
use harness::{Cli, Redis, RedisCluster, words};
use serde_json::Value;
use std::time::Duration;
use store::Store;

const PASSWORD: &str = "a-canary-password";

const CASES: &str = include_str!("every/cases.txt");

/// One test case of a command.
struct Case {
    /// Words of the command.
    command: &'static str,
    /// Exit codes and the arguments that must lead to them, in order.
    tries: Vec<(i32, &'static str)>,
    /// Arguments with which the command succeeds; `None` for a server, which does not exit.
    good: Option<&'static str>,
    /// Fields of the document that scripts rely on.
    fields: Vec<&'static str>,
    /// The answer of a restored store to the command with these arguments, true if it is allowed; `None` of a command
    /// without a store.
    restored: Option<(bool, &'static str)>,
}

fn cases() -> Vec<Case> {
    let blocks = CASES.split("\n[").skip(1);
    blocks.map(Case::parse).collect()
}

impl Case {
    fn parse(block: &'static str) -> Self {
        let (command, lines) = block.split_once("]\n").unwrap();
        let mut case = Self {
            command,
            tries: Vec::new(),
            good: None,
            fields: Vec::new(),
            restored: None,
        };
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let (word, args) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "0" => {
                    let (args, fields) = args.split_once("=>").unwrap();
                    case.fields = fields.split_whitespace().collect();
                    case.good = Some(args);
                    case.tries.push((0, args));
                }
                "restored" => {
                    let (rule, args) = args
                        .split_once(' ')
                        .unwrap_or((args, case.good.unwrap_or_default()));
                    assert!(["allowed", "refused"].contains(&rule), "{command}: {rule}");
                    case.restored = Some((rule == "allowed", args));
                }
                "again" => case.tries.push((args.parse().unwrap(), case.good.unwrap())),
                code => case.tries.push((code.parse().unwrap(), args)),
            }
        }
        case
    }
}

/// A store with records for every command.
struct Fixture<S = Redis> {
    escrow_fixture: EscrowFixture<S>,
    dir: tempfile::TempDir,
    taken: std::net::TcpListener,
    names: Vec<(&'static str, String)>,
}

impl<S> Fixture<S> {
    async fn at(escrow_fixture: EscrowFixture<S>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let cli = &escrow_fixture.cli;
        let id = account(cli);
        let key = cli.json(&["api-key", "create", "--account", &id, "--mode", "live"]);
        for reference in ["pending", "lost"] {
            let pending = words("--wallet user --amount 5 --pending --reference");
            let made = cli.json(&[&["deposit", "--account", &id][..], &pending, &[reference]].concat());
            assert_eq!(made["state"], "pending");
        }
        let owner = words("--name T --plan free --owner-email taken@example.com --owner-password-stdin");
        let made = cli.run_with_stdin(&[&["account", "create"][..], &owner].concat(), PASSWORD);
        assert_eq!(made.code, Some(0), "{made:?}");
        let price = r#"{"brand-new": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06,
            "output_cost_per_token": 2e-06, "supported_endpoints": ["/v1/chat/completions"]}}"#;
        std::fs::write(dir.path().join("prices.json"), price).unwrap();
        std::fs::write(dir.path().join("notes.txt"), "no prices, no configuration\n").unwrap();
        let bot = agent(&escrow_fixture.store).await;
        let life = Duration::from_secs(600);
        let overdue = [hold(&bot, life).await, hold(&bot, life).await];
        bot.pass_deadlines().await;
        let [settle, release] = overdue;
        let names = vec![
            ("{account}", id),
            ("{key}", key["keyId"].as_str().unwrap().to_owned()),
            ("{escrow}", escrow_fixture.escrow(3).await.to_string()),
            ("{funded}", escrow_fixture.escrow(2).await.to_string()),
            ("{settle}", settle),
            ("{release}", release),
            ("{inFlight}", hold(&bot, life).await),
            ("{botAccount}", bot.account.id.clone()),
            ("{dir}", dir.path().display().to_string()),
            ("{taken}", taken.local_addr().unwrap().to_string()),
        ];
        Self {
            escrow_fixture,
            dir,
            taken,
            names,
        }
    }

    /// Runs a command with `--json` that must exit with `code`. Returns its document.
    #[track_caller]
    fn run(&self, command: &str, args: &str, code: i32) -> Value {
        let names = self.names.iter();
        let args = names.fold(args.to_owned(), |args, (name, value)| args.replace(name, value));
        let line = format!("{command} {args} --json");
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = self
            .escrow_fixture
            .cli
            .run_with_stdin(&words, &format!("{PASSWORD}\n"));
        assert_eq!(output.code, Some(code), "{line}: {output:?}");
        assert!(
            !output.stdout.contains(PASSWORD) && !output.stderr.contains(PASSWORD),
            "{line}: {output:?}"
        );
        let document = document(&output, code);
        if code != 0 {
            let error = document["error"].as_str().unwrap_or_default();
            assert!(!error.is_empty() && !error.contains('\n'), "{line}: {document}");
            let code = document["code"].as_str().unwrap_or_default();
            assert!(!code.is_empty(), "{line}: {document}");
            assert_eq!(document["ok"], false, "{line}: {document}");
        }
        document
    }
}

#[test]
fn every_command_has_a_case() {
    let cases = cases();
    let mut named: Vec<&str> = cases.iter().map(|case| case.command).collect();
    named.sort_unstable();
    assert_eq!(
        named,
        commands(),
        "a command without a block in every/cases.txt, or the reverse"
    );
    for case in cases {
        // The last two need servers, which tests/deploy and tests/rolling/bench.rs have.
        let servers = ["serve", "sandbox-upstream", "health", "bench"];
        let codes: Vec<i32> = case.tries.iter().map(|(code, _)| *code).collect();
        assert!(codes.contains(&2), "{} is given nothing bad", case.command);
        assert!(
            servers.contains(&case.command) || codes.contains(&0) && !case.fields.is_empty(),
            "{} never succeeds",
            case.command
        );
        assert!(
            ["serve", "sandbox-upstream", "health"].contains(&case.command) || case.restored.is_some(),
            "{} has no rule for a restored store",
            case.command
        );
    }
}

#[tokio::test]
async fn every_command_answers_with_one_document_and_its_exit_code() {
    let fixture = Fixture::at(EscrowFixture::new().await).await;
    every_command_answers(&fixture);
    let left: Vec<String> = fixture.escrow_fixture.redis.command(&["KEYS", "*acct_none*"]);
    assert!(left.is_empty(), "of an account that is not there: {left:?}");
}

#[tokio::test]
async fn so_it_does_on_a_cluster() {
    let cluster = RedisCluster::start(3);
    let cli = Cli::new(env!("CARGO_BIN_EXE_tollgate-admin"), cluster.url());
    assert_eq!(cli.json(&["store", "init"])["ok"], true);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).unwrap();
    every_command_answers(&Fixture::at(EscrowFixture::on(cluster, store, cli).await).await);
}

fn every_command_answers<S>(fixture: &Fixture<S>) {
    for case in cases() {
        for (code, args) in &case.tries {
            let document = fixture.run(case.command, args, *code);
            let wrong = ["USAGE", "BAD_CONFIGURATION"].map(Value::from);
            assert_eq!(
                *code == 2,
                wrong.contains(&document["code"]),
                "{} {args}: {document}",
                case.command
            );
            for field in case.fields.iter().filter(|_| *code == 0) {
                assert!(
                    document.get(field).is_some(),
                    "{} has no {field}: {document}",
                    case.command
                );
            }
        }
    }
    assert!(fixture.taken.local_addr().is_ok() && fixture.dir.path().exists());
}

/// Until the operator accepts a restored store, nothing but reading and `store accept` is allowed.
#[tokio::test]
async fn a_restored_store_is_only_read_until_it_is_accepted() {
    let fixture = Fixture::at(EscrowFixture::new().await).await;
    let redis = &fixture.escrow_fixture.redis;
    let note = "backup of 2026-11-22T08:00:00Z";
    let _: u64 = redis.command(&["HSET", "tollgate/store", "restored", note]);
    let writes = || {
        let info: String = redis.command(&["INFO", "persistence"]);
        let mut lines = info.lines();
        let count = lines.find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        count.unwrap().parse::<u64>().unwrap()
    };
    for case in cases() {
        let Some((is_allowed, args)) = case.restored else {
            continue;
        };
        if is_allowed {
            fixture.run(case.command, args, 0);
            continue;
        }
        let before = writes();
        let document = fixture.run(case.command, args, 1);
        let error = document["error"].as_str().unwrap();
        assert_eq!(document["code"], "STORE_RESTORED", "{}: {document}", case.command);
        assert!(
            error.contains(note) && error.contains("`tollgate-admin store accept`"),
            "{error}"
        );
        assert_eq!(writes(), before, "{} {args}", case.command);
    }
    fixture.run("store accept", "", 0);
    let changes = cases()
        .into_iter()
        .filter(|case| case.command.starts_with("agent "));
    for case in changes {
        fixture.run(case.command, case.good.unwrap(), 0);
    }
}

/// A key is in one answer, once, and in no log line.
#[tokio::test]
async fn a_secret_is_printed_once() {
    let fixture = Fixture::at(EscrowFixture::new().await).await;
    let cli = fixture.escrow_fixture.cli.clone().env("RUST_LOG", "trace");
    let id = account(&cli);
    let args = ["api-key", "create", "--account", &id, "--mode", "live", "--json"];
    let made = cli.run(&args);
    let key = document(&made, 0)["key"].as_str().unwrap().to_owned();
    assert_eq!(made.stdout.matches(&key).count(), 1, "{made:?}");
    assert!(!made.stderr.contains(&key), "{made:?}");
    let text = cli.run(&args[..args.len() - 1]);
    let shown = text.stdout.lines().last().unwrap();
    assert!(
        shown.starts_with("svc_live_") && text.stdout.matches(shown).count() == 1,
        "{text:?}"
    );
    for args in [
        &["api-key", "list", "--account", &id][..],
        &["account", "show", "--account", &id],
    ] {
        let output = cli.run(args);
        assert!(
            !output.stdout.contains(&key) && !output.stderr.contains(&key),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn without_a_store_every_command_that_needs_one_is_refused() {
    let fixture = Fixture::at(EscrowFixture::new().await).await;
    fixture.escrow_fixture.redis.kill9();
    for Case { command, good, .. } in cases() {
        let Some(good) = good else { continue };
        let code = match command {
            "completions" | "man" => 0,
            // A check that could not be made: exit code 1 would be a fault of what is checked.
            "ledger check" | "audit verify" => 3,
            _ => 1,
        };
        fixture.run(command, good, code);
    }
}

/// Help and version are documents, too. An error message is not cut.
#[test]
fn an_unknown_command_is_one_document() {
    let redis = harness::Redis::shared();
    let cli = crate::cli(&redis);
    let version = document(&cli.run(&["--json", "--version"]), 0);
    assert!(
        version["version"]
            .as_str()
            .unwrap()
            .starts_with("tollgate-admin ")
    );
    let help = document(&cli.run(&["deposit", "--help", "--json"]), 0);
    assert!(help["help"].as_str().unwrap().contains("--reference"));
    let error = |args: &[&str]| refused(&cli, args, 2)["error"].as_str().unwrap().to_owned();
    let missing = error(&["account", "create"]);
    assert!(
        missing.contains("--name") && missing.contains("--plan"),
        "{missing}"
    );
    assert!(error(&[]).contains("subcommand") && error(&["acount"]).contains("'acount'"));
    let after = cli.run(&["account", "show", "--account", "--", "--json"]);
    assert_eq!(
        (after.code, after.stdout.as_str()),
        (Some(2), ""),
        "behind `--` it is no option"
    );
}
