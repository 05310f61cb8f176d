//! Step 6: the ledger moves to what the call really cost, before the answer ends (specification "Proxy spend ledger",
//! decisions D33 to D37).

use super::Done;
use super::chat_request::Wanted;
use super::forward::Forwarded;
use super::request_trace::{Approved, RequestTrace};
use crate::gate::Gate;
use crate::metrics::{Ended, Stage};
use crate::reply::approved::{self, Stamp};
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::{Answer, Failure, usage};
use domain::entry::How;
use domain::money::Nanos;
use domain::price::ServedCall;
use http::header::CONTENT_ENCODING;
use store::call::settle::Settle;

/// What is charged in the end, and what the caller is told of it.
#[derive(Debug, PartialEq, Eq)]
struct Bill {
    cost: Nanos,
    /// The same, when the provider reported it.
    actual: Option<Nanos>,
    /// The call failed and is charged all the same.
    charged_failure: bool,
    /// What the audit log calls it.
    how: How,
}

/// Settles a call that was sent, and builds its answer.
pub async fn settle(gate: &Gate, mut trace: RequestTrace, wanted: &Wanted, forwarded: Forwarded) -> Done {
    let Forwarded {
        hold,
        keys,
        origin,
        answer,
    } = forwarded;
    let took = trace.stage_time(Stage::Upstream);
    let estimate = hold.estimate;
    let bill = bill(wanted, estimate, &answer);
    let stamp_id = hold.name.allow_id.clone();
    let settled = Settle {
        cost: bill.cost,
        how: bill.how,
        ..hold
    };
    let settlement = gate.resolve_hold(&keys, &origin, settled).await;
    trace.finish_stage(gate, Stage::Settle);
    gate.metrics.approved(estimate, bill.actual, ended(&answer), took);
    if let Err(failure) = &answer {
        gate.metrics.broke_off(failure);
    }
    let (estimated, charged) = (estimate.to_string(), bill.cost.to_string());
    trace.record_approval(&Approved {
        id: &stamp_id,
        run: &wanted.run.id,
        model: &wanted.model,
        estimate: &estimated,
        charged: &charged,
        how: bill.how.as_str(),
        settlement,
        status: answer.as_ref().map_or(0, |answer| answer.status.as_u16()),
        took,
    });
    let mut reply = match answer {
        Ok(answer) => approved::reply(answer),
        Err(failure) => refusal_of(&failure).reply(),
    };
    Stamp {
        allow_id: &stamp_id,
        run_id: &wanted.run.id,
        estimate: &estimated,
        actual: bill.actual.map(|_| &*charged),
        charged_failure: bill.charged_failure,
    }
    .on(&mut reply);
    Done {
        reply,
        outside: trace.outside(),
    }
}

/// The ledger table of the specification.
fn bill(wanted: &Wanted, estimate: Nanos, answer: &Result<Answer, Failure>) -> Bill {
    let kept = |charged_failure| Bill {
        cost: estimate,
        actual: None,
        charged_failure,
        how: How::Estimated,
    };
    let Ok(answer) = answer else {
        return kept(true);
    };
    match answer.status {
        status if status.is_success() => match actual_cost(wanted, answer) {
            Some(cost) => Bill {
                cost,
                actual: Some(cost),
                charged_failure: false,
                how: How::Settled,
            },
            None => kept(false),
        },
        status if status.is_client_error() => Bill {
            cost: Nanos::ZERO,
            actual: None,
            charged_failure: false,
            how: How::Released,
        },
        _ => kept(true),
    }
}

fn actual_cost(wanted: &Wanted, answer: &Answer) -> Option<Nanos> {
    let encoding = answer
        .headers
        .get(CONTENT_ENCODING)
        .map(http::HeaderValue::as_bytes);
    let reported = usage::read(&answer.body, encoding)?;
    wanted.prices.actual_cost(&ServedCall {
        model: &wanted.model,
        tier_asked: wanted.service_tier.as_deref(),
        tier_reported: reported.service_tier.as_deref(),
        usage: &reported.usage,
        web_search: wanted.web_search,
    })
}

/// How the provider answered, for the metrics.
fn ended(answer: &Result<Answer, Failure>) -> Ended {
    match answer.as_ref().map(|answer| answer.status) {
        Ok(status) if status.is_success() => Ended::Success,
        Ok(status) if status.is_redirection() => Ended::Redirect,
        Ok(status) if status.is_client_error() => Ended::ClientError,
        Ok(_) => Ended::ServerError,
        Err(Failure::Timeout) => Ended::Timeout,
        Err(Failure::Unreachable(_) | Failure::NotSent(_)) => Ended::Unreachable,
    }
}

fn refusal_of(failure: &Failure) -> Refusal {
    match failure {
        Failure::Timeout => Refusal::new(
            RefusalKind::UpstreamTimeout,
            "The provider gave no whole answer in time. The estimate stays charged.",
        ),
        Failure::Unreachable(_) | Failure::NotSent(_) => Refusal::new(
            RefusalKind::UpstreamUnreachable,
            "The provider could not be reached or broke off. The estimate stays charged.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::chat_request::Run;
    use bytes::Bytes;
    use domain::price::{DEFAULT_PRICES, PriceTable};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::sync::Arc;

    const ESTIMATE: Nanos = Nanos::from_stored(1_000_000);
    const MODELS: &str = r#"
        [models.m]
        web_search = "0.003"
        rates.standard = { input = "2", output = "10" }
        rates.flex = { input = "1", output = "5" }
        [models.dear]
        rates.standard = { input = "100", output = "500" }
    "#;

    fn wanted() -> Wanted {
        // What the price file says before its models.
        let settings = DEFAULT_PRICES.split("[models.").next().unwrap();
        Wanted {
            run: Run {
                id: "r".to_owned(),
                named: true,
            },
            model: "m".to_owned(),
            service_tier: None,
            web_search: false,
            prices: Arc::new(PriceTable::from_toml(&[settings, MODELS].concat()).unwrap()),
            estimate: Some(ESTIMATE),
        }
    }

    fn answer(status: u16, body: &'static str) -> Result<Answer, Failure> {
        Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        })
    }

    /// 9 tokens of 2 and 12 of 10 USD a million.
    const USAGE: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12}}"#;

    fn settled(nanos: u64) -> Bill {
        let cost = Nanos::from_stored(nanos);
        Bill {
            cost,
            actual: Some(cost),
            charged_failure: false,
            how: How::Settled,
        }
    }

    fn kept(charged_failure: bool) -> Bill {
        Bill {
            cost: ESTIMATE,
            actual: None,
            charged_failure,
            how: How::Estimated,
        }
    }

    const RELEASED: Bill = Bill {
        cost: Nanos::ZERO,
        actual: None,
        charged_failure: false,
        how: How::Released,
    };

    #[test]
    fn a_success_costs_what_it_used_and_else_the_estimate() {
        for status in [200, 201, 299] {
            assert_eq!(
                bill(&wanted(), ESTIMATE, &answer(status, USAGE)),
                settled(138_000)
            );
        }
        for unreadable in [
            "",
            "{}",
            r#"{"usage":null}"#,
            r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
        ] {
            let kept_estimate = bill(&wanted(), ESTIMATE, &answer(200, unreadable));
            assert_eq!(kept_estimate, kept(false), "{unreadable}");
        }
    }

    #[test]
    fn a_callers_mistake_costs_nothing_and_every_other_failure_the_estimate() {
        for status in [400, 401, 404, 429, 499] {
            assert_eq!(
                bill(&wanted(), ESTIMATE, &answer(status, USAGE)),
                RELEASED,
                "{status}"
            );
        }
        for status in [300, 302, 399, 500, 503, 599] {
            assert_eq!(
                bill(&wanted(), ESTIMATE, &answer(status, USAGE)),
                kept(true),
                "{status}"
            );
        }
        for failure in [Failure::Timeout, Failure::Unreachable("connect")] {
            assert_eq!(bill(&wanted(), ESTIMATE, &Err(failure)), kept(true));
        }
    }

    #[test]
    fn tier_search_and_encoding_count() {
        let flex = r#"{"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":12}}"#;
        assert_eq!(bill(&wanted(), ESTIMATE, &answer(200, flex)), settled(69_000));
        let asked = Wanted {
            service_tier: Some("flex".to_owned()),
            ..wanted()
        };
        assert_eq!(bill(&asked, ESTIMATE, &answer(200, USAGE)), settled(69_000));
        let searching = Wanted {
            web_search: true,
            ..wanted()
        };
        assert_eq!(
            bill(&searching, ESTIMATE, &answer(200, USAGE)),
            settled(138_000 + 3_000_000)
        );
        let unknown = Wanted {
            model: "n".to_owned(),
            ..wanted()
        };
        assert_eq!(
            bill(&unknown, ESTIMATE, &answer(200, USAGE)),
            settled(9 * 100_000 + 12 * 500_000)
        );
        // Said to be compressed, and is not: it cannot be read.
        let mut compressed = answer(200, USAGE).unwrap();
        let gzip = HeaderValue::from_static("gzip");
        compressed.headers.insert(CONTENT_ENCODING, gzip);
        assert_eq!(bill(&wanted(), ESTIMATE, &Ok(compressed)), kept(false));
    }

    #[test]
    fn each_end_is_counted_as_what_it_was() {
        for (status, end) in [
            (200, Ended::Success),
            (302, Ended::Redirect),
            (404, Ended::ClientError),
            (500, Ended::ServerError),
            (100, Ended::ServerError),
        ] {
            assert_eq!(ended(&answer(status, "")) as usize, end as usize, "{status}");
        }
        for (failure, end, kind) in [
            (Failure::Timeout, Ended::Timeout, RefusalKind::UpstreamTimeout),
            (
                Failure::Unreachable("connect"),
                Ended::Unreachable,
                RefusalKind::UpstreamUnreachable,
            ),
        ] {
            assert_eq!(refusal_of(&failure).kind, kind);
            assert_eq!(ended(&Err(failure)) as usize, end as usize);
        }
    }
}
