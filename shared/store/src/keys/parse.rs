//! Parses keys of the store: the inverse of the names in `keys.rs`, for scans over all keys.

use super::audit::EVERY;
use super::{
    ACCOUNTS, AccountKeys, BLOCKED, Bucket, DECISION_KEY_CHARS, DeliverySet, ESCROW_NUMBER, FENCE, FOLLOWED,
    IntentIndex, PRICE_TABLES, PRICES, REFUSED, STORE, Series, Tries, USER, WALLET_NUMBER,
};
use crate::transaction::TransactionType;
use domain::intent::{Kind, State};
use domain::mode::Mode;
use domain::names::{is_agent_id, is_run_id};
use domain::number::Number;
use domain::rate::Rate;

/// A parsed key.
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
    Store,
    Accounts,
    Prices,
    PriceTables,
    Blocked,
    Refused,
    Followed,
    WalletNumber,
    EscrowNumber,
    VirtualKeyLookup,
    ApiKeyLookup,
    UserLookup,
    SessionLookup,
    InvitationLookup,
    ResetLookup,
    Attempts,
    WalletLookup,
    EscrowLookup,
    DepositLookup,
}

/// Keys shared by the accounts of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `Bucket` names it")]
pub enum BucketKey<'a> {
    Hold(&'a str),
    Due,
    Kept,
    KeptHold(&'a str),
    CountedDenials,
    Transit,
    Arrived(&'a str),
    WebhooksReady,
    Fence,
    Witnessed,
    Counter(Series),
    WalletPlace(Number),
    EscrowPlace(Number),
}

/// Keys shared by both modes of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `AccountKeys` names it")]
pub enum AccountKey<'a> {
    Record,
    ActiveKeys,
    VirtualKey(&'a str),
    AgentKeys(&'a str),
    Rate(&'a str),
    SealedAgents,
    ApiKey(&'a str),
    ManagementRate(Rate, &'a str),
    ApiKeys,
    Users,
    Sessions(&'a str),
    LastLogins,
    Invitations,
    Reset(&'a str),
}

/// Keys of one mode of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where `AccountKeys` names it")]
pub enum ModeKey<'a> {
    Run {
        agent: &'a str,
        run: &'a str,
    },
    Runs(&'a str),
    AllRuns,
    Agent(&'a str),
    Agents,
    Policies,
    Policy(&'a str),
    AccountPolicies,
    Audit,
    AuditHashes,
    AuditBase,
    AuditSegments,
    AuditArchived,
    AuditIndex {
        agent: Option<&'a str>,
        kind: Option<&'a str>,
    },
    AuditDecisions(&'a str),
    AuditDay(u64),
    AuditLate(u64),
    AuditKept,
    Notices(&'a str),
    FrozenAgents,
    Webhooks,
    Violations,
    ViolationsWaiting,
    ViolationsOrder,
    Webhook(&'a str),
    Deliveries(&'a str),
    DeliveriesIn(&'a str, DeliverySet),
    UserWallet,
    ClosedWallet(u64),
    OpenEscrows(&'a str),
    Transactions,
    TransactionsOfType(TransactionType),
    TransactionsOfWallet {
        holder: &'a str,
        kind: Option<TransactionType>,
    },
    Intent(&'a str),
    Intents(IntentIndex<'a>),
    IntentSegments,
    Escrow(u64),
    EscrowSiblings(u64),
    Escrows,
    Deposit(&'a str),
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
            _ if whole => Some(Self::Account(account, AccountKey::Record)),
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
    let exact = [
        (STORE, GlobalKey::Store),
        (ACCOUNTS, GlobalKey::Accounts),
        (PRICES, GlobalKey::Prices),
        (PRICE_TABLES, GlobalKey::PriceTables),
        (BLOCKED, GlobalKey::Blocked),
        (REFUSED, GlobalKey::Refused),
        (FOLLOWED, GlobalKey::Followed),
        (WALLET_NUMBER, GlobalKey::WalletNumber),
        (ESCROW_NUMBER, GlobalKey::EscrowNumber),
    ];
    if let Some((_, found)) = exact.iter().find(|(name, _)| *name == key) {
        return Some(*found);
    }
    match rest.split_once('/')? {
        ("vk", hash) if is_hash(hash) => Some(GlobalKey::VirtualKeyLookup),
        ("ak", hash) if is_hash(hash) => Some(GlobalKey::ApiKeyLookup),
        ("user", hash) if is_hash(hash) => Some(GlobalKey::UserLookup),
        ("session", hash) if is_hash(hash) => Some(GlobalKey::SessionLookup),
        ("invitation", hash) if is_hash(hash) => Some(GlobalKey::InvitationLookup),
        ("reset", hash) if is_hash(hash) => Some(GlobalKey::ResetLookup),
        ("attempts", rest) => {
            let (of, hash) = rest.split_once('/')?;
            (Tries::parse(of).is_some() && is_hash(hash)).then_some(GlobalKey::Attempts)
        }
        ("wallet", name) if number(name).is_some() || name.starts_with("wal_") => {
            simple(name).map(|_| GlobalKey::WalletLookup)
        }
        ("escrow", name) => number(name).map(|_| GlobalKey::EscrowLookup),
        ("deposit", hash) if is_hash(hash) => Some(GlobalKey::DepositLookup),
        _ => None,
    }
}

fn bucket_key(bucket: Bucket, rest: &str) -> Option<BucketKey<'_>> {
    match rest.split_once('/') {
        None if rest == "due" => Some(BucketKey::Due),
        None if rest == "kept" => Some(BucketKey::Kept),
        None if rest == "denials" => Some(BucketKey::CountedDenials),
        None if rest == "transit" => Some(BucketKey::Transit),
        None if rest == "webhooks-ready" => Some(BucketKey::WebhooksReady),
        None if rest == "witnessed" => Some(BucketKey::Witnessed),
        None if rest == FENCE => Some(BucketKey::Fence),
        None => {
            let word = rest.strip_suffix("-number")?;
            let series = Series::parse(word)?;
            Some(BucketKey::Counter(series))
        }
        Some(("wallet", text)) => placed(bucket, text).map(BucketKey::WalletPlace),
        Some(("escrow", text)) => placed(bucket, text).map(BucketKey::EscrowPlace),
        Some(("hold", id)) => simple(id).map(BucketKey::Hold),
        Some(("kept", id)) => simple(id).map(BucketKey::KeptHold),
        Some(("arrived", id)) => simple(id).map(BucketKey::Arrived),
        _ => None,
    }
}

fn account_key(rest: &str) -> Option<AccountKey<'_>> {
    match rest.split_once('/') {
        None => match rest {
            "active-keys" => Some(AccountKey::ActiveKeys),
            "sealed-agents" => Some(AccountKey::SealedAgents),
            "api-keys" => Some(AccountKey::ApiKeys),
            "users" => Some(AccountKey::Users),
            "last-logins" => Some(AccountKey::LastLogins),
            "invitations" => Some(AccountKey::Invitations),
            _ => None,
        },
        Some(("vk", id)) => simple(id).map(AccountKey::VirtualKey),
        Some(("agent-keys", agent)) => agent_id(agent).map(AccountKey::AgentKeys),
        Some(("rate", id)) => simple(id).map(AccountKey::Rate),
        Some(("ak", id)) => simple(id).map(AccountKey::ApiKey),
        Some(("sessions", id)) => simple(id).map(AccountKey::Sessions),
        Some(("reset", id)) => simple(id).map(AccountKey::Reset),
        Some((rate, id)) => {
            let rate = Rate::parse(rate)?;
            simple(id).map(|id| AccountKey::ManagementRate(rate, id))
        }
    }
}

fn mode_key(rest: &str) -> Option<ModeKey<'_>> {
    let Some((first, rest)) = rest.split_once('/') else {
        return match rest {
            "agents" => Some(ModeKey::Agents),
            "all-runs" => Some(ModeKey::AllRuns),
            "frozen-agents" => Some(ModeKey::FrozenAgents),
            "policies" => Some(ModeKey::Policies),
            "account-policies" => Some(ModeKey::AccountPolicies),
            "audit" => Some(ModeKey::Audit),
            "user-wallet" => Some(ModeKey::UserWallet),
            "txns" => Some(ModeKey::Transactions),
            "intents" => Some(ModeKey::Intents(IntentIndex::All)),
            "escrows" => Some(ModeKey::Escrows),
            "webhooks" => Some(ModeKey::Webhooks),
            "violations" => Some(ModeKey::Violations),
            _ => None,
        };
    };
    match first {
        "run" => {
            let (agent, run) = rest.split_once('/')?;
            let fits = is_agent_id(agent) && is_run_id(run.as_bytes());
            fits.then_some(ModeKey::Run { agent, run })
        }
        "runs" => agent_id(rest).map(ModeKey::Runs),
        "agent" => agent_id(rest).map(ModeKey::Agent),
        "policy" => simple(rest).map(ModeKey::Policy),
        "closed-wallet" => number(rest).map(ModeKey::ClosedWallet),
        "open-escrows" => owner(rest).map(ModeKey::OpenEscrows),
        "txns" => transactions(rest),
        "intent" => simple(rest).map(ModeKey::Intent),
        "intents" if rest == "segments" => Some(ModeKey::IntentSegments),
        "intents" => intents(rest).map(ModeKey::Intents),
        "escrow" => match rest.strip_suffix("/siblings") {
            Some(escrow) => number(escrow).map(ModeKey::EscrowSiblings),
            None => number(rest).map(ModeKey::Escrow),
        },
        "audit" => audit(rest),
        "notices" => period(rest).map(ModeKey::Notices),
        "webhook" => webhook(rest),
        "violations" if rest == "waiting" => Some(ModeKey::ViolationsWaiting),
        "violations" if rest == "order" => Some(ModeKey::ViolationsOrder),
        "deposit" => is_hash(rest).then_some(ModeKey::Deposit(rest)),
        _ => None,
    }
}

/// Parses a day `d<number>` or a month `m<number>`.
fn period(text: &str) -> Option<&str> {
    let (kind, rest) = text.split_at_checked(1)?;
    let fits = matches!(kind, "d" | "m") && number(rest).is_some();
    fits.then_some(text)
}

fn audit(rest: &str) -> Option<ModeKey<'_>> {
    let Some((first, rest)) = rest.split_once('/') else {
        return match rest {
            "hashes" => Some(ModeKey::AuditHashes),
            "base" => Some(ModeKey::AuditBase),
            "segments" => Some(ModeKey::AuditSegments),
            "archived" => Some(ModeKey::AuditArchived),
            "kept" => Some(ModeKey::AuditKept),
            _ => None,
        };
    };
    match first {
        "of" => {
            let (agent, kind) = rest.split_once('/')?;
            let one = |part| (part != EVERY).then_some(part);
            let (agent, kind) = (one(agent), one(simple(kind)?));
            let fits = agent.is_none_or(is_agent_id) && (agent.is_some() || kind.is_some());
            fits.then_some(ModeKey::AuditIndex { agent, kind })
        }
        "day" => number(rest).map(ModeKey::AuditDay),
        "late" => number(rest).map(ModeKey::AuditLate),
        "decisions" => {
            let fits = rest.len() == DECISION_KEY_CHARS && rest.bytes().all(|b| b.is_ascii_alphanumeric());
            fits.then_some(ModeKey::AuditDecisions(rest))
        }
        _ => None,
    }
}

fn webhook(rest: &str) -> Option<ModeKey<'_>> {
    let Some((id, rest)) = rest.split_once('/') else {
        return simple(rest).map(ModeKey::Webhook);
    };
    let id = simple(id)?;
    if rest == "deliveries" {
        return Some(ModeKey::Deliveries(id));
    }
    let set = DeliverySet::parse(rest)?;
    Some(ModeKey::DeliveriesIn(id, set))
}

fn transactions(rest: &str) -> Option<ModeKey<'_>> {
    match rest.split_once('/')? {
        ("type", kind) => TransactionType::parse(kind).map(ModeKey::TransactionsOfType),
        ("of", rest) => {
            let typed = rest
                .rsplit_once('/')
                .and_then(|(holder, word)| Some((holder, TransactionType::parse(word)?)));
            let (holder, kind) = match typed {
                Some((holder, kind)) => (holder, Some(kind)),
                None => (rest, None),
            };
            let closed = holder.strip_prefix("closed/").and_then(number);
            (closed.is_some() || owner(holder).is_some())
                .then_some(ModeKey::TransactionsOfWallet { holder, kind })
        }
        _ => None,
    }
}

fn intents(rest: &str) -> Option<IntentIndex<'_>> {
    match rest.split_once('/')? {
        ("kind", kind) => Kind::parse(kind).map(|_| IntentIndex::Kind(kind)),
        ("agent", agent) => owner(agent).map(IntentIndex::Agent),
        ("state", state) => State::parse(state).map(|_| IntentIndex::State(state)),
        _ => None,
    }
}

/// Accepts a non-empty part that runs to the end of the key.
fn simple(part: &str) -> Option<&str> {
    (!part.is_empty() && !part.contains('/')).then_some(part)
}

fn agent_id(part: &str) -> Option<&str> {
    is_agent_id(part).then_some(part)
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
