//! Tests of the sum over everything, on constructed transactions.

use super::*;

fn at(at_ms: u64, kind: TransactionType, amount: u64) -> Transaction {
    let line = format!(
        "{at_ms} 0 {}{amount} 7 txn_1 {} bot - USD {{}}",
        kind.sign(),
        kind.as_str()
    );
    Transaction::parse(&line).unwrap()
}

#[test]
fn deposited_money_is_accounted_for() {
    let window = (90, 100);
    let mut flow = Flow::default();
    flow.take(&at(1, TransactionType::Deposit, 100), window);
    flow.take(&at(2, TransactionType::Spend, 10), window);
    flow.take(&at(3, TransactionType::EscrowFund, 20), window);
    flow.take(&at(4, TransactionType::TransferOut, 5), window);
    assert_eq!(fault(&flow), "25 are missing");
    let rows = Rows {
        from_ms: 90,
        cut_ms: 100,
        wanted: HashMap::new(),
    };
    flow.escrow((3, 20), (3, None), &rows);
    flow.escrow((3, 20), (3, None), &rows);
    flow.escrow((4, 70), (3, Some(80)), &rows);
    flow.escrow((5, 70), (100, None), &rows);
    assert_eq!(fault(&flow), "5 are missing");
    flow.transit = 5;
    assert_eq!(flow.sum(), Sum::Right);
    flow.transit = 6;
    assert_eq!(fault(&flow), "1 are too many");
}

#[test]
fn movements_during_the_read_are_uncertain_and_later_ones_do_not_count() {
    let window = (90, 100);
    let mut flow = Flow::default();
    flow.take(&at(1, TransactionType::Deposit, 100), window);
    flow.take(&at(95, TransactionType::TransferOut, 5), window);
    // It may have arrived since, or be lost: neither right nor wrong.
    assert!(inconclusive(&flow).contains("5 are missing; up to 5 moved"));
    flow.take(&at(101, TransactionType::TransferOut, 50), window);
    assert!(inconclusive(&flow).contains("5 are missing"));
    flow.transit = -1;
    assert_eq!(fault(&flow), "6 are missing");
    flow.transit = 0;
    flow.take(&at(96, TransactionType::TransferIn, 5), window);
    assert_eq!(flow.sum(), Sum::Right, "what moved has arrived");
}

/// Returns the end of the message about a wrong sum.
fn fault(flow: &Flow) -> String {
    let Sum::Violated(fault) = flow.sum() else {
        panic!("not wrong: {:?}", flow.sum())
    };
    fault.rsplit(": ").next().unwrap().to_owned()
}

/// Returns why a sum is undecided.
fn inconclusive(flow: &Flow) -> String {
    let Sum::Inconclusive(reason) = flow.sum() else {
        panic!("not open: {:?}", flow.sum())
    };
    reason
}
