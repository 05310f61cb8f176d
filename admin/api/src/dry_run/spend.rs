//! Predicts `POST /spend`: the same body, the same checks.

use super::super::spend::{SpendRequest, too_much_message};
use super::{DryRunSubject, OtherRefusal, OtherRefusals, is_too_much, read_snapshot};
use crate::state::Call;
use domain::check::{Check, CheckName, CheckedAmount};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::spend_cap;
use endpoint::{Answer, Fields, over_budget_message};
use store::call::snapshot::Records;

/// The codes of `POST /spend` in lower case, for its 409, 403 and 429.
const TOO_MUCH: &str = "balance_limit";
const OVER_BUDGET: &str = "tier_limit";
const REFUSED: &str = "api_key_rate_limited";

/// Predicts the answer of `POST /spend` to this body.
pub(super) async fn predict(call: &Call, body: &Fields<'_>) -> Answer {
    let request = SpendRequest::read(body)?;
    let subject = DryRunSubject {
        agent: &request.agent,
        run: request.run_id.as_deref(),
        key_id: None,
        model: None,
        price_version: None,
        served: None,
        refused: call.admission.refused.cause(&call.caller.account),
    };
    let snapshot = read_snapshot(call, &subject).await?;
    let mut inputs = snapshot.spend;
    if call.caller.mode == Mode::Live {
        inputs.plan = call.plan(&snapshot.plan)?.cap();
    }
    let mut checks = Vec::new();
    if let Some(injections) = &call.state.spends.injections {
        let found = injections.find(request.texts());
        checks.push(Check::state(CheckName::InjectionDetected, found.is_none()));
    }
    checks.extend(spend_cap::checks(&inputs, request.amount));
    let spent: [Nanos; 5] = [
        inputs.cap.run_spent,
        inputs.cap.day_spent,
        inputs.cap.month_spent,
        inputs.cap.tracked_spent,
        inputs.wallet.map_or(Nanos::ZERO, |wallet| wallet.day_spent),
    ];
    let others = OtherRefusals {
        before: before_the_checks(call, &subject, &snapshot.records, inputs.wallet.is_some()),
        after: is_too_much(&spent, request.amount).then(|| OtherRefusal {
            reason: TOO_MUCH,
            message: too_much_message(),
        }),
    };
    subject.answer(&snapshot, CheckedAmount::Spend(request.amount), &checks, others)
}

/// Checks the store's guard and the budgets of records (decision D71), which decide before everything else.
fn before_the_checks(
    call: &Call,
    subject: &DryRunSubject<'_>,
    records: &Records,
    has_wallet: bool,
) -> Option<OtherRefusal> {
    if let Some(cause) = subject.refused {
        let message = cause.message().to_owned();
        return Some(OtherRefusal {
            reason: REFUSED,
            message,
        });
    }
    let budgets = call.state.store.budgets();
    let budget = records.over_with_spend(&budgets, has_wallet)?;
    Some(OtherRefusal {
        reason: OVER_BUDGET,
        message: over_budget_message(budget, budgets.limit(budget)),
    })
}
