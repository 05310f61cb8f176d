//! Writes audit lines as the scripts do, number and line in one step, and keeps them for comparison.

use domain::chain::GENESIS;
use domain::entry::{Entry, Sealed};
use domain::mode::Mode;
use harness::{SeedAccount, Store};
use std::collections::BTreeMap;
use store::keys::AccountKeys;

const WRITE: &str = "for i = 2, #ARGV, 2 do
    local seq = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
    redis.call('RPUSH', KEYS[2], string.format('%d %s %s', seq, ARGV[i], ARGV[i + 1]))
  end";
/// Lines written by one call.
const AT_ONCE: usize = 500;
/// Time of the first line, in Unix milliseconds.
pub const START_MS: u64 = 1_795_000_000_000;

/// Appends to one chain.
pub struct AuditWriter {
    store: Store,
    record: String,
    audit: String,
    hashes: String,
    field: String,
    keys: AccountKeys,
    mode: Mode,
}

impl AuditWriter {
    pub fn new(store: &Store, account: &SeedAccount, mode: Mode) -> Self {
        Self {
            store: store.clone(),
            record: account.keys.record(),
            audit: account.keys.in_mode(mode).audit(),
            hashes: account.keys.in_mode(mode).audit_hashes(),
            field: format!("{mode}_audit_seq"),
            keys: account.keys.clone(),
            mode,
        }
    }

    /// Appends lines as if they were written now.
    pub async fn write_now(&self, lines: &[(u64, String)]) {
        let now_ms = clock::now_ms();
        let lines: Vec<_> = lines.iter().map(|(_, rest)| (now_ms, rest.clone())).collect();
        self.write(&lines).await;
    }

    /// Appends lines, each with its time.
    pub async fn write(&self, lines: &[(u64, String)]) {
        for lines in lines.chunks(AT_ONCE) {
            let mut eval = redis::cmd("EVAL");
            eval.arg(WRITE)
                .arg(2)
                .arg(&self.record)
                .arg(&self.audit)
                .arg(&self.field);
            for (at_ms, rest) in lines {
                eval.arg(at_ms).arg(rest);
            }
            let _: redis::Value = self.store.command(&eval).await.unwrap();
        }
    }

    pub async fn lines(&self) -> Vec<Vec<u8>> {
        self.list(&self.audit).await
    }

    pub async fn hashes(&self) -> Vec<Vec<u8>> {
        self.list(&self.hashes).await
    }

    async fn list(&self, key: &str) -> Vec<Vec<u8>> {
        let mut range = redis::cmd("LRANGE");
        self.store.command(range.arg(key).arg(0).arg(-1)).await.unwrap()
    }

    /// Replaces lines, hashes and last number in the store, and makes the lists by agent and type match the sealed
    /// lines: what an attacker with write access to the store can do.
    pub async fn forge(&self, lines: &[Vec<u8>], hashes: &[Vec<u8>], last: usize) {
        let mut pipe = redis::pipe();
        pipe.atomic()
            .cmd("DEL")
            .arg(&self.audit)
            .arg(&self.hashes)
            .ignore();
        let (old, lists) = self.lists(&lines[..lines.len().min(hashes.len())]).await;
        for key in old {
            pipe.cmd("DEL").arg(key).ignore();
        }
        for (key, numbers) in lists {
            pipe.cmd("RPUSH").arg(key).arg(numbers).ignore();
        }
        for (key, items) in [(&self.audit, lines), (&self.hashes, hashes)] {
            if !items.is_empty() {
                pipe.cmd("RPUSH").arg(key).arg(items).ignore();
            }
        }
        pipe.cmd("HSET")
            .arg(&self.record)
            .arg(&self.field)
            .arg(last)
            .ignore();
        let () = self.store.pipeline(&pipe).await.unwrap();
    }
}

impl AuditWriter {
    /// Returns the lists by agent and type in the store, and those that match these lines.
    async fn lists(&self, lines: &[Vec<u8>]) -> (Vec<String>, BTreeMap<String, Vec<u64>>) {
        let (keys, mode) = (&self.keys, self.mode);
        let pattern = keys
            .in_mode(mode)
            .audit_index(Some("AGENT"), Some("TYPE"))
            .replace("AGENT/TYPE", "*");
        let pattern = pattern.replace('{', "\\{");
        let old = self.store.command(redis::cmd("KEYS").arg(pattern)).await.unwrap();
        let mut lists: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (seq, line) in (1_u64..).zip(lines) {
            let entry = Entry::from_line(seq, line);
            for (agent, kind) in entry.indexes() {
                lists
                    .entry(keys.in_mode(mode).audit_index(agent, kind))
                    .or_default()
                    .push(seq);
            }
        }
        (old, lists)
    }
}

/// Lines of all kinds, a second apart: changes with words, denied and approved calls, of three agents.
pub fn lines(count: u64) -> Vec<(u64, String)> {
    let line = |n: u64| {
        let agent = format!("bot-{}", n % 3);
        let id = format!("allow_01KAH3V9J8{n:016}");
        let memo = format!("acct_x {agent} run-{} vk_{} p1 gpt-4o mini", n % 5, n % 2);
        let rest = match n % 4 {
            0 => format!(
                r#"{{"type":"agent.updated","agentId":"{agent}","actor":"key_{n}","data":{{"name":"bé-x {n}","list":[1,0.5,null,true]}}}}"#
            ),
            1 => format!("D daily_limit {id} 75{n} 0:10:,3:120:,,9500000000:10000000000:12{n},,, {memo}"),
            2 => format!(
                "A settled 12{n} {id} H 200{n} 20775 202611 1 0:10:,3::,5:100:2,6::4,7::4,1:10:,8:5000:0 {memo}"
            ),
            _ => format!(
                r#"{{"type":"spend.requested","agentId":"{agent}","actor":"key_1","data":{{"amountNanos":"5{n}"}}}} outcome=blocked reason=daily_limit intentId=int_{n} low_nanos=15{n} low_owner={agent}"#
            ),
        };
        (START_MS + 1000 * n, rest)
    };
    (1..=count).map(line).collect()
}

/// The chain that these lines make.
pub fn chain(lines: &[Vec<u8>]) -> Vec<(Entry, Sealed)> {
    let mut previous = GENESIS.to_owned();
    let numbered = (1_u64..).zip(lines);
    numbered
        .map(|(seq, line)| {
            let entry = Entry::from_line(seq, line);
            let sealed = entry.seal(&previous).unwrap();
            previous = hex::encode(sealed.hash);
            (entry, sealed)
        })
        .collect()
}
