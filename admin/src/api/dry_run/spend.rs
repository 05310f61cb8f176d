//! The prediction of `POST /spend`: the same body, the same checks.

use super::super::spend::Request;
use super::{Otherwise, Subject, is_too_much, look};
use crate::problem::Code;
use crate::routes::{Answer, Call, Fields};
use shared::domain::check::{Asked, Check, CheckName};
use shared::domain::mode::Mode;
use shared::domain::money::Nanos;
use shared::domain::spend_cap;

/// Answered by `POST /spend` with 409 and this code.
const TOO_MUCH: Otherwise = Otherwise {
    reason: "balance_limit",
    message: Code::BalanceLimit.message(),
};

/// Predicts what `POST /spend` would answer to this body.
pub(super) async fn predict(call: &Call, body: &Fields<'_>) -> Answer {
    let request = Request::read(body)?;
    let subject = Subject {
        agent: &request.agent,
        run: request.run_id.as_deref(),
        key_id: None,
        model: None,
        price_version: None,
    };
    let seen = look(call, &subject).await?;
    let mut standing = seen.standing;
    if call.caller.mode == Mode::Live {
        standing.plan = call.plan(&seen.plan)?.cap();
    }
    let mut checks = Vec::new();
    if let Some(injections) = &call.app.injections {
        let found = injections.find(request.texts());
        checks.push(Check::state(CheckName::InjectionDetected, found.is_none()));
    }
    checks.extend(spend_cap::checks(&standing, request.amount));
    let spent: [Nanos; 5] = [
        standing.cap.run_spent,
        standing.cap.day_spent,
        standing.cap.month_spent,
        standing.cap.tracked_spent,
        standing.wallet.map_or(Nanos::ZERO, |wallet| wallet.day_spent),
    ];
    let otherwise = is_too_much(&spent, request.amount).then_some(TOO_MUCH);
    subject.answer(&seen, Asked::Spend(request.amount), &checks, otherwise)
}
