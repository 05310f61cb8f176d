//! Listing transactions: records, filters, spans of time, pages (decisions D19, D56).

use crate::account_fixture::AccountFixture;
use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use domain::timestamp::iso_from_ms;
use harness::assert_fields;
use serde_json::{Value, json};
use std::time::Duration;
use store::transaction::Transaction;

const LIST: &str = "/v1/transactions";

async fn list(tenant: &AccountFixture, path: &str) -> Value {
    success(&tenant.caller.get(path).await, 200)
}

fn ids(body: &Value) -> Vec<String> {
    let records = body["transactions"].as_array().unwrap().iter();
    records.map(|record| text(record, "/id").to_owned()).collect()
}

#[tokio::test]
async fn a_record_to_the_letter() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let user = tenant.user().await;
    let body =
        json!({ "wallet": "user", "amount": "8999999.999999999", "reference": "rail-1", "currency": "USDC" });
    success(&tenant.caller.post("/v1/wallet/deposits", body).await, 200);
    let body = json!({ "from": "user", "to": "bot", "amount": "0.000000001", "memo": "Grüße" });
    let moved = success(&tenant.caller.post("/v1/wallet/transfer", body).await, 200);
    let reply = tenant.caller.get(LIST).await;
    let listed = success(&reply, 200);
    assert_fields!(listed, { "total": 3, "limit": 50, "offset": 0 });
    let out = &listed["transactions"][1];
    let expected = json!({ "id": moved["transactionId"], "walletId": user, "type": "transfer_out",
        "amount": 0.000000001, "currency": "USD", "counterparty": bot.number.to_string(), "intentId": null,
        "balanceAfter": 8999999.999999998, "memo": "Grüße", "createdAt": moved["transfer"]["createdAt"] });
    assert_eq!(*out, expected);
    for exact in [
        "\"amount\":8999999.999999999,\"currency\":\"USDC\",\"counterparty\":\"rail-1\"",
        "\"amount\":0.000000001,",
        "\"balanceAfter\":8999999.999999998,",
    ] {
        assert!(reply.text().contains(exact), "{exact}: {}", reply.text());
    }
}

#[tokio::test]
async fn filters_name_wallets_agents_and_types() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let (one, two) = (tenant.bot("one").await, tenant.bot("two").await);
    let user = tenant.user().await;
    tenant.fund("one", 5).await;
    tenant.fund("user", 5).await;
    for (from, to) in [("one", "two"), ("two", "user"), ("user", "one")] {
        let body = json!({ "from": from, "to": to, "amount": "0.5" });
        success(&tenant.caller.post("/v1/wallet/transfer", body).await, 200);
    }
    let total = async |query: &str| {
        let body = list(&tenant, &format!("{LIST}?{query}")).await;
        assert_eq!(body["total"], json!(ids(&body).len()));
        body["total"].as_u64().unwrap()
    };
    let numbered = format!("walletId={}", one.number);
    for (query, count) in [
        ("", 8),
        ("type=deposit", 2),
        ("type=transfer_in", 3),
        ("type=transfer_out", 3),
        ("type=spend", 0),
        ("type=escrow_fund", 0),
        ("agentId=one", 3),
        ("agentId=one&type=deposit", 1),
        ("agentId=two&type=transfer_in", 1),
        ("agentId=nobody", 0),
        (&numbered, 3),
        (&format!("walletId={}", one.id), 3),
        (&format!("walletId={user}&type=transfer_in"), 1),
        (&format!("{numbered}&agentId=one"), 3),
        (&format!("{numbered}&agentId=two"), 0),
        (&format!("walletId={user}&agentId=one"), 0),
        ("walletId=99999", 0),
        ("to=9999-12-31T23:59:59Z", 8),
        ("from=9999-12-31T23:59:59Z", 0),
    ] {
        assert_eq!(total(query).await, count, "{query}");
    }
    for name in [two.number.to_string(), two.id.clone()] {
        for prefix in ["/v1", "/api/v1"] {
            let body = list(&tenant, &format!("{prefix}/wallets/{name}/transactions")).await;
            assert_eq!(body["total"], json!(2));
            let numbers = body["transactions"].as_array().unwrap().iter();
            assert!(
                numbers
                    .map(|one| &one["walletId"])
                    .all(|id| *id == json!(two.number))
            );
        }
    }
    let stranger = AccountFixture::new(&fixture).await;
    let live = AccountFixture::with_account(&fixture, tenant.account.clone(), Mode::Live).await;
    for outsider in [&stranger, &live] {
        for query in ["", "?agentId=one", &format!("?{numbered}"), "?type=deposit"] {
            let body = list(outsider, &format!("{LIST}{query}")).await;
            assert_eq!(body["total"], json!(0), "{query}");
        }
    }
    let of_wallet = format!("/v1/wallets/{}/transactions", one.number);
    for (path, named) in [
        (format!("{LIST}?type=gift"), "type must be one of deposit,"),
        (format!("{LIST}?from=yesterday"), "from must be an ISO 8601"),
        (format!("{LIST}?to=1700000000"), "to must be an ISO 8601"),
        (format!("{LIST}?agentId=a%20b"), "agentId must be"),
        (format!("{LIST}?agentId=user"), "agentId must be"),
        (format!("{LIST}?walletId=one"), "walletId must be"),
        (format!("{LIST}?walletId=0"), "walletId must be"),
        (format!("{LIST}?walletId={}", &one.id[..20]), "walletId must be"),
        (
            format!("{LIST}?sort=asc"),
            "\"sort\" is not a query parameter here",
        ),
        (
            format!("{of_wallet}?agentId=one"),
            "\"agentId\" is not a query parameter here",
        ),
    ] {
        let sentence = problem(&tenant.caller.get(&path).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{path}: {sentence}");
    }
}

#[tokio::test]
async fn a_statement_is_the_list_as_a_file() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    tenant.fund("bot", "5.000000001").await;
    let body = json!({ "from": "bot", "to": "user", "amount": "2.5", "memo": "=1+1;@x" });
    success(&tenant.caller.post("/v1/wallet/transfer", body).await, 200);
    let of_wallet = format!("/v1/wallets/{}/transactions", bot.number);
    let header =
        "id,createdAt,walletId,type,direction,amount,currency,balanceAfter,counterparty,intentId,memo\r\n";

    let listed = list(&tenant, &of_wallet).await;
    let reply = tenant.caller.get(&format!("{of_wallet}?format=csv")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("text/csv; charset=utf-8"));
    let name = format!("transactions_{}_test.csv", tenant.account.id);
    assert!(
        reply.header("content-disposition").unwrap().contains(&name),
        "{reply:?}"
    );
    let row = |n: usize, rest: &str| {
        let of = |field: &str| text(&listed, &format!("/transactions/{n}/{field}")).to_owned();
        format!("{},{},{},{rest}\r\n", of("id"), of("createdAt"), bot.number)
    };
    let with = |n: usize| text(&listed, &format!("/transactions/{n}/counterparty")).to_owned();
    let expected = [
        header.to_owned(),
        row(
            0,
            &format!("transfer_out,out,2.5,USD,2.500000001,{},,'=1+1;'@x", with(0)),
        ),
        row(
            1,
            &format!("deposit,in,5.000000001,USD,5.000000001,{},,", with(1)),
        ),
    ];
    assert_eq!(reply.text(), expected.concat());

    let rows = async |path: &str| {
        let file = tenant.caller.get(path).await.text();
        assert!(file.starts_with(header), "{path}: {file}");
        file.lines().count() - 1
    };
    for (path, count) in [
        (format!("{of_wallet}?format=csv&type=deposit"), 1),
        (format!("{of_wallet}?format=csv&to=2026-01-01T00:00:00Z"), 0),
        (format!("{LIST}?format=csv"), 3),
        (format!("{LIST}?format=csv&agentId=bot"), 2),
        (format!("{LIST}?format=csv&walletId=99999"), 0),
    ] {
        assert_eq!(rows(&path).await, count, "{path}");
    }
    // A page of a file would be a part that looks like the whole.
    for (query, named) in [
        ("format=csv&limit=5", "limit"),
        ("format=csv&offset=0", "offset"),
        ("format=csv&cursor=x", "cursor"),
        ("format=xml", "format"),
    ] {
        let sentence = problem(
            &tenant.caller.get(&format!("{LIST}?{query}")).await,
            400,
            "VALIDATION",
        );
        assert!(sentence.starts_with(named), "{query}: {sentence}");
    }
    let stranger = AccountFixture::new(&fixture).await;
    let reply = stranger.caller.get(&format!("{of_wallet}?format=csv")).await;
    problem(&reply, 404, "NOT_FOUND");
    assert_eq!(
        stranger.caller.get(&format!("{LIST}?format=csv")).await.text(),
        header
    );
}

#[tokio::test]
async fn a_statement_is_whole_or_refused() {
    const MOST: u64 = 100_000;
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    // More than one step of a file.
    let all = history(&fixture, &tenant, 520).await;
    let file = tenant.caller.get(&format!("{LIST}?format=csv")).await.text();
    let ids: Vec<&str> = file
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    let newest: Vec<&str> = all.iter().rev().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, newest);
    // So many that the file is refused, of which the first step can be read.
    let lines = tenant.account.keys.in_mode(Mode::Test).transactions();
    let line: String = fixture
        .store
        .command(redis::cmd("HGET").arg(&lines).arg(1))
        .await
        .unwrap();
    let mut write = redis::cmd("HSET");
    write.arg(&lines);
    for number in MOST - 1000..=MOST + 1 {
        write.arg(number).arg(&line);
    }
    let _: u64 = fixture.store.command(&write).await.unwrap();
    let mut count = redis::cmd("HSET");
    count
        .arg(tenant.account.keys.record())
        .arg("test_txn_seq")
        .arg(MOST + 1);
    let _: u64 = fixture.store.command(&count).await.unwrap();
    let sentence = problem(
        &tenant.caller.get(&format!("{LIST}?format=csv")).await,
        400,
        "VALIDATION",
    );
    assert!(sentence.contains("at most 100000 transactions"), "{sentence}");
    assert!(sentence.contains("100001"), "{sentence}");
}

/// A history of `count` deposits, in bursts, to two wallets.
async fn history(fixture: &Fixture, tenant: &AccountFixture, count: usize) -> Vec<Transaction> {
    for n in 0..count {
        let owner = if n % 3 == 0 { "bot" } else { "user" };
        tenant.fund(owner, "0.01").await;
        if n % 40 == 39 {
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }
    let all = tenant.transactions(fixture).await;
    assert_eq!(all.len(), count);
    all
}

#[tokio::test]
async fn pages_and_spans_of_a_long_history_agree_with_a_scan() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let all = history(&fixture, &tenant, 260).await;
    agree_with_a_scan(&tenant, &all).await;
    // As after a failover to a server whose clock is behind, within the allowed difference.
    for number in 131..=260_usize {
        let key = tenant.account.keys.in_mode(tenant.mode).transactions();
        let line: String = fixture
            .store
            .command(redis::cmd("HGET").arg(&key).arg(number))
            .await
            .unwrap();
        let (at_ms, rest) = line.split_once(' ').unwrap();
        let at_ms = at_ms.parse::<u64>().unwrap() - 280_000;
        let mut set = redis::cmd("HSET");
        set.arg(&key).arg(number).arg(format!("{at_ms} {rest}"));
        let _: u64 = fixture.store.command(&set).await.unwrap();
    }
    agree_with_a_scan(&tenant, &tenant.transactions(&fixture).await).await;
}

/// Reads 260 transactions in every way.
async fn agree_with_a_scan(tenant: &AccountFixture, all: &[Transaction]) {
    let newest: Vec<&str> = all.iter().rev().map(|one| one.id.as_str()).collect();
    for (limit, offset) in [
        (200, 0),
        (200, 60),
        (200, 200),
        (7, 13),
        (1, 259),
        (50, 260),
        (50, 1000),
    ] {
        let body = list(tenant, &format!("{LIST}?limit={limit}&offset={offset}")).await;
        assert_eq!(body["total"], json!(260));
        let end = newest.len().min(offset + limit);
        assert_eq!(ids(&body), newest[offset.min(end)..end], "{limit} {offset}");
    }

    let first = all[0].at_ms;
    let mut bounds: Vec<u64> = all.iter().step_by(17).map(|one| one.at_ms).collect();
    bounds.extend([first - 1, first, first + 1, all[259].at_ms, all[259].at_ms + 1]);
    for (owner, path) in [
        (None, LIST.to_owned()),
        (Some("bot"), format!("{LIST}?agentId=bot&type=deposit")),
        (
            Some("user"),
            format!("/v1/wallets/{}/transactions", tenant.user().await),
        ),
    ] {
        for (at, from_ms) in bounds.iter().enumerate() {
            let other_ms = bounds[(at * 7 + 3) % bounds.len()];
            let (from_ms, to_ms) = (other_ms.min(*from_ms), other_ms.max(*from_ms));
            let expected: Vec<&str> = all
                .iter()
                .rev()
                .filter(|one| owner.is_none_or(|owner| one.owner == owner))
                .filter(|one| (from_ms..to_ms).contains(&one.at_ms))
                .map(|one| one.id.as_str())
                .collect();
            let sign = if path.contains('?') { '&' } else { '?' };
            let (from, to) = (iso_from_ms(from_ms), iso_from_ms(to_ms));
            let query = format!("{path}{sign}from={from}&to={to}");
            let body = list(tenant, &format!("{query}&limit=200")).await;
            assert_eq!(body["total"], json!(expected.len()), "{query}");
            assert_eq!(ids(&body), expected[..expected.len().min(200)], "{query}");
            let body = list(tenant, &format!("{query}&limit=3&offset=2")).await;
            let end = expected.len().min(5);
            assert_eq!(ids(&body), expected[end.min(2)..end], "{query}");
        }
        let sign = if path.contains('?') { '&' } else { '?' };
        let open = format!("{path}{sign}from={}&limit=1", iso_from_ms(all[100].at_ms));
        let later = all.iter().filter(|one| one.at_ms >= all[100].at_ms);
        let count = later
            .filter(|one| owner.is_none_or(|owner| one.owner == owner))
            .count();
        assert_eq!(list(tenant, &open).await["total"], json!(count));
    }
}
