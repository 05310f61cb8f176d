//! The store's users: the system runs under them, they may run the commands that are in the code and no others, and
//! each sees only its own keys.

mod system;
mod users_script;

use crate::ADMIN;
use crate::files::{path, text};
use crate::installation::{Installation, body, ok};
use harness::{Admin, AdminOptions, eventually, words};
use redis::FromRedisValue as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use store::command_rights::Program;

const SOON: Duration = Duration::from_secs(60);

/// Commands that no source line names: a client sends them on a cluster, and for scripts and transactions.
const CLIENTS: [&str; 6] = [
    "asking",
    "readonly",
    "cluster|slots",
    "cluster|info",
    "eval",
    "evalsha",
];
/// Parts of commands that `store.durability` needs: on a server before Redis 8.0, and on a cluster.
const PARTS: [&str; 2] = ["config|get", "cluster|nodes"];
const TRANSACTIONS: [&str; 2] = ["multi", "exec"];
/// Not sent, but words in the code's lint of scripts: a forbidden command, and the name of a list.
const FORBIDDEN: [&str; 2] = ["incrbyfloat", "keys"];

/// A line of the template, joined.
fn rule(user: &str) -> Vec<String> {
    let template = text("deploy/redis/users.acl").replace("\\\n", " ");
    let start = format!("user {user} ");
    let line = template.lines().find(|line| line.starts_with(&start));
    line.unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The commands that a user is given one by one.
fn granted(user: &str) -> BTreeSet<String> {
    let rule = rule(user);
    let commands = rule.iter().filter_map(|word| word.strip_prefix('+'));
    commands
        .filter(|word| !word.starts_with('@'))
        .map(str::to_owned)
        .collect()
}

/// The words in capitals in quotes of all sources below a folder.
fn words_in_capitals(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            words_in_capitals(&entry, found);
        } else {
            let source = std::fs::read_to_string(&entry).unwrap();
            let words = source
                .split('"')
                .filter(|word| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase()));
            found.extend(words.map(str::to_lowercase));
        }
    }
}

/// The names of all commands that the server has.
fn known(installation: &Installation) -> BTreeSet<String> {
    let names: Vec<String> = installation.redis().command(&["COMMAND", "LIST"]);
    names.into_iter().collect()
}

#[test]
fn the_rights_are_those_of_the_code() {
    let installation = Installation::start();
    let mut code = BTreeSet::new();
    words_in_capitals(&path("shared/store/src"), &mut code);
    code.extend(Program::Management.commands());
    code.retain(|word| known_word(&installation, word));
    let operator: BTreeSet<String> = granted("tollgate-operator");
    let given: BTreeSet<String> = operator
        .iter()
        .filter(|word| !CLIENTS.contains(&word.as_str()) && !TRANSACTIONS.contains(&word.as_str()))
        .filter(|word| !PARTS.contains(&word.as_str()))
        .cloned()
        .collect();
    // READONLY and CLUSTER are names of replies and of `cluster|slots` in the code, CONFIG that of `config|get`.
    // Commands about a client's own connection, such as WAIT, are granted by a category.
    let clients = ["readonly", "cluster", "eval", "evalsha", "asking", "config"];
    let connection: Vec<String> = installation.redis().command(&["ACL", "CAT", "connection"]);
    code.retain(|word| !clients.contains(&word.as_str()) && !connection.contains(word));
    assert_eq!(given, code, "users.acl and the code name different commands");

    let admin = granted("tollgate-admin");
    let more: Vec<&String> = operator.difference(&admin).collect();
    assert_eq!(
        more,
        ["dbsize", "scan"],
        "what the command line may do beyond the server"
    );
    assert!(admin.is_subset(&operator));

    let mut edge = Program::Edge.commands();
    edge.extend(["get", "hget", "hgetall", "info"].map(str::to_owned));
    edge.extend(CLIENTS.map(str::to_owned));
    assert_eq!(granted("tollgate-edge"), edge);
}

fn known_word(installation: &Installation, word: &str) -> bool {
    known(installation).contains(word) && !FORBIDDEN.contains(&word)
}

/// The refusals in the servers' ACL logs.
fn refusals(installation: &Installation) -> Vec<String> {
    let logs = installation.nodes().iter().flat_map(|node| {
        let log: Vec<redis::Value> = node.command(&["ACL", "LOG"]);
        log
    });
    logs.map(|entry| format!("{entry:?}")).collect()
}

/// The store's reply to a command of a user.
pub fn reply_of(installation: &Installation, user: &str, words: &[&str]) -> String {
    let url = crate::installation::address(installation.dir.path(), user, &installation.place());
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut command = redis::cmd(words[0]);
    let answer = command.arg(&words[1..]).query::<redis::Value>(&mut connection);
    match answer {
        Ok(value) => format!("OK {}", String::from_redis_value(value).unwrap_or_default()),
        Err(error) => error.to_string(),
    }
}

/// `default` has every right and cannot be used: no connection begins as it, logs in as it, or falls back to it.
#[test]
fn the_default_user_cannot_be_used() {
    let installation = Installation::start();
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", installation.redis().port())).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut say = |words: &[&str]| {
        let answer = redis::cmd(words[0])
            .arg(&words[1..])
            .query::<redis::Value>(&mut connection);
        answer.map_or_else(|error| error.to_string(), |value| format!("OK {value:?}"))
    };
    let all: [&[&str]; 4] = [&["PING"], &["DBSIZE"], &["ACL", "LIST"], &["MULTI"]];
    for words in all {
        let answer = say(words);
        assert!(answer.contains("NOAUTH"), "{words:?}: {answer}");
    }
    for words in [
        &["AUTH", "default", ""][..],
        &["AUTH", "default", "x"],
        &["AUTH", ""],
        &["HELLO", "3", "AUTH", "default", ""],
    ] {
        let answer = say(words);
        assert!(answer.contains("WRONGPASS"), "{words:?}: {answer}");
    }
    assert!(say(&["AUTH", "tollgate-probe", ""]).starts_with("OK"));
    assert!(say(&["PING"]).starts_with("OK"));
    assert!(say(&["RESET"]).starts_with("OK"));
    for words in all {
        let answer = say(words);
        assert!(answer.contains("NOAUTH"), "{words:?}: {answer}");
    }
}

/// A server with the address of another program's user says so, and does not answer every request with 503 as a ready
/// one.
#[tokio::test]
async fn a_management_server_with_the_user_of_an_edge_is_not_ready() {
    let installation = Installation::start();
    let options = AdminOptions::new(ADMIN, "redis://127.0.0.1:1")
        .env("TOLLGATE_STORE__URL_FILE", installation.url_file("edge"))
        .until_alive();
    let admin = Admin::start(options);
    eventually("the missing rights", SOON, async || {
        let (status, text) = admin.ops("/readyz")?;
        (status == 503 && text.contains("the user of another program")).then_some(())
    })
    .await;
}

/// A server lets the script of a user who lacks one command run until that command, and keeps what it wrote before. So
/// nothing is begun as such a user, and everything goes on once it has the command.
#[tokio::test]
async fn no_script_is_begun_as_a_user_who_lacks_one_of_its_commands() {
    const LACKING: &str = "rpush";
    let installation = Installation::start();
    let (edge, admin) = (installation.edge(), installation.admin());
    let tenant = installation.settle(&edge, &admin).await;
    let deposit = words("deposit --wallet user --amount 50 --reference r1 --account");
    let deposit = [&deposit[..], &[tenant.account.as_str()]].concat();
    let set_users = |right: &str| {
        for user in ["edge", "admin", "operator"] {
            let user = format!("tollgate-{user}");
            let _: String =
                installation
                    .redis()
                    .command(&["ACL", "SETUSER", &user, &format!("{right}{LACKING}")]);
        }
    };
    let became = async |expected: u16| {
        eventually("both know it", SOON, async || {
            let answers = [edge.ops("/readyz")?, admin.ops("/readyz")?];
            let both = answers
                .iter()
                .all(|(status, text)| *status == expected && (expected == 200 || text.contains(LACKING)));
            both.then_some(())
        })
        .await;
    };

    set_users("-");
    became(503).await;
    for _ in 0..3 {
        let refused = installation.cli.json_exit(&deposit, 1);
        assert_eq!(refused["code"], "STORE_LACKS_RIGHTS", "{refused}");
    }
    assert_eq!(tenant.caller.chat(body()).await.status, 503);
    assert_eq!(installation.upstream.requests().len(), 0);
    let transfer = json!({ "from": "user", "to": "bot", "amount": 20 });
    let reply = tenant.manager.post("/v1/wallet/transfer", transfer.clone()).await;
    assert_eq!(reply.status, 503, "{reply:?}");

    set_users("+");
    became(200).await;
    assert!(installation.cli.json(&deposit)["transactionId"].is_string());
    ok(&tenant.manager.post("/v1/wallet/transfer", transfer).await, 200);
    assert_eq!(tenant.caller.chat(body()).await.status, 200);
    let wallets = ok(&tenant.manager.get("/api/v1/wallet").await, 200);
    assert_eq!(wallets["user_wallet"]["usdc"], 30, "{wallets}");
    let checked = installation.cli.json(&["ledger", "check"]);
    assert_eq!(checked["violations"], json!([]), "{checked}");
}

#[tokio::test]
async fn every_other_command_is_denied() {
    let installation = Installation::start();
    let (edge, admin) = (installation.edge(), installation.admin());
    let tenant = installation.settle(&edge, &admin).await;
    assert_eq!(tenant.caller.chat(body()).await.status, 200);
    let commands = [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["CONFIG", "SET", "maxmemory", "1"],
        &["KEYS", "*"],
        &["DEBUG", "SLEEP", "0"],
        &["SHUTDOWN"],
        &["SAVE"],
        &["BGSAVE"],
        &["MONITOR"],
        &["SCRIPT", "FLUSH"],
        &["CLIENT", "LIST"],
        &["CLIENT", "KILL", "ID", "1"],
        &["REPLICAOF", "NO", "ONE"],
        &["ACL", "LIST"],
        &["SWAPDB", "0", "1"],
        &["FUNCTION", "LIST"],
        &["SORT", "x"],
        &["DUMP", "tollgate/store"],
        &["SELECT", "1"],
        &["SUBSCRIBE", "x"],
        &["PUBLISH", "x", "y"],
        &["CLUSTER", "RESET"],
        &["SLOWLOG", "GET"],
        &["EVAL", "return redis.call('FLUSHALL')", "0"],
        &["GET", "somebody/else"],
        &["SET", "somebody/else", "1"],
    ];
    for user in ["edge", "admin", "operator", "backup"] {
        for words in commands {
            let answer = reply_of(&installation, user, words);
            assert!(is_refusal(&answer), "{user} {words:?}: {answer}");
        }
    }
    for user in ["edge", "backup"] {
        let answer = reply_of(&installation, user, &["CONFIG", "GET", "*"]);
        assert!(is_refusal(&answer), "{user}: {answer}");
    }
    // The edge may neither read nor change the mark of a ledger, people and wallets.
    let bucket = store::keys::AccountKeys::new(&tenant.account);
    let (users, keys) = (bucket.users(), bucket.api_keys());
    let wallet = bucket.live().wallet(store::keys::USER);
    for words in [
        &["HSET", "tollgate/store", "epoch", "x"][..],
        &["HGETALL", &users],
        &["HGETALL", &keys],
        &["HGETALL", &wallet],
        &["HINCRBY", &wallet, "balance", "1"],
        &["DEL", "tollgate/vk/x"],
        &["GET", "tollgate/ak/x"],
        &["EVAL", "return redis.call('HGETALL', KEYS[1])", "1", &wallet],
    ] {
        let answer = reply_of(&installation, "edge", words);
        assert!(is_refusal(&answer), "{words:?}: {answer}");
    }
    assert!(reply_of(&installation, "edge", &["HGET", "tollgate/store", "epoch"]).starts_with("OK "));
    let record: Value = json!(reply_of(
        &installation,
        "edge",
        &["HGET", &bucket.record(), "plan"]
    ));
    assert_eq!(record, "OK startup");
}

/// Returns true for an answer that denies permission.
fn is_refusal(answer: &str) -> bool {
    [
        "NOPERM",
        "permissions",
        "ACL failure",
        "DEBUG command not allowed",
        "can't run this command",
    ]
    .iter()
    .any(|word| answer.contains(word))
}
