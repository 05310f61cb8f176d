//! The order in which mutants meet the checks: the check that noticed the last one comes first.

use super::Checked;
use parking_lot::Mutex;

/// The checks of similar mutants. The one that noticed the last mutant often notices the next one too, and most of the
/// time of a mutation test is spent in checks that notice nothing.
#[derive(Debug)]
pub struct QuickestFirst<C>(Mutex<Vec<C>>);

impl<C: Copy + PartialEq> QuickestFirst<C> {
    /// All of `checks`, in this order at first.
    pub fn new(checks: &[C]) -> Self {
        Self(Mutex::new(checks.to_vec()))
    }

    /// Runs all checks until one fails.
    ///
    /// # Errors
    /// The error of the check that failed.
    pub async fn run(&self, run: impl AsyncFn(C) -> Checked) -> Checked {
        let checks = self.0.lock().clone();
        for check in checks {
            let checked = run(check).await;
            if checked.is_err() {
                let mut checks = self.0.lock();
                checks.retain(|&other| other != check);
                checks.insert(0, check);
                return checked;
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_group_that_noticed_the_last_mutant_runs_first() {
    let order = QuickestFirst::new(&[1, 2, 3]);
    let noticed = order.run(async |check| if check == 3 { Err("3".to_owned()) } else { Ok(()) });
    assert_eq!(noticed.await, Err("3".to_owned()));
    let met = Mutex::new(Vec::new());
    let all = order.run(async |check| {
        met.lock().push(check);
        Ok(())
    });
    assert_eq!(all.await, Ok(()));
    assert_eq!(*met.lock(), [3, 1, 2]);
}
