//! The sum over everything, on transactions made by hand.

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
fn what_was_deposited_is_somewhere() {
    let window = (90, 100);
    let mut flow = Flow::default();
    flow.take(&at(1, TransactionType::Deposit, 100), window);
    flow.take(&at(2, TransactionType::Spend, 10), window);
    flow.take(&at(3, TransactionType::EscrowFund, 20), window);
    flow.take(&at(4, TransactionType::TransferOut, 5), window);
    assert!(flow.wrong().unwrap().contains("25 are missing"));
    let rows = Rows {
        from_ms: 90,
        cut_ms: 100,
        wanted: HashMap::new(),
    };
    flow.escrow((3, 20), (3, None), &rows);
    flow.escrow((3, 20), (3, None), &rows);
    flow.escrow((4, 70), (3, Some(80)), &rows);
    flow.escrow((5, 70), (100, None), &rows);
    assert!(flow.wrong().unwrap().contains("5 are missing"));
    flow.transit = 5;
    assert_eq!(flow.wrong(), None);
    flow.transit = 6;
    assert!(flow.wrong().unwrap().contains("1 are too many"));
}

#[test]
fn what_moves_while_rows_are_read_is_uncertain_and_what_comes_later_does_not_count() {
    let window = (90, 100);
    let mut flow = Flow::default();
    flow.take(&at(1, TransactionType::Deposit, 100), window);
    flow.take(&at(95, TransactionType::TransferOut, 5), window);
    assert_eq!(flow.wrong(), None);
    flow.take(&at(101, TransactionType::TransferOut, 50), window);
    assert_eq!(flow.wrong(), None);
    flow.transit = -1;
    assert!(flow.wrong().is_some());
}
