//! The scan of all keys of the store: classifies each, reads records immediately, and records indexes for later.

use super::book::{AccountMode, Accounts};
use super::drive::{BATCH, Job, read_batch};
use super::names::{KeyRecordKind, place_read};
use super::pass::Pass;
use super::reconcile::{Comparison, LIST, Side};
use super::violation::Invariant;
use domain::number::Number;
use futures::{Stream, TryStreamExt, stream};
use store::call::unsettled_holds::HoldState;
use store::connection::scan::Node;
use store::keys::parse::{AccountKey, BucketKey, GlobalKey, Key, ModeKey};
use store::keys::{Bucket, Series, USER};
use store::read::{Answers, Read};
use store::{Store, StoreError};

/// Maximum number of concurrent parts of the scan.
const IN_FLIGHT: usize = 3;
/// The fault of a key whose name cannot be parsed.
const NO_NAME: &str = "no key name of Tollgate's matches";

/// A record that is read as soon as its key is found.
pub(super) enum FoundRecord {
    Intent(AccountMode, String),
    Escrow(AccountMode, u64),
    Deposit(AccountMode, String),
    /// A run of an agent, and its key.
    Run(AccountMode, (String, String), String),
    Hold {
        bucket: Bucket,
        id: String,
        state: HoldState,
    },
    /// Look-up of a number.
    Place(Series, Number),
    /// The users of an account: its id and the name of the hash in the store.
    Users(String, String),
    /// The accounts with a user of an e-mail address.
    EmailLookup(String),
    /// The look-up of a key.
    KeyLookup(KeyRecordKind, String),
    /// The record of a key: its account, its id and its name in the store.
    Key(KeyRecordKind, String, String, String),
}

/// A key that is only recorded for later.
enum NotedKey {
    Owner(AccountMode, String),
    Closed(AccountMode, u64),
    IntentList(AccountMode, String),
    ArchivedIntents(AccountMode),
    OpenEscrows(AccountMode, String),
    RunIndex(AccountMode),
    TransactionList(AccountMode, String),
    Other,
    Unknown(String, &'static str),
}

/// A part of the scan: recorded keys, and records with their answers.
type ScanPart = (Vec<NotedKey>, Vec<(FoundRecord, Answers)>);

impl Pass<'_> {
    /// Walks over all keys.
    pub(super) async fn scan(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        // If there are accounts that are not checked, all accounts of the pass share a bucket.
        let bucket = accounts
            .partial
            .then(|| accounts.account_modes().next())
            .flatten();
        let pattern = bucket.map(|account_mode| {
            let prefix = accounts.realm(account_mode).keys().prefix();
            format!("{}/*", prefix.split('/').next().unwrap_or_default())
        });
        for node in store.nodes().await? {
            let parts = keys(store, &node, pattern.as_deref())
                .map_ok(|keys| read_records(store, accounts, keys))
                .try_buffer_unordered(IN_FLIGHT);
            let mut parts = std::pin::pin!(parts);
            while let Some((notes, records)) = parts.try_next().await? {
                self.count(notes.len() + records.len());
                notes.into_iter().for_each(|note| self.note(note));
                for (record, answers) in records {
                    self.record(record, answers);
                }
                if self.names.is_full() {
                    self.read_outside().await?;
                }
                if self.escrow_wallets.is_full() {
                    self.read_escrow_wallets().await?;
                }
                if self.emails.is_full() {
                    self.read_email_lookups().await?;
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, note: NotedKey) {
        match note {
            NotedKey::Owner(account_mode, owner) => {
                self.owner(account_mode, &owner);
            }
            NotedKey::Closed(account_mode, number) => {
                self.page(account_mode).closed.insert(number);
            }
            NotedKey::IntentList(account_mode, list) => {
                self.page(account_mode).intent_lists.insert(list);
            }
            NotedKey::ArchivedIntents(account_mode) => self.page(account_mode).archived_intents = true,
            NotedKey::OpenEscrows(account_mode, owner) => {
                self.page(account_mode).open_escrows.insert(owner);
            }
            NotedKey::RunIndex(account_mode) => self.page(account_mode).has_runs = true,
            NotedKey::TransactionList(account_mode, key) => {
                self.reconcile(
                    Comparison::TransactionList,
                    Side::Record,
                    (account_mode, &key),
                    &[LIST],
                );
            }
            NotedKey::Other => {}
            NotedKey::Unknown(key, why) => self.add_violation(Invariant::UnknownKey, &[&key], why),
        }
    }
}

/// Returns the keys of a server, in parts.
fn keys<'a>(
    store: &'a Store,
    node: &'a Node,
    pattern: Option<&'a str>,
) -> impl Stream<Item = Result<Vec<Vec<u8>>, StoreError>> + 'a {
    stream::try_unfold(Some("0".to_owned()), move |cursor| async move {
        let Some(cursor) = cursor else { return Ok(None) };
        let (next, keys) = store.scan(node, &cursor, BATCH, pattern).await?;
        Ok(Some((keys, (next != "0").then_some(next))))
    })
}

/// Reads the records among some keys.
async fn read_records(
    store: &Store,
    accounts: &Accounts,
    keys: Vec<Vec<u8>>,
) -> Result<ScanPart, StoreError> {
    let mut notes = Vec::new();
    let mut jobs = Vec::new();
    for key in keys {
        let key = match String::from_utf8(key) {
            Ok(key) => key,
            Err(error) => {
                // As `redis-cli` shows it: the key must be found to be removed.
                let shown = error.as_bytes().escape_ascii().to_string();
                notes.push(NotedKey::Unknown(shown, NO_NAME));
                continue;
            }
        };
        match sort(accounts, key) {
            Sorted::Read(job) => jobs.push(job),
            Sorted::Note(note) => notes.push(note),
            Sorted::NotOurs => {}
        }
    }
    Ok((notes, read_batch(store, jobs).await?))
}

/// Classification of a key.
enum Sorted {
    Read(Job<FoundRecord>),
    Note(NotedKey),
    /// It belongs to an account that is not checked.
    NotOurs,
}

fn sort(accounts: &Accounts, key: String) -> Sorted {
    let Some(parsed) = Key::parse(&key) else {
        return Sorted::Note(NotedKey::Unknown(key, NO_NAME));
    };
    match parsed {
        Key::Bucket(bucket, BucketKey::Hold(id)) => Sorted::Read(hold(bucket, id, HoldState::Open)),
        Key::Bucket(bucket, BucketKey::KeptHold(id)) => Sorted::Read(hold(bucket, id, HoldState::Kept)),
        Key::Bucket(_, BucketKey::WalletPlace(number)) => Sorted::Read(account_mode(Series::Wallet, number)),
        Key::Bucket(_, BucketKey::EscrowPlace(number)) => Sorted::Read(account_mode(Series::Escrow, number)),
        Key::Account(account, AccountKey::VirtualKey(id)) if accounts.find(account).is_some() => {
            Sorted::Read(issued(KeyRecordKind::Virtual, (account, id, &key)))
        }
        Key::Account(account, AccountKey::ApiKey(id)) if accounts.find(account).is_some() => {
            Sorted::Read(issued(KeyRecordKind::Api, (account, id, &key)))
        }
        Key::Account(account, AccountKey::Users) if accounts.find(account).is_some() => {
            Sorted::Read(users(account, &key))
        }
        Key::Global(GlobalKey::UserLookup) => Sorted::Read(email_lookup(key)),
        Key::Global(GlobalKey::VirtualKeyLookup) => Sorted::Read(key_lookup(KeyRecordKind::Virtual, key)),
        Key::Global(GlobalKey::ApiKeyLookup) => Sorted::Read(key_lookup(KeyRecordKind::Api, key)),
        Key::Global(_) | Key::Bucket(..) => Sorted::Note(NotedKey::Other),
        Key::Account(account, _) if accounts.find(account).is_some() => Sorted::Note(NotedKey::Other),
        Key::Mode(account, mode, parsed) => match accounts.find(account) {
            Some(account) => of_mode(accounts, AccountMode { account, mode }, parsed, &key),
            None => of_other(accounts, key),
        },
        Key::Account(..) => of_other(accounts, key),
    }
}

/// Classifies a key of an account that the pass does not check.
fn of_other(accounts: &Accounts, key: String) -> Sorted {
    match accounts.partial {
        true => Sorted::NotOurs,
        false => Sorted::Note(NotedKey::Unknown(key, "its account does not exist")),
    }
}

fn of_mode(accounts: &Accounts, account_mode: AccountMode, parsed: ModeKey<'_>, key: &str) -> Sorted {
    let bucket = accounts.realm(account_mode).bucket();
    let read = |what, reads: Vec<Read>| Sorted::Read(Job::new(reads, what));
    let hash = || vec![Read::hash(bucket, key)];
    let after_account = || key[accounts.realm(account_mode).keys().prefix().len()..].to_owned();
    match parsed {
        ModeKey::Intent(id) => read(FoundRecord::Intent(account_mode, id.to_owned()), hash()),
        ModeKey::Escrow(number) => read(FoundRecord::Escrow(account_mode, number), hash()),
        ModeKey::Deposit => read(FoundRecord::Deposit(account_mode, key.to_owned()), hash()),
        ModeKey::Run { agent, run } => read(
            FoundRecord::Run(account_mode, (agent.to_owned(), run.to_owned()), key.to_owned()),
            vec![Read::field(bucket, key, "spent")],
        ),
        ModeKey::Agent(agent) => Sorted::Note(NotedKey::Owner(account_mode, agent.to_owned())),
        ModeKey::UserWallet => Sorted::Note(NotedKey::Owner(account_mode, USER.to_owned())),
        ModeKey::ClosedWallet(number) => Sorted::Note(NotedKey::Closed(account_mode, number)),
        ModeKey::OpenEscrows(owner) => Sorted::Note(NotedKey::OpenEscrows(account_mode, owner.to_owned())),
        ModeKey::Intents(_) => Sorted::Note(NotedKey::IntentList(account_mode, after_account())),
        ModeKey::IntentSegments => Sorted::Note(NotedKey::ArchivedIntents(account_mode)),
        ModeKey::TransactionList => Sorted::Note(NotedKey::TransactionList(account_mode, key.to_owned())),
        ModeKey::AllRuns => Sorted::Note(NotedKey::RunIndex(account_mode)),
        ModeKey::Other => Sorted::Note(NotedKey::Other),
    }
}

fn account_mode(series: Series, number: Number) -> Job<FoundRecord> {
    Job::new([place_read(series, number)], FoundRecord::Place(series, number))
}

fn users(account: &str, key: &str) -> Job<FoundRecord> {
    Job::new(
        [Read::hash(Bucket::from_account(account), key)],
        FoundRecord::Users(account.to_owned(), key.to_owned()),
    )
}

fn email_lookup(key: String) -> Job<FoundRecord> {
    Job::new([Read::global(&key)], FoundRecord::EmailLookup(key))
}

fn key_lookup(kind: KeyRecordKind, key: String) -> Job<FoundRecord> {
    Job::new([Read::global(&key)], FoundRecord::KeyLookup(kind, key))
}

fn issued(kind: KeyRecordKind, (account, id, key): (&str, &str, &str)) -> Job<FoundRecord> {
    let fields = ["hash", "agent", "revoked_at", "created_at"].map(str::to_owned);
    let (account, id, bucket) = (account.to_owned(), id.to_owned(), Bucket::from_account(account));
    Job::new(
        [Read::fields(bucket, key, &fields)],
        FoundRecord::Key(kind, account, id, key.to_owned()),
    )
}

/// Reads a hold, and whether its index contains it. The hold is read before and after the index: if it exists both
/// times, it existed in between.
fn hold(bucket: Bucket, id: &str, state: HoldState) -> Job<FoundRecord> {
    let (key, index) = (state.record(bucket, id), state.index(bucket));
    let text = || Read::text(bucket, &key);
    Job::new(
        [text(), Read::score(bucket, index, id), text()],
        FoundRecord::Hold {
            bucket,
            id: id.to_owned(),
            state,
        },
    )
}
