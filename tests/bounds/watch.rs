//! Commands that the server received between two moments, by its `MONITOR`: the commands of clients, and those of
//! scripts.

use harness::{Redis, eventually};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(30);
/// The cost of a range without an end.
const ENDLESS: u64 = 1_000_000_000;

/// A command that the server ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// True for a command of a script, which follows the call of the script.
    pub by_script: bool,
    pub words: Vec<String>,
}

/// A `MONITOR` connection, which receives every command.
pub struct Watch {
    commands: Arc<Mutex<Vec<Command>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    pub async fn start(redis: &Redis) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).await.unwrap();
        stream.write_all(b"MONITOR\r\n").await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        lines.next_line().await.unwrap();
        let commands: Arc<Mutex<Vec<Command>>> = Arc::default();
        let list = Arc::clone(&commands);
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // +1763676000.123456 [0 127.0.0.1:4242] "HGET" "key" "field"; commands of scripts are marked `[0 lua]`.
                if let Some((head, command)) = line.split_once("] ") {
                    let by_script = head.ends_with(" lua");
                    let words = words(command);
                    list.lock().push(Command { by_script, words });
                }
            }
        });
        Self { commands, task }
    }

    pub async fn since_the_last_mark(&self, redis: &Redis) -> Vec<Command> {
        static MARK: AtomicU64 = AtomicU64::new(0);
        let mark = format!("mark-{}", MARK.fetch_add(1, Ordering::SeqCst));
        let _: String = redis.command(&["ECHO", &mark]);
        eventually("the mark", SOON, async || {
            let mut commands = self.commands.lock();
            let there = commands.iter().any(|command| command.words.contains(&mark));
            there.then(|| std::mem::take(&mut *commands))
        })
        .await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The words of a command as `MONITOR` writes it.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut letters = command.chars();
    while letters.any(|letter| letter == '"') {
        let mut word = String::new();
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            word.push(letter);
            if letter == '\\' {
                word.extend(letters.next());
            }
        }
        words.push(word);
    }
    words
}

/// Number of records that a command reads. A command that reads a whole key counts the key's current length.
pub fn reads(redis: &Redis, command: &[String]) -> u64 {
    let word = |at: usize| command.get(at).map_or("", String::as_str);
    let number = |at: usize| word(at).parse::<i64>().ok();
    let range = |first: Option<i64>, last: Option<i64>| match (first, last) {
        (Some(first), Some(last)) if (first < 0) == (last < 0) => {
            u64::try_from(last - first + 1).unwrap_or(0)
        }
        _ => ENDLESS,
    };
    let size = |how: &str| redis.command::<u64>(&[how, word(1)]);
    match word(0).to_ascii_uppercase().as_str() {
        "LRANGE" | "ZRANGE" | "ZREVRANGE" => range(number(2), number(3)),
        "ZRANGEBYSCORE" | "ZREVRANGEBYSCORE" => {
            let at = command.iter().position(|word| word.eq_ignore_ascii_case("LIMIT"));
            at.and_then(|at| number(at + 2))
                .map_or(ENDLESS, |count| u64::try_from(count).unwrap_or(ENDLESS))
        }
        "HGETALL" | "HKEYS" | "HVALS" => size("HLEN"),
        // The oldest elements, which are removed.
        "LTRIM" if word(3) == "-1" => number(2)
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(ENDLESS),
        "SMEMBERS" => size("SCARD"),
        "LPOS" => {
            let at = command
                .iter()
                .position(|word| word.eq_ignore_ascii_case("MAXLEN"));
            let most = at
                .and_then(|at| number(at + 1))
                .and_then(|most| u64::try_from(most).ok());
            most.map_or(ENDLESS, |most| most.min(size("LLEN")))
        }
        "SORT" | "SUNION" | "SINTER" | "KEYS" | "ZREMRANGEBYSCORE" | "ZREMRANGEBYRANK" => ENDLESS,
        // One for each field, member or key that is named.
        _ => (command.len() as u64).saturating_sub(2).max(1),
    }
}

/// Commands and records that they read, in all and by the name of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    pub commands: u64,
    pub records: u64,
    pub by_name: BTreeMap<String, (u64, u64)>,
}

impl Work {
    pub fn new<'c>(redis: &Redis, commands: impl IntoIterator<Item = &'c [String]>) -> Self {
        let mut work = Self::default();
        for command in commands {
            let records = reads(redis, command);
            work.commands += 1;
            work.records += records;
            let named = work.by_name.entry(command[0].to_ascii_uppercase()).or_default();
            *named = (named.0 + 1, named.1 + records);
        }
        work
    }
}

#[test]
fn commands_are_read_as_they_were_sent() {
    let line = r#""LRANGE" "{b1}/a \"b\" c" "0" "-1""#;
    assert_eq!(words(line), ["LRANGE", r#"{b1}/a \"b\" c"#, "0", "-1"]);
    assert_eq!(words(r#""ECHO" """#), ["ECHO", ""]);
}
