//! Many records of a kind, written directly into the store: of each record, as much as its list reads.

use crate::fixture::Fixture;
use crate::lists::MANY;
use clock::now_ms;
use harness::{AdminOptions, Caller, Mode, SeedAccount};
use serde_json::json;
use store::call::authorize::RUN_LIFE_MS;
use store::connection::witness_of;
use store::keys::{AccountKeys, IntentIndex};

/// The mode of everything here.
pub const MODE: Mode = Mode::Live;
pub const AGENT: &str = "bot";
/// A budget of records that nothing here reaches.
pub const NO_LIMIT: &str = "100000000000";
/// The budgets of the records that there are many of.
const BUDGETS: [&str; 10] = [
    "AGENTS",
    "POLICIES",
    "KEYS",
    "RUNS",
    "INTENTS",
    "TEXT_BYTES",
    "TRANSACTIONS",
    "ESCROWS",
    "AUDIT_ENTRIES",
    "PROVIDER_KEYS",
];
/// Records made by one script.
const AT_ONCE: u64 = 50_000;

/// Members `<ARGV[4]>…` of a sorted set, by ascending scores from `ARGV[3]` on.
const PREFIXED: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('ZADD', KEYS[1], tonumber(ARGV[3]) + n, string.format('%s%07d', ARGV[4], n)) end return 1";
/// Members `m…` of a sorted set, by ascending scores from `ARGV[3]` on.
const SORTED: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('ZADD', KEYS[1], tonumber(ARGV[3]) + n, string.format('m%07d', n)) end return 1";
/// Members of a sorted set, each being its own score.
const NUMBERS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('ZADD', KEYS[1], n, string.format('%d', n)) end return 1";
/// Fields `acct_…` of a hash, with a version.
const VERSIONS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('HSET', KEYS[1], string.format('acct_%026d', n), '1 1') end return 1";
/// Groups of coalesced violations that wait, of an agent each, and their order; `ARGV[3]` is the text of each.
const VIOLATIONS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    local group = string.format('daily_limit bot%07d', n) \
    redis.call('HSET', KEYS[1], group, ARGV[3]) \
    redis.call('ZADD', KEYS[2], n, group) end return 1";
/// Transactions that are copies of the line in `ARGV[3]`, in all of the lists.
const TRANSACTIONS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('HSET', KEYS[1], n, ARGV[3]) \
    for list = 2, #KEYS do redis.call('RPUSH', KEYS[list], n) end end return 1";
/// Intents that are copies of the fields in ARGV[3] and on, in all of the lists; `KEYS[1]` is the beginning of their
/// names.
const INTENTS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    local id = string.format('int_%026d', n) \
    redis.call('HSET', KEYS[1] .. id, 'id', id, 'seq', n, unpack(ARGV, 3)) \
    for list = 2, #KEYS do redis.call('RPUSH', KEYS[list], id) end end return 1";
/// Sealed entries of the audit trail without content, in all of the lists of the index.
const ENTRIES: &str = "local hash = string.rep('x', 32) for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('RPUSH', KEYS[1], string.format('%d %d {}', n, tonumber(ARGV[3]) + n)) \
    redis.call('RPUSH', KEYS[2], hash) \
    for list = 3, #KEYS do redis.call('RPUSH', KEYS[list], n) end end return 1";

/// Sealed entries of calls that ended, likewise.
const CALLS: &str = "local hash = string.rep('x', 32) for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    local memo = 'acct_x bot - vk_01KAH3V9J80000000000000001 p1 m' \
    redis.call('RPUSH', KEYS[1], string.format('%d %d A released 0 allow_%026d H 2 20777 202611 0 ,,,,,, %s', \
      n, tonumber(ARGV[3]) + n, n, memo)) \
    redis.call('RPUSH', KEYS[2], hash) \
    for list = 3, #KEYS do redis.call('RPUSH', KEYS[list], n) end end return 1";

/// Sealed entries of deposits, likewise.
const DEPOSITS: &str = "local hash = string.rep('x', 32) for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    local data = string.format('{\"reference\":\"r%d\",\"transactionId\":\"txn_%026d\"}', n, n) \
    redis.call('RPUSH', KEYS[1], string.format('%d %d {\"type\":\"deposit.requested\",\"data\":%s}', \
      n, tonumber(ARGV[3]) + n, data)) \
    redis.call('RPUSH', KEYS[2], hash) \
    for list = 3, #KEYS do redis.call('RPUSH', KEYS[list], n) end end return 1";

/// The settings of a server with room for a million records of each kind. It archives none: the archiver reads long
/// trails.
pub fn roomy(options: AdminOptions) -> AdminOptions {
    let after = (2 * MANY).to_string();
    let options = options
        .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
        .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", after);
    BUDGETS.iter().fold(options, |options, budget| {
        options.env(&format!("TOLLGATE_LIMITS__{budget}"), NO_LIMIT)
    })
}

/// The kind of record that there are many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Agents,
    VirtualKeys,
    Policies,
    Transactions,
    Escrows,
    Entries,
    Calls,
    Deposits,
    Intents,
    Waiting,
    Runs,
    /// Runs whose records have ended, in the indexes of the agent and of the account.
    EndedRuns,
    /// Open holds that are due in days, and kept holds that have ended, of the bucket.
    Holds,
    /// Versions of other accounts that the bucket of the account's witness stores.
    Witnessed,
    /// Groups of coalesced violations, aside: with an account's last webhook those that wait are removed.
    Violations,
}

/// When the newest of `count` ended runs, or ended kept holds, was last seen: so long ago that its record has ended.
pub fn ended_ms(now_ms: u64, count: u64) -> u64 {
    let life = RUN_LIFE_MS;
    now_ms - 2 * life - count
}

/// An account and its caller.
pub struct Tenant {
    pub account: SeedAccount,
    pub caller: Caller,
    /// The number of its agent's wallet.
    pub wallet: String,
}

impl Tenant {
    pub async fn new(fixture: &Fixture) -> Self {
        let account = fixture.seed.account("enterprise").await;
        let caller = fixture.caller(&account, MODE).await;
        let made = caller.post("/v1/wallets/create", json!({ "botId": AGENT })).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let wallet = made.json()["wallet"]["walletId"].to_string();
        let policy = caller.post(&format!("/v1/policies/{AGENT}"), json!({})).await;
        assert_eq!(policy.status, 200, "{}", policy.text());
        Self {
            account,
            caller,
            wallet,
        }
    }

    const fn keys(&self) -> &AccountKeys {
        &self.account.keys
    }

    /// Writes `count` records of a kind into the store, in place of the existing ones.
    pub async fn fill(&self, fixture: &Fixture, kind: ListKind, count: u64) {
        let (keys, now) = (self.keys(), now_ms());
        let realm = keys.in_mode(MODE);
        let many = |script: &str, keys: &[String], rest: &[String]| {
            for first in (1..=count).step_by(usize::try_from(AT_ONCE).unwrap()) {
                let last = count.min(first + AT_ONCE - 1);
                let mut command = vec!["EVAL".to_owned(), script.to_owned(), keys.len().to_string()];
                command.extend_from_slice(keys);
                command.extend([first.to_string(), last.to_string()]);
                command.extend_from_slice(rest);
                let words: Vec<&str> = command.iter().map(String::as_str).collect();
                assert_eq!(fixture.redis.command::<u64>(&words), 1);
            }
        };
        let oldest = (now - count).to_string();
        let sorted = |key: String| many(SORTED, &[key], std::slice::from_ref(&oldest));
        match kind {
            ListKind::Agents => sorted(realm.agents()),
            ListKind::VirtualKeys => sorted(keys.agent_keys(AGENT)),
            ListKind::Policies => sorted(realm.policies()),
            ListKind::Runs => sorted(realm.runs(AGENT)),
            ListKind::EndedRuns => {
                let ended = ended_ms(now, count).to_string();
                let indexes = [realm.runs(AGENT), realm.all_runs()];
                for (index, prefix) in indexes.into_iter().zip(["ended-", "bot/ended-"]) {
                    many(PREFIXED, &[index], &[ended.clone(), prefix.to_owned()]);
                }
            }
            ListKind::Holds => {
                let (due, kept) = (keys.bucket().due(), keys.bucket().kept());
                let far = now + 10 * 24 * 3_600_000;
                many(PREFIXED, &[due], &[far.to_string(), "allow_".to_owned()]);
                let ended = ended_ms(now, count).to_string();
                many(PREFIXED, &[kept], &[ended, "allow_".to_owned()]);
            }
            ListKind::Witnessed => many(VERSIONS, &[witness_of(keys.bucket()).witnessed()], &[]),
            ListKind::Violations => {
                let waiting = [realm.violations_waiting(), realm.violations_order()];
                many(VIOLATIONS, &waiting.map(aside), &[format!("2 2,1,{now},{now},0")]);
            }
            ListKind::Escrows => many(NUMBERS, &[realm.escrows()], &[]),
            ListKind::Transactions => {
                let line = format!(
                    "{now} 5 5 {} txn_00000000000000000000000000 deposit {AGENT} - USD {{}}",
                    self.wallet
                );
                let lists = [
                    realm.transactions(),
                    realm.transactions_of_type("deposit"),
                    realm.transactions_of_wallet(AGENT, None),
                    realm.transactions_of_wallet(AGENT, Some("deposit")),
                ];
                many(TRANSACTIONS, &lists, &[line]);
                self.counted(fixture, "txn_seq", count);
            }
            ListKind::Intents => {
                let lists = [
                    realm.intent(""),
                    realm.intents(IntentIndex::All),
                    realm.intents(IntentIndex::Kind("spend")),
                    realm.intents(IntentIndex::Agent(AGENT)),
                    realm.intents(IntentIndex::State("settled")),
                ];
                many(INTENTS, &lists, &fields("settled", now));
                self.counted(fixture, "intent_seq", count);
            }
            ListKind::Waiting => {
                let lists = [realm.intent("")];
                many(INTENTS, &lists, &fields("pending_approval", now));
                let set = realm.intents(IntentIndex::State("pending_approval"));
                let ids = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
                    redis.call('ZADD', KEYS[1], n, string.format('int_%026d', n)) end return 1";
                many(ids, &[set], &[]);
            }
            ListKind::Entries | ListKind::Calls | ListKind::Deposits => {
                // The entries count as dispatched, so that the dispatcher of events skips them.
                self.counted(fixture, "dispatched", count);
                let (script, its_type) = match kind {
                    ListKind::Calls => (CALLS, "decision.approved"),
                    ListKind::Deposits => (DEPOSITS, "deposit.requested"),
                    _ => (ENTRIES, "agent.frozen"),
                };
                let lists = [
                    realm.audit(),
                    realm.audit_hashes(),
                    realm.audit_index(Some(AGENT), None),
                    realm.audit_index(None, Some(its_type)),
                    realm.audit_index(Some(AGENT), Some(its_type)),
                ];
                for list in &lists {
                    let _: u64 = fixture.redis.command(&["UNLINK", list]);
                }
                many(script, &lists, std::slice::from_ref(&oldest));
                self.counted(fixture, "audit_seq", count);
                self.counted(fixture, "dispatched", count);
            }
        }
    }

    fn counted(&self, fixture: &Fixture, field: &str, count: u64) {
        let (record, field, count) = (self.keys().record(), format!("{MODE}_{field}"), count.to_string());
        let _: u64 = fixture.redis.command(&["HSET", &record, &field, &count]);
    }
}

/// Returns the name under which a key is filled that the day removes.
pub fn aside(key: String) -> String {
    key + "/aside"
}

fn fields(state: &str, now: u64) -> Vec<String> {
    let at = now.to_string();
    let fields = [
        ("kind", "spend"),
        ("fp", "f00"),
        ("amount", "5"),
        ("currency", "USD"),
        ("actor", "key_1"),
        ("agent", AGENT),
        ("at", at.as_str()),
        ("request", "{\"runId\":\"r\"}"),
        ("state", state),
        ("first", state),
        ("reason", ""),
        ("head", "f00"),
    ];
    let words = fields.into_iter().flat_map(|(name, value)| [name, value]);
    words.map(str::to_owned).collect()
}
