//! Numbers, ids and keys that two records claim, that lead nowhere or elsewhere, or that a record has lost.

use super::damage::{damage, each_is_found};
use super::fixture::Fixture;
use crypto::sha256_hex;
use domain::number::Number;
use serde_json::{Value, json};
use store::keys::{Bucket, Series, USER, api_key_lookup, deposit_lookup, user_lookup, virtual_key_lookup};

const NAMES: &[&str] = &["names"];

fn wallet_place(number: u64) -> String {
    Bucket::wallet_place(Number::from_u64(number).expect("a number with its bucket"))
}

fn escrow_place(number: u64) -> String {
    Bucket::escrow_place(Number::from_u64(number).expect("a number with its bucket"))
}

#[tokio::test]
async fn damaged_look_ups_of_wallets_and_escrows_are_found() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let [one, two] = &fixture.tenants;
    let (mine, others) = (one.wallets[1], two.wallets[1]);
    let of = &fixture.escrows;
    let number = |number: u64| number.to_string();
    // The first account has drawn further than this.
    let unused = mine + 1024;
    let lost = damage(wallet_place(mine), "DEL {}", NAMES).names(number(mine));
    let place: String = fixture.redis.command(&["GET", &wallet_place(others)]);
    let set =
        |key: String, text: String, named: u64| damage(key, "SET {}", NAMES).word(text).names(number(named));
    let [here, there] = [one, two].map(|tenant| format!("{} live", tenant.account.id));
    let elsewhere = set(wallet_place(mine), place, mine);
    let nowhere = set(wallet_place(unused), format!("{here} nobody wal_1"), unused);
    let of_nobody = set(escrow_place(unused), here, unused);
    let to_another = set(escrow_place(of.pending), there, of.pending);
    let bucket = one.account.keys.bucket();
    let all = vec![
        lost,
        elsewhere,
        nowhere,
        damage(
            one.account.keys.live().agent("ann"),
            "HSET {} wallet wal_other",
            NAMES,
        )
        .names(number(mine)),
        damage(
            one.account.keys.live().wallet(USER),
            "HSET {} wallet wal_other",
            NAMES,
        )
        .names(number(one.wallets[0])),
        of_nobody,
        to_another,
        damage(escrow_place(of.released), "DEL {}", NAMES).names(number(of.released)),
        damage(
            one.account.keys.live().escrows(),
            &format!("ZREM {{}} {}", of.pending),
            NAMES,
        )
        .names(number(of.pending)),
        damage(
            two.account.keys.live().escrows(),
            &format!("ZREM {{}} {}", of.disputed),
            NAMES,
        )
        .names(number(of.disputed)),
        damage(
            two.account.keys.live().escrows(),
            &format!("ZADD {{}} {unused} {unused}"),
            NAMES,
        )
        .names(number(unused)),
        damage(bucket.counter(Series::Wallet), "SET {} 5", NAMES),
        damage(bucket.counter(Series::Escrow), "DEL {}", NAMES),
    ];
    each_is_found(&fixture, all).await;
}

#[tokio::test]
async fn damaged_look_ups_of_keys_are_found() {
    let mut fixture = Fixture::build().await;
    let live = &fixture.tenants[0].live;
    let issue = async || {
        let reply = live.post("/v1/agents/ann/virtual-keys", json!({})).await;
        assert!(reply.status < 300, "{}", reply.text());
        let made = reply.json();
        let text = |at: &str| {
            made.pointer(at)
                .and_then(Value::as_str)
                .expect("a text")
                .to_owned()
        };
        (
            text("/virtualKey/keyId"),
            virtual_key_lookup(&sha256_hex(text("/secret").as_bytes())),
        )
    };
    let (kept, revoked) = (issue().await, issue().await);
    let path = format!("/v1/agents/ann/virtual-keys/{}", revoked.0);
    assert_eq!(live.delete(&path).await.status, 200);
    fixture.admin = None;
    let account = fixture.tenants[0].account.clone();
    let made = fixture
        .cli
        .json(&["api-key", "create", "--account", &account.id, "--mode", "live"]);
    let [key, id] = ["key", "keyId"].map(|field| made[field].as_str().expect("a text"));
    let api = api_key_lookup(&sha256_hex(key.as_bytes()));
    let all = vec![
        damage(&kept.1, "DEL {}", NAMES).names(&kept.0),
        damage(&kept.1, "SET {} acct_other", NAMES).names(&kept.0),
        damage(api, "DEL {}", NAMES).names(id),
        damage(account.keys.api_key(id), "HDEL {} hash", NAMES).names(id),
    ];
    each_is_found(&fixture, all).await;
    // A revoked key is refused anyway.
    let _: i64 = fixture.redis.command(&["DEL", &revoked.1]);
    assert_eq!(fixture.cli.run(&["ledger", "check"]).code, Some(0));
}

/// A look-up of the hash of one's own secret, in front of the key of another: without the check it opens that key.
#[tokio::test]
async fn look_ups_that_lead_to_keys_of_others() {
    let mut fixture = Fixture::build().await;
    let account = fixture.tenants[0].account.id.clone();
    let issue = |name: &str| {
        let made = ["api-key", "create", "--account", &account, "--mode", "live"];
        let made = fixture.cli.json(&[&made[..], &["--name", name]].concat());
        let text = |at: &str| made[at].as_str().expect("a text").to_owned();
        (text("keyId"), text("key"))
    };
    let ((victim, _), (ended, secret)) = (issue("victim"), issue("ended"));
    let reply = fixture.tenants[0]
        .live
        .post("/v1/agents/ann/virtual-keys", json!({}))
        .await;
    let made = reply.json();
    let virtual_key = made["virtualKey"]["keyId"].as_str().expect("an id").to_owned();
    let revoke = ["api-key", "revoke", "--account", &account, "--key", &ended];
    fixture.cli.json(&revoke);
    // A secret whose own key is revoked opens no other key, either.
    let own = api_key_lookup(&sha256_hex(secret.as_bytes()));
    let before: String = fixture.redis.command(&["GET", &own]);
    let _: String = fixture
        .redis
        .command(&["SET", &own, &format!("{account} {victim}")]);
    let admin = fixture.admin.as_ref().expect("a server");
    let reply = admin.caller(&secret).get("/v1/agents").await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    let _: String = fixture.redis.command(&["SET", &own, &before]);
    fixture.admin = None;

    let hash = |text: &str| sha256_hex(text.as_bytes());
    let forged = |lookup: String, owner: String, key: &str| {
        damage(lookup, "SET {}", NAMES).word(owner).names(key.to_owned())
    };
    let all = vec![
        forged(
            api_key_lookup(&hash("mine")),
            format!("{account} {victim}"),
            &victim,
        ),
        forged(
            virtual_key_lookup(&hash("mine")),
            format!("{account} ann {virtual_key}"),
            &virtual_key,
        ),
        forged(api_key_lookup(&hash("odd")), "nonsense".to_owned(), &hash("odd")),
    ];
    each_is_found(&fixture, all).await;
    // Announced, of a key that was revoked, of a key that was removed since: none opens anything.
    let set = |lookup: String, owner: String, more: &[&str]| {
        let command = [&["SET", &lookup, &owner][..], more].concat();
        let _: String = fixture.redis.command(&command);
    };
    let announced = format!("{account} ann vk_announced");
    set(virtual_key_lookup(&hash("soon")), announced, &["PX", "3600000"]);
    set(api_key_lookup(&hash("old")), format!("{account} {ended}"), &[]);
    set(api_key_lookup(&hash("gone")), format!("{account} key_gone"), &[]);
    assert_eq!(fixture.cli.run(&["ledger", "check"]).code, Some(0));
}

#[tokio::test]
async fn damaged_look_ups_of_pending_deposits_are_found() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    // Both tenants have a pending deposit of this reference.
    let lookup = deposit_lookup("ann-2");
    let [one, two] = fixture.tenants.each_ref().map(|tenant| &tenant.account);
    let [deposit, other] = [one, two].map(|account| account.keys.live().deposit("ann-2"));
    let all = vec![
        damage(&lookup, "SREM {}", NAMES)
            .word(format!("{} live", one.id))
            .names(&deposit),
        damage(&lookup, "DEL {}", NAMES).names(&deposit),
        damage(&lookup, "DEL {}", NAMES).names(other),
        damage(&lookup, "SET {} x", NAMES),
    ];
    each_is_found(&fixture, all).await;
    // A confirmed one needs no look-up.
    let _: i64 = fixture.redis.command(&["DEL", &deposit_lookup("bob-2")]);
    assert_eq!(fixture.cli.run(&["ledger", "check"]).code, Some(0));
}

#[tokio::test]
async fn damaged_look_ups_of_users_are_found() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let email = "ann@example.com";
    let (lookup, nobody) = (user_lookup(email), user_lookup("nobody@example.com"));
    let [one, two] = fixture.tenants.each_ref().map(|tenant| tenant.account.id.clone());
    let create = |account: &str, email: &str| {
        let args = ["user", "create", "--account", account, "--email", email];
        let args = [&args[..], &["--role", "viewer", "--password-stdin", "--json"]].concat();
        let made = fixture.cli.run_with_stdin(&args, "correct horse battery\n");
        assert_eq!(made.code, Some(0), "{made:?}");
        let made: Value = serde_json::from_str(&made.stdout).expect("a document");
        made["userId"].as_str().expect("an id").to_owned()
    };
    let (user, other) = (create(&one, email), create(&one, "bob@example.com"));
    create(&two, email);
    let users = fixture.tenants[0].account.keys.users();
    let record: String = fixture.redis.command(&["HGET", &users, email]);
    let lines: String = fixture.redis.command(&["GET", &lookup]);
    let set = |text: String| damage(&lookup, "SET {}", NAMES).word(text);
    let all = vec![
        // A user without its look-up, the only one or one of several.
        damage(user_lookup("bob@example.com"), "DEL {}", NAMES),
        set(lines.lines().skip(1).collect()).names(&users),
        // A look-up whose user or account does not exist.
        damage(&users, "HDEL {} ann@example.com", NAMES).names(&lookup),
        damage(nobody, "SET {}", NAMES).word(format!("{one} usr_nobody")),
        set(format!("{lines}\nacct_nobody usr_nobody")),
        // Two users of one look-up.
        set(format!("{lines}\n{one} {other}")),
        set(lines.replace(&user, &other)).names(&users),
        // A line without a user.
        set(lines.replace(&format!("{one} {user}"), &one)).names(&users),
        damage(&users, "HSET {} carl@example.com", NAMES).word(record),
        damage(&users, "HSET {} carl@example.com nonsense", NAMES),
        damage(&users, "SET {} x", NAMES),
    ];
    each_is_found(&fixture, all).await;
    let _: i64 = fixture.redis.command(&["DEL", &lookup]);
    let check = fixture.cli.run(&["ledger", "check", "--account", &one]);
    assert_eq!(check.code, Some(1), "{check:?}");
    let _: String = fixture.redis.command(&["SET", &lookup, &lines]);
    // Removing the user again completes an interrupted removal.
    let _: i64 = fixture.redis.command(&["HDEL", &users, email]);
    let remove = ["user", "remove", "--email", email, "--account", &one];
    assert_eq!(fixture.cli.json(&remove)["lookupRepaired"], json!(true));
    assert_eq!(fixture.cli.run(&["ledger", "check"]).code, Some(0));
    assert_eq!(fixture.cli.run(&remove).code, Some(1));
}
