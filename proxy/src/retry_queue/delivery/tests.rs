//! Tests of what leaves the queue: what a reply, an outage, another ledger or a failing script makes of an item.

use super::super::journal::tests::item as void;
use super::*;
use crate::fixture::{EPOCH, Fixture, StoreReaction, runs, text};
use domain::entry::HoldOutcome;
use store::call::settle::SETTLE;
use store::call::void::VOID;
use store::versions::AccountVersion;

const MISSING: Accepted = Accepted::Settled(Settled::Missing);
const DONE: Accepted = Accepted::Settled(Settled::Done);

/// Builds an error reply of the server.
fn server_error(line: &str) -> StoreError {
    let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
    let error = answer.and_then(redis::Value::extract_error).unwrap_err();
    StoreError::from(error)
}

/// Interval of deliveries at which the errors last as long as required when they are as many as required.
fn interval() -> Duration {
    SCRIPT_ERRORS_FOR / (SCRIPT_ERRORS_MAX - 1)
}

/// Returns the outcomes of a queue with one item, given the store's reply to each delivery, until the item leaves
/// the queue.
fn outcomes(answers: impl IntoIterator<Item = (Result<Accepted, StoreError>, bool)>) -> Vec<ItemOutcome> {
    let (mut history, mut queue) = (DeliveryHistory::default(), Queue::new(1));
    queue.push(void("allow_1"));
    let (mut outcomes, mut now) = (Vec::new(), Instant::now());
    for (answer, is_certain) in answers {
        now += interval() + Duration::from_nanos(100);
        let (mut batch, _) = queue.batch(1, |_| true);
        let Some((position, item)) = batch.pop() else {
            break;
        };
        outcomes.push(history.apply(&mut queue, (position, &item), Some(answer), is_certain, now));
        let is_waiting = *outcomes.last().unwrap() == ItemOutcome::Waiting;
        assert_eq!(queue.is_empty(), !is_waiting);
    }
    assert!(!queue.is_empty() || (history.script_errors.0.is_empty() && history.uncertain.is_empty()));
    outcomes
}

fn delivery(fixture: &Fixture) -> ItemDeliverer {
    let (health, metrics) = (Arc::clone(&fixture.health), Arc::clone(&fixture.metrics));
    ItemDeliverer::new(fixture.store.clone(), health, metrics)
}

/// Returns errors of a store that is unreachable or refuses commands.
fn temporary_errors() -> Vec<fn() -> StoreError> {
    vec![
        || StoreError::NoAnswer(None),
        || StoreError::NoAnswer(Some(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())),
        || StoreError::NotConnected(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()),
        || StoreError::LacksWrites,
        || StoreError::unexpected("settle"),
        || server_error("OOM command not allowed when used memory > 'maxmemory'."),
        || server_error("LOADING Redis is loading the dataset in memory"),
        || {
            server_error(
                "READONLY You can't write against a read only replica. script: abc, on @user_script:1.",
            )
        },
        || server_error("ERR max number of clients reached"),
    ]
}

fn settlement(epoch: &str) -> RetryItem {
    RetryItem::Settle {
        name: ["acct_1", "bot", "r", "allow_2"].map(str::to_owned),
        estimate_nanos: 100,
        cost_nanos: 170,
        outcome: HoldOutcome::Settled,
        extension_nanos: None,
        measured: None,
        epoch: epoch.to_owned(),
        as_of: AccountVersion::default(),
    }
}

#[tokio::test]
async fn accepted_items_leave_queue_and_journal_and_are_counted_once() {
    let fixture = Fixture::new().await;
    let retry_queue = &fixture.retry_queue;
    retry_queue.push(void("allow_1"));
    retry_queue.push(settlement(EPOCH));
    retry_queue.write(false);
    let mut delivery = delivery(&fixture);
    assert_eq!(
        delivery.deliver_batch(retry_queue).await,
        BatchOutcome::NotDelivered,
        "the store replies with errors"
    );
    assert_eq!((retry_queue.len(), retry_queue.journal_lines()), (2, 2));
    fixture.on_command(|command| match () {
        () if runs(command, &SETTLE) => Some(text("settled")),
        () => runs(command, &VOID).then(|| StoreReaction::Raw("*1\r\n$8\r\nrefunded\r\n".to_owned())),
    });
    assert_eq!(delivery.deliver_batch(retry_queue).await, BatchOutcome::Delivered);
    retry_queue.write(false);
    assert_eq!(
        (
            retry_queue.len(),
            retry_queue.journal_lines(),
            retry_queue.dropped()
        ),
        (0, 0, 0)
    );
    assert_eq!(
        fixture.arguments(&SETTLE)[0][..4],
        ["allow_2", "100", "170", "settled"]
    );
    let shown = fixture.registrar.text().unwrap();
    for line in [
        "settlements_total{result=\"done\"} 1",
        "voids_total{result=\"refunded\"} 1",
        "charged_nanos_total 170",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[tokio::test]
async fn items_of_another_ledger_or_of_lost_writes_wait() {
    let fixture = Fixture::new().await;
    let retry_queue = &fixture.retry_queue;
    fixture.on_command(|command| runs(command, &SETTLE).then(|| text("lost_writes")));
    retry_queue.push(settlement("another"));
    let mut delivery = delivery(&fixture);
    assert_eq!(
        delivery.deliver_batch(retry_queue).await,
        BatchOutcome::NothingDeliverable
    );
    assert_eq!((retry_queue.len(), retry_queue.elsewhere()), (1, 1));
    retry_queue.push(settlement(EPOCH));
    assert_eq!(
        delivery.deliver_batch(retry_queue).await,
        BatchOutcome::NotDelivered
    );
    // The account is not tried again immediately.
    assert_eq!(
        delivery.deliver_batch(retry_queue).await,
        BatchOutcome::NothingDeliverable
    );
    assert_eq!(fixture.arguments(&SETTLE).len(), 1);
    assert_eq!((retry_queue.len(), retry_queue.elsewhere()), (2, 2));
}

#[test]
fn an_outage_drops_nothing_however_long_it_is() {
    for error in temporary_errors() {
        let answers = (0..3 * SCRIPT_ERRORS_MAX).map(|_| (Err(error()), true));
        let outcomes = outcomes(answers);
        assert_eq!(outcomes.len(), 300, "{:?}", error());
        assert!(
            outcomes.iter().all(|end| *end == ItemOutcome::Waiting),
            "{:?}",
            error()
        );
    }
}

#[test]
fn an_item_on_which_the_script_fails_is_given_up() {
    let broken = || server_error("ERR value is not an integer script: abc, on @user_script:12.");
    let given_up = outcomes((0..2 * SCRIPT_ERRORS_MAX).map(|_| (Err(broken()), true)));
    assert_eq!(given_up.len(), 100);
    assert_eq!(given_up.last(), Some(&ItemOutcome::GivenUp));
    // Any other error in between, from the script or not, restarts the count.
    for other in [
        StoreError::NoAnswer(None),
        server_error("ERR another one script: abc, on @user_script:12."),
    ] {
        let mut other = Some(other);
        let answers = (1..=199).map(|time| match time {
            100 => other.take().unwrap(),
            _ => broken(),
        });
        let waits = outcomes(answers.map(|answer| (Err(answer), true)));
        assert_eq!(waits, [ItemOutcome::Waiting; 199]);
    }
}

#[test]
fn only_identical_script_errors_are_final() {
    let (mut errors, item) = (ScriptErrors::default(), void("allow_1"));
    let mut now = Instant::now();
    let mut record = |error: Option<&str>, times: u32| {
        let are_final = (0..times).map(|_| {
            now += SCRIPT_ERRORS_FOR;
            errors.record(&item, error.map(str::to_owned), now)
        });
        are_final.collect::<Vec<_>>()
    };
    let almost = SCRIPT_ERRORS_MAX - 1;
    for error in [Some("one"), None, Some("one"), Some("two"), Some("one")] {
        assert!(!record(error, almost).contains(&true), "{error:?}");
    }
    assert_eq!(record(Some("one"), 1), [true]);
    assert_eq!(record(Some("one"), 1), [false], "it is forgotten");
}

/// Items beside it are delivered, so batches follow each other without a pause.
#[test]
fn errors_in_quick_succession_are_not_final() {
    let (mut errors, item, first) = (ScriptErrors::default(), void("allow_1"), Instant::now());
    let mut is_given_up = |after| errors.record(&item, Some("one".to_owned()), first + after);
    for _ in 0..2 * SCRIPT_ERRORS_MAX {
        assert!(!is_given_up(Duration::ZERO));
    }
    assert!(!is_given_up(SCRIPT_ERRORS_FOR - Duration::from_nanos(1)));
    assert!(is_given_up(SCRIPT_ERRORS_FOR));
    assert!(!is_given_up(SCRIPT_ERRORS_FOR), "it is forgotten");
}

#[test]
fn a_reply_counts_if_it_came_from_the_ledger() {
    assert_eq!(outcomes([(Ok(DONE), true)]), [ItemOutcome::Accepted(DONE)]);
    assert_eq!(outcomes([(Ok(MISSING), true)]), [ItemOutcome::Accepted(MISSING)]);
    assert_eq!(
        outcomes([(Ok(DONE), false), (Ok(MISSING), false)]),
        [ItemOutcome::Waiting; 2]
    );
    // The store was the ledger both times: the first delivery settled the hold.
    let again = [(Ok(DONE), false), (Ok(MISSING), true)];
    assert_eq!(
        outcomes(again),
        [ItemOutcome::Waiting, ItemOutcome::Accepted(DONE)]
    );
    // The store was another ledger the first time.
    let another = [(Ok(MISSING), false), (Ok(DONE), true)];
    assert_eq!(
        outcomes(another),
        [ItemOutcome::Waiting, ItemOutcome::Accepted(DONE)]
    );
}

/// A void that a settlement takes the place of never leaves the queue by a reply.
#[tokio::test]
async fn items_that_were_dropped_from_a_full_queue_are_forgotten() {
    let fixture = Fixture::new().await;
    let retry_queue = &fixture.retry_queue;
    fixture.on_command(|command| {
        let error = "-ERR no integer script: abc, on @user_script:12.\r\n";
        runs(command, &VOID).then(|| StoreReaction::Raw(error.to_owned()))
    });
    let voids = ["allow_1", "allow_3", "allow_4", "allow_5", "allow_6", "allow_7"];
    for id in voids {
        retry_queue.push(void(id));
    }
    let mut delivery = delivery(&fixture);
    delivery.deliver_batch(retry_queue).await;
    for id in voids {
        delivery.history.uncertain.insert(void(id), DONE);
    }
    let known = |delivery: &ItemDeliverer| {
        let history = &delivery.history;
        (history.script_errors.0.len(), history.uncertain.len())
    };
    assert_eq!(known(&delivery), (6, 6));
    while retry_queue.dropped() < 2 {
        retry_queue.push(settlement("another"));
    }
    delivery.deliver_batch(retry_queue).await;
    assert_eq!(known(&delivery), (4, 4), "as many as are queued");
}
