//! Tests that every key name can be parsed, and that no other text can.

use super::*;
use crate::keys;
use crate::keys::Realm;

/// A number of this bucket.
fn number(bucket: Bucket) -> Number {
    Number::new(28_000_000_000, bucket.number()).unwrap()
}

const ACCT: &str = "acct_1";

#[test]
fn every_global_name_is_read_back() {
    let hash = "0f".repeat(32);
    for (name, key) in [
        (keys::STORE.to_owned(), GlobalKey::Store),
        (keys::ACCOUNTS.to_owned(), GlobalKey::Accounts),
        (keys::PRICES.to_owned(), GlobalKey::Prices),
        (keys::PRICE_TABLES.to_owned(), GlobalKey::PriceTables),
        (keys::BLOCKED.to_owned(), GlobalKey::Blocked),
        (keys::REFUSED.to_owned(), GlobalKey::Refused),
        (keys::FOLLOWED.to_owned(), GlobalKey::Followed),
        (keys::WALLET_NUMBER.to_owned(), GlobalKey::WalletNumber),
        (keys::ESCROW_NUMBER.to_owned(), GlobalKey::EscrowNumber),
        (keys::virtual_key_lookup(&hash), GlobalKey::VirtualKeyLookup),
        (keys::api_key_lookup(&hash), GlobalKey::ApiKeyLookup),
        (keys::user_lookup("a@example.com"), GlobalKey::UserLookup),
        (keys::session_lookup(&hash), GlobalKey::SessionLookup),
        (keys::invitation_lookup(&hash), GlobalKey::InvitationLookup),
        (keys::reset_lookup(&hash), GlobalKey::ResetLookup),
        (keys::attempts(keys::Tries::Login, "a"), GlobalKey::Attempts),
        (
            keys::attempts(keys::Tries::LoginAddress, "::1"),
            GlobalKey::Attempts,
        ),
        (keys::wallet_lookup("17"), GlobalKey::WalletLookup),
        (keys::wallet_lookup("wal_1"), GlobalKey::WalletLookup),
        (keys::escrow_lookup(3), GlobalKey::EscrowLookup),
        (keys::deposit_lookup("ref"), GlobalKey::DepositLookup),
    ] {
        assert_eq!(Key::parse(&name), Some(Key::Global(key)), "{name}");
    }
}

/// `ledger check` reports a key that no name fits, so a name must not be forgotten here.
#[test]
fn every_constant_name_outside_the_buckets_can_be_parsed() {
    let source = include_str!("../outside.rs");
    let values = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1));
    let names: Vec<&str> = values.collect();
    assert!(
        names.contains(&keys::STORE) && names.contains(&keys::FOLLOWED),
        "{names:?}"
    );
    for name in names {
        assert!(matches!(Key::parse(name), Some(Key::Global(_))), "{name}");
    }
}

#[test]
fn every_name_of_a_bucket_is_read_back() {
    for bucket in [Bucket(0), Bucket(7), Bucket(1023)] {
        for (name, key) in [
            (bucket.hold("allow_1"), BucketKey::Hold("allow_1")),
            (bucket.due(), BucketKey::Due),
            (bucket.kept(), BucketKey::Kept),
            (bucket.kept_hold("allow_1"), BucketKey::KeptHold("allow_1")),
            (bucket.counted_denials(), BucketKey::CountedDenials),
            (bucket.transit(), BucketKey::Transit),
            (bucket.webhooks_ready(), BucketKey::WebhooksReady),
            (format!("{{b{:04}}}/{FENCE}", bucket.0), BucketKey::Fence),
            (bucket.witnessed(), BucketKey::Witnessed),
            (bucket.counter(Series::Wallet), BucketKey::Counter(Series::Wallet)),
            (bucket.counter(Series::Escrow), BucketKey::Counter(Series::Escrow)),
            (
                Bucket::wallet_place(number(bucket)),
                BucketKey::WalletPlace(number(bucket)),
            ),
            (
                Bucket::escrow_place(number(bucket)),
                BucketKey::EscrowPlace(number(bucket)),
            ),
            (
                bucket.arrived("escrow:3:released"),
                BucketKey::Arrived("escrow:3:released"),
            ),
        ] {
            assert_eq!(Key::parse(&name), Some(Key::Bucket(bucket, key)), "{name}");
        }
    }
}

#[test]
fn every_name_of_an_account_is_read_back() {
    let keys = AccountKeys::new(ACCT);
    for (name, key) in [
        (keys.record(), AccountKey::Record),
        (keys.active_keys(), AccountKey::ActiveKeys),
        (keys.virtual_key("vk_1"), AccountKey::VirtualKey("vk_1")),
        (keys.agent_keys("live"), AccountKey::AgentKeys("live")),
        (keys.rate("vk_1"), AccountKey::Rate("vk_1")),
        (keys.sealed_agents(), AccountKey::SealedAgents),
        (keys.api_key("key_1"), AccountKey::ApiKey("key_1")),
        (keys.api_keys(), AccountKey::ApiKeys),
        (
            keys.management_rate(Rate::WalletMinute, "key_1"),
            AccountKey::ManagementRate(Rate::WalletMinute, "key_1"),
        ),
        (
            keys.management_rate(Rate::PerDay, "key_1"),
            AccountKey::ManagementRate(Rate::PerDay, "key_1"),
        ),
        (
            keys.management_rate(Rate::PerMinute, "key_1"),
            AccountKey::ManagementRate(Rate::PerMinute, "key_1"),
        ),
        (keys.users(), AccountKey::Users),
        (keys.sessions("usr_1"), AccountKey::Sessions("usr_1")),
        (keys.last_logins(), AccountKey::LastLogins),
        (keys.invitations(), AccountKey::Invitations),
        (keys.reset("usr_1"), AccountKey::Reset("usr_1")),
    ] {
        assert_eq!(Key::parse(&name), Some(Key::Account(ACCT, key)), "{name}");
    }
}

#[test]
fn every_name_of_a_mode_is_read_back() {
    for mode in Mode::ALL {
        let realm = Realm::new(ACCT, mode);
        let deposit = realm.deposit("ref");
        let hash = deposit.rsplit_once('/').unwrap().1;
        for (name, key) in [
            (
                realm.run("a:b", "c:d"),
                ModeKey::Run {
                    agent: "a:b",
                    run: "c:d",
                },
            ),
            (realm.runs("a:b"), ModeKey::Runs("a:b")),
            (realm.all_runs(), ModeKey::AllRuns),
            (realm.agent("txns"), ModeKey::Agent("txns")),
            (realm.agents(), ModeKey::Agents),
            (realm.policies(), ModeKey::Policies),
            (realm.policy("pol_1"), ModeKey::Policy("pol_1")),
            (realm.account_policies(), ModeKey::AccountPolicies),
            (realm.audit(), ModeKey::Audit),
            (realm.audit_hashes(), ModeKey::AuditHashes),
            (realm.audit_base(), ModeKey::AuditBase),
            (realm.audit_segments(), ModeKey::AuditSegments),
            (realm.audit_archived(), ModeKey::AuditArchived),
            (
                realm.audit_decisions("01KAH3V"),
                ModeKey::AuditDecisions("01KAH3V"),
            ),
            (realm.audit_day(20_777), ModeKey::AuditDay(20_777)),
            (realm.audit_late(20_777), ModeKey::AuditLate(20_777)),
            (realm.audit_kept(), ModeKey::AuditKept),
            (realm.notices("d20777"), ModeKey::Notices("d20777")),
            (realm.notices("m202611"), ModeKey::Notices("m202611")),
            (realm.frozen_agents(), ModeKey::FrozenAgents),
            (realm.wallet(USER), ModeKey::UserWallet),
            (realm.wallet("bot"), ModeKey::Agent("bot")),
            (realm.closed_wallet(7), ModeKey::ClosedWallet(7)),
            (realm.open_escrows(USER), ModeKey::OpenEscrows(USER)),
            (realm.transactions(), ModeKey::Transactions),
            (realm.escrow(3), ModeKey::Escrow(3)),
            (realm.escrow_siblings(3), ModeKey::EscrowSiblings(3)),
            (realm.escrows(), ModeKey::Escrows),
            (realm.intent("int_1"), ModeKey::Intent("int_1")),
            (realm.intent_segments(), ModeKey::IntentSegments),
            (deposit.clone(), ModeKey::Deposit(hash)),
            (realm.webhooks(), ModeKey::Webhooks),
            (realm.violations(), ModeKey::Violations),
            (realm.violations_waiting(), ModeKey::ViolationsWaiting),
            (realm.violations_order(), ModeKey::ViolationsOrder),
            (realm.webhook("wh_1"), ModeKey::Webhook("wh_1")),
            (realm.deliveries("wh_1"), ModeKey::Deliveries("wh_1")),
            (
                realm.deliveries_in("wh_1", DeliverySet::Parked),
                ModeKey::DeliveriesIn("wh_1", DeliverySet::Parked),
            ),
        ] {
            assert_eq!(Key::parse(&name), Some(Key::Mode(ACCT, mode, key)), "{name}");
        }
    }
}

#[test]
fn every_list_is_read_back() {
    let realm = Realm::new(ACCT, Mode::Live);
    let read = |name: &str, key: ModeKey<'_>| {
        assert_eq!(Key::parse(name), Some(Key::Mode(ACCT, Mode::Live, key)), "{name}");
    };
    let all = TransactionType::ALL.iter().copied();
    for kind in all.clone() {
        read(
            &realm.transactions_of_type(kind.as_str()),
            ModeKey::TransactionsOfType(kind),
        );
    }
    // An agent may have the name of a type, or of the word before the number of a closed wallet.
    for holder in [USER, "bot", "spend", "closed", "closed/17"] {
        for kind in all.clone().map(Some).chain([None]) {
            let name = realm.transactions_of_wallet(holder, kind.map(TransactionType::as_str));
            read(&name, ModeKey::TransactionsOfWallet { holder, kind });
        }
    }
    let kinds = Kind::ALL.iter().map(|kind| IntentIndex::Kind(kind.as_str()));
    let states = State::ALL.iter().map(|state| IntentIndex::State(state.as_str()));
    let agents = [
        IntentIndex::All,
        IntentIndex::Agent("bot"),
        IntentIndex::Agent(USER),
    ];
    for index in kinds.chain(states).chain(agents) {
        read(&realm.intents(index), ModeKey::Intents(index));
    }
}

#[test]
fn every_index_of_the_trail_is_read_back() {
    let realm = Realm::new(ACCT, Mode::Test);
    for (agent, kind) in [
        (Some("bot"), None),
        (None, Some("agent.frozen")),
        (Some("a:b"), Some("x.y")),
    ] {
        let name = realm.audit_index(agent, kind);
        let key = ModeKey::AuditIndex { agent, kind };
        assert_eq!(
            Key::parse(&name),
            Some(Key::Mode(ACCT, Mode::Test, key)),
            "{name}"
        );
    }
}

#[test]
fn unmatched_text_is_not_a_key() {
    let base = AccountKeys::new(ACCT).record();
    let other = if base.starts_with("{b0001}") {
        "{b0002}"
    } else {
        "{b0001}"
    };
    let of_account = [
        "/",
        "/agents",
        "/live",
        "/live/",
        "/live/agent/",
        "/live/agent/user",
        "/live/agent/a/b",
        "/live/run/a",
        "/live/nothing",
        "/live/closed-wallet/07",
        "/live/escrow/x",
        "/live/escrow/3/sibling",
        "/live/txns/type/loan",
        "/live/txns/of/",
        "/live/txns/of/a/b",
        "/live/intents/state/lost",
        "/live/deposit/0f",
        "/live/audit/of/*/*",
        "/live/audit/of/a b/*",
        "/live/audit/decisions/01",
        "/live/audit/more",
        "/prod/agents",
        "/vk/",
        "/agent-keys/a b",
        "/rate-minute/",
        "/rate-hour/key_1",
    ];
    let of_account = of_account.iter().map(|rest| format!("{base}{rest}"));
    let others = [
        "",
        "x",
        "tollgate/",
        "tollgate/none",
        "tollgate/vk/0f",
        "tollgate/wallet/x",
        "tollgate/escrow/-1",
        "{b1}/due",
        "{b0001}/agent-number",
        "{b0001}/wallet/17",
        "{b0001}/wallet/28672000000002",
        "{b0001}/escrow/028672000000001",
    ];
    let others = others.iter().chain(&[
        "{b1024}/due",
        "{b0001}/hold/",
        "{b0001}/hold/a/b",
        "{b0001}due",
        "{b0001}/+",
    ]);
    let wrong_bucket = format!("{other}/{ACCT}");
    for name in of_account
        .chain(others.map(|name| (*name).to_owned()))
        .chain([wrong_bucket])
    {
        assert_eq!(Key::parse(&name), None, "{name}");
    }
}
