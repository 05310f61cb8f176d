//! A master is lost between two steps of a change whose keys are on several masters. A gate in front of the store stops
//! each change after one of its confirmed steps. Then a master that takes part is cut off from its replica, killed and
//! replaced, and the change continues before the kill or after it. Whatever the reply was, nothing acknowledged is
//! missing, a repeated change is done once, and no money is made or lost.
//!
//! The steps, in order; *e-mail*, *look-up* and *list* are keys outside of the account's bucket. All scripts wait for
//! `store.durability`, except those in brackets. A change stops after each confirmed step, and after an unconfirmed one
//! that begins the change.
//!
//! | change | steps |
//! |---|---|
//! | transfer to another account | payer `transfer_out`, payee `transit_arrive`, \[payer `HDEL` row, payee `PEXPIRE`
//! mark\] |
//! | escrow create | payer `escrow_create`, payee `escrow_list`, \[payer `HDEL` row\] |
//! | release by the payer; end of a dispute, to either | payer `escrow_resolve`, payee `transit_arrive`, \[as above\] |
//! | release or dispute by the payee | payee `intent_claim`, payer `escrow_resolve`, payee `transit_arrive`, \[as
//! above\] |
//! | pending deposit | look-up `lookup_note`, account `deposit_make`, look-up `lookup_note` |
//! | account create | e-mail `lookup_join`, list `lookup_note`, account `account_create`, e-mail `lookup_join` |
//! | user create | e-mail `lookup_join`, account `account_add_user`, e-mail `lookup_join` |
//! | invitation accept | e-mail `lookup_join`, \[session `SET`\], account `invitation_accept`, e-mail `lookup_join` |
//! | user remove | \[account `user_change`\], e-mail `lookup_leave` |
//! | API key, virtual key | \[look-up `SET`\], account `…_key_create`, look-up `lookup_keep` |
//! | call | \[account `authorize`, `settle`\] ([`call`]) |
//!
//! Invitations, password resets and sessions write a look-up of a random token and then a record, neither of them
//! confirmed: a lost one is made again. `lost_master` and `lost_lookup` test changes of one step, including those
//! repeated for several accounts.

mod call;
mod stopped_change;

use crate::fixture::{Fixture, MASTERS, PATIENCE_MS, SOON};
use crate::lost_lookup::fixture::{LookupFixture, holder, key_on};
use crate::lost_master::{accept_all, conclusion};
use futures::{StreamExt, stream};
use harness::{Admin, Daemon, Gate, RedisCluster, until};
use serde_json::json;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use stopped_change::{AlwaysAllowed, Midway, Subject};
use store::script::all::all;
use tokio::runtime::Handle;

/// A change that was sent, with its gate.
type Sent<'scope> = (Gate, AlwaysAllowed, ScopedJoinHandle<'scope, ()>);

/// Admin servers. Several, since each has room for few waiting changes.
const SERVERS: usize = 4;
/// Changes that are prepared or sent at the same time.
const AT_ONCE: usize = 6;
/// Pause between two checks of a gate.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest time that a reply takes from the server's end of a wire to its gate.
const ON_THE_WIRE: Duration = Duration::from_millis(200);

/// Loads every script on every server: a gate matches a step by the hash of its script.
fn load_scripts(cluster: &RedisCluster) {
    for node in cluster.nodes() {
        for script in all() {
            let _: String = node.command(&["SCRIPT", "LOAD", script.source()]);
        }
    }
}

/// Sends these changes at the same time, and waits until each is at its gate or has failed.
fn send_to_gates<'scope, 'a>(
    scope: &'scope Scope<'scope, '_>,
    fixture: &Fixture,
    changes: &'scope mut [Midway<'a>],
) -> Vec<Sent<'scope>>
where
    'a: 'scope,
{
    let send = |midway: &'scope mut Midway<'a>| {
        let (gate, goes_on, runtime) = (midway.gate.clone(), midway.goes_on, Handle::current());
        fixture.cluster.put_gate(&gate);
        let sent = scope.spawn(move || runtime.block_on(midway.send()));
        (gate, goes_on, sent)
    };
    let all: Vec<Sent<'scope>> = changes.iter_mut().map(send).collect();
    let end = Instant::now() + SOON;
    while all
        .iter()
        .any(|(gate, _, sent)| gate.stopped() == 0 && !sent.is_finished())
    {
        assert!(Instant::now() < end, "a change that neither stops nor ends");
        std::thread::sleep(PAUSE);
    }
    all
}

/// Stops every change, loses the master at `node`, and lets the changes continue. Returns how many were stopped.
fn lose_midway(fixture: &Fixture, changes: &mut [Midway<'_>], node: usize) -> usize {
    let replica = fixture.cluster.replica_of(node);
    let key = key_on(fixture, node);
    let mut stopped = 0;
    std::thread::scope(|scope| {
        let mut all = Vec::new();
        for changes in changes.chunk_by_mut(|one, other| one.is_distinct() && other.is_distinct()) {
            for some in changes.chunks_mut(AT_ONCE) {
                all.extend(send_to_gates(scope, fixture, some));
            }
        }
        stopped = all.iter().filter(|(gate, ..)| gate.stopped() > 0).count();
        for at in 0..MASTERS {
            fixture.cluster.wait_in_step(fixture.cluster.replica_of(at));
        }
        std::thread::sleep(ON_THE_WIRE);
        fixture.cluster.cut_off(replica);
        let (before, after): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(_, at, _)| *at == AlwaysAllowed::Before);
        go_on(before);
        fixture.cluster.lose(node, &key);
        go_on(after);
    });
    fixture.cluster.restart(node);
    fixture.cluster.wait_for_replica(node);
    stopped
}

fn go_on(changes: Vec<Sent<'_>>) {
    changes.iter().for_each(|(gate, ..)| gate.open());
    for (_, _, sent) in changes {
        sent.join().expect("a change that ends");
    }
}

async fn wait_until_ready(servers: &[&Daemon]) {
    until("servers that are ready", async || {
        let is_ready = |server: &&Daemon| server.ops("/readyz").is_some_and(|(status, _)| status == 200);
        servers.iter().all(is_ready)
    })
    .await;
}

/// Returns the acknowledged changes whose loss goes unnoticed.
async fn lost_silently(fixture: &Fixture, changes: &[Midway<'_>]) -> Vec<String> {
    let check = conclusion(fixture).await["violations"].to_string();
    let young = fixture.admin("auto");
    let mut silent = Vec::new();
    for midway in changes.iter().filter(|midway| midway.is_acknowledged) {
        let Subject::Outside(change) = &midway.subject else {
            continue;
        };
        // Unconfirmed steps may be lost, but the account's version must show the loss.
        if change.is_removal() && change.has_user().await {
            let reply = change.asks(&young).await;
            if reply.status != 503 || !check.contains(change.account()) {
                silent.push(format!("{}: {} {check}", midway.name(), reply.text()));
            }
        }
    }
    silent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_change_is_done_once_whichever_master_is_lost_between_its_steps() {
    let fixture = Fixture::on(RedisCluster::start_wired(MASTERS), 1).await;
    load_scripts(&fixture.cluster);
    // This master holds the list of accounts.
    let node = holder(&fixture, store::keys::ACCOUNTS);
    let admins: Vec<Admin> = (0..SERVERS).map(|_| fixture.patient_admin("auto")).collect();
    let mut fixtures = Vec::new();
    for admin in &admins {
        fixtures.push(
            LookupFixture::new(&fixture, admin, "auto")
                .await
                .patient(PATIENCE_MS),
        );
    }
    let operator = fixture
        .operator("auto")
        .env("TOLLGATE_STORE__TIMEOUT_MS", PATIENCE_MS);

    let mut changes = stopped_change::outside(&fixtures, node).await;
    let money = stopped_change::money().into_iter().enumerate();
    let money =
        money.map(|(at, what)| Midway::of_money((&fixture, &admins[at % SERVERS], &operator), what, node));
    changes.extend(stream::iter(money).buffered(AT_ONCE).collect::<Vec<_>>().await);
    let began = Instant::now();
    println!("prepared {} changes", changes.len());
    let stopped = lose_midway(&fixture, &mut changes, node);
    println!("{stopped} stopped and went on in {:?}", began.elapsed());
    // On a busy machine a change may fail before its gate.
    assert!(stopped * 10 >= changes.len() * 9, "{stopped} changes stopped");
    let mut servers: Vec<&Daemon> = admins.iter().map(|admin| &**admin).collect();
    servers.push(&fixture.edges[0]);
    wait_until_ready(&servers).await;

    let acknowledged = changes.iter().filter(|midway| midway.is_acknowledged).count();
    println!("{acknowledged} of {} acknowledged", changes.len());
    let mut wrong = lost_silently(&fixture, &changes).await;
    accept_all(&fixture);
    wrong.extend(done_once(&mut changes));
    println!("repeated after {:?}", began.elapsed());
    for lookup_fixture in &fixtures {
        let here = changes.iter().filter_map(|midway| match &midway.subject {
            Subject::Outside(change) if change.is_of(lookup_fixture) => Some(change),
            _ => None,
        });
        wrong.extend(lookup_fixture.counted_twice(here).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut tidied = 0;
    for midway in &changes {
        if let Subject::Outside(change) = &midway.subject {
            tidied += change.tidied().await;
        }
    }
    println!("{tidied} e-mails led to an account that was not made");
    let check = conclusion(&fixture).await;
    assert_eq!(check["ok"], json!(true), "{check}");
}

/// Repeats each change until it is acknowledged. Returns the changes that are then missing or done twice.
fn done_once(changes: &mut [Midway<'_>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for some in changes.chunks_mut(AT_ONCE) {
        std::thread::scope(|scope| {
            let finish = |midway| {
                let runtime = Handle::current();
                scope.spawn(move || runtime.block_on(finished(midway)))
            };
            let all: Vec<_> = some.iter_mut().map(finish).collect();
            wrong.extend(
                all.into_iter()
                    .filter_map(|one| one.join().expect("a change that ends")),
            );
        });
    }
    wrong
}

/// Repeats a change until it is acknowledged. Returns a description if its outcome is wrong.
async fn finished(midway: &mut Midway<'_>) -> Option<String> {
    let (name, before) = (midway.name(), midway.is_acknowledged);
    let wrong = match &mut midway.subject {
        Subject::Outside(change) => {
            if change.is_removal() && change.has_user().await {
                change.forget();
            }
            change.look_and_repeat().await;
            change.lacks().await
        }
        Subject::Money(_) => {
            let end = Instant::now() + SOON;
            midway.send().await;
            while !midway.is_acknowledged {
                assert!(Instant::now() < end, "{name} is not acknowledged");
                tokio::time::sleep(PAUSE).await;
                midway.send().await;
            }
            match midway.unexpected.take() {
                None if before && !midway.is_repetition => Some("done again".to_owned()),
                None => midway.unbalanced().await,
                unexpected => unexpected,
            }
        }
    };
    wrong.map(|wrong| format!("{name}, acknowledged at first: {before}: {wrong}"))
}
