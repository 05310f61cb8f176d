//! Parses keys of the store: the inverse of the names in `keys.rs`, for scans over all keys.

use super::audit::EVERY;
use super::{
    ACCOUNTS, AccountKeys, BLOCKED, Bucket, DECISION_KEY_CHARS, DeliverySet, FENCE, FOLLOWED, IntentIndex,
    PRICE_TABLES, PRICES, REFUSED, STORE, Series, Tries, USER,
};
use crate::transaction::TransactionType;
use domain::intent::{IntentKind, IntentState};
use domain::mode::Mode;
use domain::names::{is_agent_id, is_run_id};
use domain::number::Number;
use domain::rate::Rate;

/// A parsed key: a record that `ledger check` reads by its name. `Other` is any other name that `keys` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// A key outside the buckets.
    Global(GlobalKey),
    /// A key shared by the accounts of a bucket.
    Bucket(Bucket, BucketKey<'a>),
    /// A key of an account, shared by both modes.
    Account(&'a str, AccountKey<'a>),
    /// A key of an account and mode.
    Mode(&'a str, Mode, ModeKey<'a>),
}

/// Keys outside the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `keys` names it")]
pub enum GlobalKey {
    UserLookup,
    VirtualKeyLookup,
    ApiKeyLookup,
    Other,
}

/// Keys shared by the accounts of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `Bucket` names it")]
pub enum BucketKey<'a> {
    Hold(&'a str),
    KeptHold(&'a str),
    WalletPlace(Number),
    EscrowPlace(Number),
    Other,
}

/// Keys shared by both modes of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `AccountKeys` names it")]
pub enum AccountKey<'a> {
    VirtualKey(&'a str),
    ApiKey(&'a str),
    Users,
    Other,
}

/// Keys of one mode of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `AccountKeys` names it")]
pub enum ModeKey<'a> {
    Run {
        agent: &'a str,
        run: &'a str,
    },
    AllRuns,
    Agent(&'a str),
    UserWallet,
    ClosedWallet(u64),
    OpenEscrows(&'a str),
    /// A list of transactions: of a type, of a wallet, or of both.
    TransactionList,
    Intent(&'a str),
    Intents(IntentIndex<'a>),
    IntentSegments,
    Escrow(u64),
    Deposit,
    Other,
}

/// Prefix of every account id.
const ACCOUNT: &str = "acct_";
/// The length of a SHA-256 in hex.
const HASH_LENGTH: usize = 64;

impl<'a> Key<'a> {
    /// Parses a key; `None` if no name in `keys.rs` matches.
    pub fn parse(key: &'a str) -> Option<Self> {
        let Some(rest) = key.strip_prefix("{b") else {
            return global(key.strip_prefix("tollgate/")?, key).map(Self::Global);
        };
        let (tag, rest) = rest.split_once("}/")?;
        let bucket = Bucket::numbered(tag)?;
        if !rest.starts_with(ACCOUNT) {
            return bucket_key(bucket, rest).map(|key| Self::Bucket(bucket, key));
        }
        let (account, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if Bucket::from_account(account) != bucket || !key[8..].starts_with(account) {
            return None;
        }
        let whole = key.len() == 8 + account.len();
        match rest.split_once('/') {
            Some((mode, rest)) if Mode::parse(mode).is_some() => {
                Some(Self::Mode(account, Mode::parse(mode)?, mode_key(rest)?))
            }
            _ if whole => Some(Self::Account(account, AccountKey::Other)),
            _ => Some(Self::Account(account, account_key(rest)?)),
        }
    }
}

impl Bucket {
    /// Parses the bucket of a four-digit number in a hash tag.
    fn numbered(text: &str) -> Option<Self> {
        let digits = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits)?;
        (number < super::BUCKETS).then_some(Self(number))
    }
}

fn global(rest: &str, key: &str) -> Option<GlobalKey> {
    const NAMES: [&str; 7] = [STORE, ACCOUNTS, PRICES, PRICE_TABLES, BLOCKED, REFUSED, FOLLOWED];
    if NAMES.contains(&key) {
        return Some(GlobalKey::Other);
    }
    let (first, rest) = rest.split_once('/')?;
    let fits = match first {
        "user" if is_hash(rest) => return Some(GlobalKey::UserLookup),
        "vk" if is_hash(rest) => return Some(GlobalKey::VirtualKeyLookup),
        "ak" if is_hash(rest) => return Some(GlobalKey::ApiKeyLookup),
        "session" | "invitation" | "reset" | "deposit" => is_hash(rest),
        "attempts" => {
            let (of, hash) = rest.split_once('/')?;
            Tries::parse(of).is_some() && is_hash(hash)
        }
        _ => false,
    };
    fits.then_some(GlobalKey::Other)
}

fn bucket_key(bucket: Bucket, rest: &str) -> Option<BucketKey<'_>> {
    const NAMES: [&str; 7] = [
        "due",
        "kept",
        "denials",
        "transit",
        "webhooks-ready",
        "witnessed",
        FENCE,
    ];
    let Some((first, part)) = rest.split_once('/') else {
        let is_counter = || rest.strip_suffix("-number").and_then(Series::parse).is_some();
        return (NAMES.contains(&rest) || is_counter()).then_some(BucketKey::Other);
    };
    match first {
        "wallet" => placed(bucket, part).map(BucketKey::WalletPlace),
        "escrow" => placed(bucket, part).map(BucketKey::EscrowPlace),
        "hold" => simple(part).map(BucketKey::Hold),
        "kept" => simple(part).map(BucketKey::KeptHold),
        "arrived" => simple(part).map(|_| BucketKey::Other),
        _ => None,
    }
}

fn account_key(rest: &str) -> Option<AccountKey<'_>> {
    const NAMES: [&str; 5] = [
        "active-keys",
        "sealed-agents",
        "api-keys",
        "last-logins",
        "invitations",
    ];
    let Some((first, part)) = rest.split_once('/') else {
        return match rest {
            "users" => Some(AccountKey::Users),
            _ => NAMES.contains(&rest).then_some(AccountKey::Other),
        };
    };
    let fits = match first {
        "vk" => return simple(part).map(AccountKey::VirtualKey),
        "ak" => return simple(part).map(AccountKey::ApiKey),
        "agent-keys" => is_agent_id(part),
        "rate" | "sessions" | "reset" => simple(part).is_some(),
        rate => Rate::parse(rate).is_some() && simple(part).is_some(),
    };
    fits.then_some(AccountKey::Other)
}

fn mode_key(rest: &str) -> Option<ModeKey<'_>> {
    const NAMES: [&str; 9] = [
        "agents",
        "frozen-agents",
        "policies",
        "account-policies",
        "audit",
        "txns",
        "escrows",
        "webhooks",
        "violations",
    ];
    let Some((first, rest)) = rest.split_once('/') else {
        return match rest {
            "all-runs" => Some(ModeKey::AllRuns),
            "user-wallet" => Some(ModeKey::UserWallet),
            "intents" => Some(ModeKey::Intents(IntentIndex::All)),
            _ => NAMES.contains(&rest).then_some(ModeKey::Other),
        };
    };
    let is_other = match first {
        "run" => {
            let (agent, run) = rest.split_once('/')?;
            let fits = is_agent_id(agent) && is_run_id(run.as_bytes());
            return fits.then_some(ModeKey::Run { agent, run });
        }
        "agent" => return is_agent_id(rest).then_some(ModeKey::Agent(rest)),
        "closed-wallet" => return number(rest).map(ModeKey::ClosedWallet),
        "open-escrows" => return owner(rest).map(ModeKey::OpenEscrows),
        "txns" => return is_transaction_list(rest).then_some(ModeKey::TransactionList),
        "intent" => return simple(rest).map(ModeKey::Intent),
        "intents" if rest == "segments" => return Some(ModeKey::IntentSegments),
        "intents" => return intents(rest).map(ModeKey::Intents),
        "deposit" => return is_hash(rest).then_some(ModeKey::Deposit),
        "escrow" => match rest.strip_suffix("/siblings") {
            Some(escrow) => number(escrow).is_some(),
            None => return number(rest).map(ModeKey::Escrow),
        },
        "runs" => is_agent_id(rest),
        "policy" => simple(rest).is_some(),
        "audit" => is_audit(rest),
        "notices" => is_period(rest),
        "webhook" => is_webhook(rest),
        "violations" => matches!(rest, "waiting" | "order"),
        _ => false,
    };
    is_other.then_some(ModeKey::Other)
}

/// Accepts a day `d<number>` or a month `m<number>`.
fn is_period(text: &str) -> bool {
    let rest = text.strip_prefix(['d', 'm']);
    rest.and_then(number).is_some()
}

fn is_audit(rest: &str) -> bool {
    let Some((first, rest)) = rest.split_once('/') else {
        return matches!(rest, "hashes" | "base" | "segments" | "archived" | "kept");
    };
    match first {
        "of" => rest.split_once('/').is_some_and(|(agent, kind)| {
            let some = agent != EVERY || kind != EVERY;
            some && (agent == EVERY || is_agent_id(agent)) && simple(kind).is_some()
        }),
        "day" | "late" => number(rest).is_some(),
        "decisions" => {
            rest.len() == DECISION_KEY_CHARS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
        _ => false,
    }
}

fn is_webhook(rest: &str) -> bool {
    let (id, list) = rest.split_once('/').unwrap_or((rest, "deliveries"));
    simple(id).is_some() && (list == "deliveries" || DeliverySet::parse(list).is_some())
}

fn is_transaction_list(rest: &str) -> bool {
    match rest.split_once('/') {
        Some(("type", kind)) => TransactionType::parse(kind).is_some(),
        Some(("of", rest)) => {
            let typed = rest
                .rsplit_once('/')
                .filter(|(_, word)| TransactionType::parse(word).is_some());
            let holder = typed.map_or(rest, |(holder, _)| holder);
            let closed = holder.strip_prefix("closed/").and_then(number);
            closed.is_some() || owner(holder).is_some()
        }
        _ => false,
    }
}

fn intents(rest: &str) -> Option<IntentIndex<'_>> {
    match rest.split_once('/')? {
        ("kind", kind) => IntentKind::parse(kind).map(|_| IntentIndex::Kind(kind)),
        ("agent", agent) => owner(agent).map(IntentIndex::Agent),
        ("state", state) => IntentState::parse(state).map(|_| IntentIndex::State(state)),
        _ => None,
    }
}

/// Accepts a non-empty part that runs to the end of the key.
fn simple(part: &str) -> Option<&str> {
    (!part.is_empty() && !part.contains('/')).then_some(part)
}

fn owner(part: &str) -> Option<&str> {
    (part == USER || is_agent_id(part)).then_some(part)
}

/// Parses a number without sign or leading zeros.
fn number(part: &str) -> Option<u64> {
    let number: u64 = part.parse().ok()?;
    (number.to_string() == part).then_some(number)
}

/// Parses a number that carries this bucket.
fn placed(bucket: Bucket, part: &str) -> Option<Number> {
    let number = Number::from_u64(number(part)?)?;
    (Bucket::from_number(number) == bucket).then_some(number)
}

fn is_hash(part: &str) -> bool {
    part.len() == HASH_LENGTH && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl AccountKeys {
    /// Returns the prefix of an account's keys. Keys of accounts whose ids start with it match too.
    pub fn prefix(&self) -> &str {
        &self.base
    }
}

#[cfg(test)]
mod tests;
