//! Tests that every key name can be parsed, and that no other text can.

use super::*;
use crate::keys;
use crate::keys::Realm;

fn number(bucket: Bucket) -> Number {
    Number::new(28_000_000_000, bucket.number()).unwrap()
}

const ACCT: &str = "acct_1";

#[test]
fn every_global_name_is_recognised() {
    let hash = "0f".repeat(32);
    let name = keys::user_lookup("a@example.com");
    assert_eq!(Key::parse(&name), Some(Key::Global(GlobalKey::UserLookup)));
    let name = keys::virtual_key_lookup(&hash);
    assert_eq!(Key::parse(&name), Some(Key::Global(GlobalKey::VirtualKeyLookup)));
    let name = keys::api_key_lookup(&hash);
    assert_eq!(Key::parse(&name), Some(Key::Global(GlobalKey::ApiKeyLookup)));
    for name in [
        keys::session_lookup(&hash),
        keys::invitation_lookup(&hash),
        keys::reset_lookup(&hash),
        keys::attempts(keys::Tries::Login, "a"),
        keys::attempts(keys::Tries::LoginAddress, "::1"),
        keys::deposit_lookup("ref"),
    ] {
        assert_eq!(Key::parse(&name), Some(Key::Global(GlobalKey::Other)), "{name}");
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
fn every_name_of_a_bucket_is_recognised() {
    for bucket in [Bucket(0), Bucket(7), Bucket(1023)] {
        let read = |name: &str, key: BucketKey<'_>| {
            assert_eq!(Key::parse(name), Some(Key::Bucket(bucket, key)), "{name}");
        };
        let number = number(bucket);
        read(&bucket.hold("allow_1"), BucketKey::Hold("allow_1"));
        read(&bucket.kept_hold("allow_1"), BucketKey::KeptHold("allow_1"));
        read(&Bucket::wallet_place(number), BucketKey::WalletPlace(number));
        read(&Bucket::escrow_place(number), BucketKey::EscrowPlace(number));
        for name in [
            bucket.due(),
            bucket.kept(),
            bucket.counted_denials(),
            bucket.transit(),
            bucket.webhooks_ready(),
            format!("{{b{:04}}}/{FENCE}", bucket.0),
            bucket.witnessed(),
            bucket.counter(Series::Wallet),
            bucket.counter(Series::Escrow),
            bucket.arrived("escrow:3:released"),
        ] {
            read(&name, BucketKey::Other);
        }
    }
}

#[test]
fn every_name_of_an_account_is_recognised() {
    let keys = AccountKeys::new(ACCT);
    let read = |name: &str, key: AccountKey<'_>| {
        assert_eq!(Key::parse(name), Some(Key::Account(ACCT, key)), "{name}");
    };
    read(&keys.virtual_key("vk_1"), AccountKey::VirtualKey("vk_1"));
    read(&keys.api_key("key_1"), AccountKey::ApiKey("key_1"));
    read(&keys.users(), AccountKey::Users);
    for name in [
        keys.record(),
        keys.active_keys(),
        keys.agent_keys("live"),
        keys.rate("vk_1"),
        keys.sealed_agents(),
        keys.api_keys(),
        keys.management_rate(Rate::WalletMinute, "key_1"),
        keys.management_rate(Rate::PerDay, "key_1"),
        keys.management_rate(Rate::PerMinute, "key_1"),
        keys.sessions("usr_1"),
        keys.last_logins(),
        keys.invitations(),
        keys.reset("usr_1"),
    ] {
        read(&name, AccountKey::Other);
    }
}

#[test]
fn every_name_of_a_mode_is_recognised() {
    for mode in Mode::ALL {
        let realm = Realm::new(ACCT, mode);
        let read = |name: &str, key: ModeKey<'_>| {
            assert_eq!(Key::parse(name), Some(Key::Mode(ACCT, mode, key)), "{name}");
        };
        let (agent, run) = ("a:b", "c:d");
        read(&realm.run(agent, run), ModeKey::Run { agent, run });
        read(&realm.all_runs(), ModeKey::AllRuns);
        read(&realm.agent("txns"), ModeKey::Agent("txns"));
        read(&realm.wallet("bot"), ModeKey::Agent("bot"));
        read(&realm.wallet(USER), ModeKey::UserWallet);
        read(&realm.closed_wallet(7), ModeKey::ClosedWallet(7));
        read(&realm.open_escrows(USER), ModeKey::OpenEscrows(USER));
        read(&realm.escrow(3), ModeKey::Escrow(3));
        read(&realm.intent("int_1"), ModeKey::Intent("int_1"));
        read(&realm.intent_segments(), ModeKey::IntentSegments);
        read(&realm.deposit("ref"), ModeKey::Deposit);
        for name in [
            realm.runs("a:b"),
            realm.agents(),
            realm.policies(),
            realm.policy("pol_1"),
            realm.account_policies(),
            realm.audit(),
            realm.audit_hashes(),
            realm.audit_base(),
            realm.audit_segments(),
            realm.audit_archived(),
            realm.audit_decisions("01KAH3V"),
            realm.audit_day(20_777),
            realm.audit_late(20_777),
            realm.audit_kept(),
            realm.audit_index(Some("bot"), None),
            realm.audit_index(None, Some("agent.frozen")),
            realm.audit_index(Some("a:b"), Some("x.y")),
            realm.notices("d20777"),
            realm.notices("m202611"),
            realm.frozen_agents(),
            realm.transactions(),
            realm.escrow_siblings(3),
            realm.escrows(),
            realm.webhooks(),
            realm.violations(),
            realm.violations_waiting(),
            realm.violations_order(),
            realm.webhook("wh_1"),
            realm.deliveries("wh_1"),
            realm.deliveries_in("wh_1", DeliverySet::Parked),
        ] {
            read(&name, ModeKey::Other);
        }
    }
}

#[test]
fn every_list_is_recognised() {
    let realm = Realm::new(ACCT, Mode::Live);
    let read = |name: &str, key: ModeKey<'_>| {
        assert_eq!(Key::parse(name), Some(Key::Mode(ACCT, Mode::Live, key)), "{name}");
    };
    let all = TransactionType::ALL.iter().map(|kind| kind.as_str());
    for kind in all.clone() {
        read(&realm.transactions_of_type(kind), ModeKey::TransactionList);
    }
    // An agent may have the name of a type, or of the word before the number of a closed wallet.
    for holder in [USER, "bot", "spend", "closed", "closed/17"] {
        for kind in all.clone().map(Some).chain([None]) {
            let name = realm.transactions_of_wallet(holder, kind);
            read(&name, ModeKey::TransactionList);
        }
    }
    let kinds = IntentKind::ALL
        .iter()
        .map(|kind| IntentIndex::Kind(kind.as_str()));
    let states = IntentState::ALL
        .iter()
        .map(|state| IntentIndex::State(state.as_str()));
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
