//! Step 6: the charge moves from the estimate to the real cost, before the answer ends (specification "Proxy spend
//! ledger", decisions D33 to D37).

use super::call_request::CallRequest;
use super::forward::SentCall;
use super::hold::{HoldSettler, Settlement};
use super::request_trace::{ApprovedCall, RequestTrace};
use crate::metrics::{Metrics, Stage, UpstreamResult};
use crate::reply::Reply;
use crate::reply::approved::{self, ApprovalHeaders};
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::stream::has_events;
use crate::upstream::usage::{self, Reported};
use crate::upstream::{Answer, Failure, encoding};
use domain::entry::HoldOutcome;
use domain::measured::{CallEnd, Measured};
use domain::money::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// The final charge of a call.
#[derive(Debug, PartialEq, Eq)]
struct Bill {
    cost: Nanos,
    /// The cost of the usage, if the provider reported it.
    actual: Option<Nanos>,
    /// The call failed, and the estimate stays charged.
    charged_failure: bool,
    /// Method by which the cost was determined, as in the audit trail.
    how: HoldOutcome,
}

/// A call whose settlement was accepted by the store or is queued for a retry.
#[derive(Debug)]
pub struct SettledCall {
    allow_id: String,
    estimate: Nanos,
    bill: Bill,
    settlement: Settlement,
    answer: Result<Answer, Failure>,
    /// Estimate and cost in USD, for the log and for headers.
    estimated_usd: String,
    charged_usd: String,
}

/// Settles calls.
pub struct Settler {
    /// Settles the hold.
    pub holds: Arc<HoldSettler>,
}

impl Settler {
    /// Charges the real cost. `upstream_time` is the time from sending the request to the end of the provider's answer.
    pub async fn settle(
        &self,
        request: &CallRequest,
        sent: SentCall,
        upstream_time: Duration,
    ) -> SettledCall {
        let SentCall { hold, answer } = sent;
        let estimate = hold.estimate;
        let reported = answer.as_ref().ok().and_then(|answer| reported(request, answer));
        let bill = bill(request, estimate, &answer, reported.as_ref());
        let measured = measured(request, &answer, reported.as_ref(), upstream_time);
        let allow_id = hold.name.allow_id.clone();
        let settlement = self.holds.settle(hold, bill.cost, bill.how, Some(measured)).await;
        SettledCall {
            allow_id,
            estimate,
            settlement,
            answer,
            estimated_usd: estimate.to_string(),
            charged_usd: bill.cost.to_string(),
            bill,
        }
    }
}

impl SettledCall {
    /// Records the call in metrics, log and trace.
    pub fn record(&self, request: &CallRequest, metrics: &Metrics, trace: &RequestTrace) {
        let upstream_time = trace.stage_time(Stage::Upstream);
        let (actual, result) = (self.bill.actual, upstream_result(&self.answer));
        metrics.approved(self.estimate, actual, result, upstream_time);
        let upstream = request.upstream.identity();
        metrics.upstreams.answered(upstream.index, result, upstream_time);
        if let Err(failure) = &self.answer {
            metrics.broke_off(failure);
        }
        trace.record_approval(&ApprovedCall {
            id: &self.allow_id,
            run: &request.run.id,
            model: &request.model,
            estimate: &self.estimated_usd,
            charged: &self.charged_usd,
            how: self.bill.how.as_str(),
            settlement: self.settlement,
            upstream: &upstream.provider,
            stream_end: None,
            status: self.answer.as_ref().map_or(0, |answer| answer.status.as_u16()),
            upstream_time,
        });
    }

    /// Builds the answer.
    pub fn into_reply(self, run_id: &str) -> Reply {
        let mut reply = match self.answer {
            Ok(answer) => approved::reply(answer),
            Err(failure) => refusal_of(&failure).reply(),
        };
        ApprovalHeaders {
            allow_id: &self.allow_id,
            run_id,
            estimate: &self.estimated_usd,
            actual: self.bill.actual.map(|_| &*self.charged_usd),
            charged_failure: self.bill.charged_failure,
        }
        .set_on(&mut reply);
        reply
    }
}

/// Computes the charge by the ledger table of the specification.
fn bill(
    request: &CallRequest,
    estimate: Nanos,
    answer: &Result<Answer, Failure>,
    reported: Option<&Reported>,
) -> Bill {
    let estimated = |cost, charged_failure| Bill {
        cost,
        actual: None,
        charged_failure,
        how: HoldOutcome::Estimated,
    };
    let Ok(answer) = answer else {
        return estimated(estimate, true);
    };
    match answer.status {
        status if status.is_success() => {
            // The larger of the table's cost and the reported cost, if reported costs are used.
            let least = reported.and_then(|reported| request.counted_cost(reported.cost));
            match reported.and_then(|reported| actual_cost(request, reported)) {
                Some(cost) => {
                    let cost = least.map_or(cost, |least| cost.max(least));
                    Bill {
                        cost,
                        actual: Some(cost),
                        charged_failure: false,
                        how: HoldOutcome::Settled,
                    }
                }
                None => estimated(least.map_or(estimate, |least| estimate.max(least)), false),
            }
        }
        status if status.is_client_error() => Bill {
            cost: Nanos::ZERO,
            actual: None,
            charged_failure: false,
            how: HoldOutcome::Released,
        },
        _ => estimated(estimate, true),
    }
}

/// Returns the cost by the price table; `None` without a usage.
fn actual_cost(request: &CallRequest, reported: &Reported) -> Option<Nanos> {
    request.actual_cost(reported.usage.as_ref()?, reported.service_tier.as_deref())
}

/// Reads the usage in a successful answer.
fn reported(request: &CallRequest, answer: &Answer) -> Option<Reported> {
    let content_encoding = encoding::content_encoding(&answer.headers);
    let is_success = answer.status.is_success();
    is_success
        .then(|| {
            let cost_counts = request.upstream.identity().reported_cost;
            let read = match has_events(&answer.headers) {
                true => usage::read_events,
                false => usage::read,
            };
            read(
                request.endpoint,
                &answer.body,
                content_encoding.as_deref(),
                cost_counts,
            )
        })
        .flatten()
}

/// Builds the measurements of the audit trail.
fn measured(
    request: &CallRequest,
    answer: &Result<Answer, Failure>,
    reported: Option<&Reported>,
    upstream_time: Duration,
) -> Measured {
    let usage = reported.and_then(|reported| reported.usage.as_ref());
    let end = match answer.as_ref().map(|answer| answer.status) {
        Ok(status) if status.is_success() => CallEnd::Completed,
        Ok(status) if status.is_client_error() => CallEnd::Refused,
        Err(Failure::Timeout) => CallEnd::TotalTimeout,
        _ => CallEnd::Failed,
    };
    request.measured(usage, end, upstream_time)
}

/// Returns the provider's result, as counted in metrics.
fn upstream_result(answer: &Result<Answer, Failure>) -> UpstreamResult {
    match answer.as_ref().map(|answer| answer.status) {
        Ok(status) if status.is_success() => UpstreamResult::Success,
        Ok(status) if status.is_redirection() => UpstreamResult::Redirect,
        Ok(status) if status.is_client_error() => UpstreamResult::ClientError,
        Ok(_) => UpstreamResult::ServerError,
        Err(Failure::Timeout) => UpstreamResult::Timeout,
        Err(Failure::Unreachable(_) | Failure::NotSent(_)) => UpstreamResult::Unreachable,
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
    use crate::call::call_request::Run;
    use crate::upstream::failure::BreakOff;
    use bytes::Bytes;
    use domain::measured::Endpoint;
    use domain::price::{DEFAULT_PRICES, PriceTable};
    use http::header::CONTENT_ENCODING;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::sync::Arc;

    const ESTIMATE: Nanos = Nanos::from_stored(1_000_000);
    const MODELS: &str = r#"
        [models.m]
        web_search = "0.003"
        rates.standard = { input = "2", output = "10" }
        rates.flex = { input = "1", output = "5" }
        [models.expensive]
        rates.standard = { input = "100", output = "500" }
    "#;

    fn request() -> CallRequest {
        // The settings of the price file, which precede its models.
        let settings = DEFAULT_PRICES.split("[models.").next().unwrap();
        CallRequest {
            run: Run {
                id: "r".to_owned(),
                named: true,
            },
            model: "m".to_owned(),
            service_tier: None,
            web_search: false,
            long_cache: false,
            upstream: crate::fixture::upstream(),
            prices: Arc::new(PriceTable::from_toml(&[settings, MODELS].concat()).unwrap()),
            estimate: Some(ESTIMATE),
            endpoint: Endpoint::Chat,
            stream: None,
        }
    }

    fn answer(status: u16, body: &'static str) -> Result<Answer, Failure> {
        Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
            is_error: status >= 300,
        })
    }

    /// 9 tokens of 2 and 12 of 10 USD a million.
    const USAGE: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12}}"#;

    fn bill(request: &CallRequest, estimate: Nanos, answer: &Result<Answer, Failure>) -> Bill {
        let reported = answer.as_ref().ok().and_then(|answer| reported(request, answer));
        super::bill(request, estimate, answer, reported.as_ref())
    }

    fn settled(nanos: u64) -> Bill {
        let cost = Nanos::from_stored(nanos);
        Bill {
            cost,
            actual: Some(cost),
            charged_failure: false,
            how: HoldOutcome::Settled,
        }
    }

    fn estimated(charged_failure: bool) -> Bill {
        Bill {
            cost: ESTIMATE,
            actual: None,
            charged_failure,
            how: HoldOutcome::Estimated,
        }
    }

    const RELEASED: Bill = Bill {
        cost: Nanos::ZERO,
        actual: None,
        charged_failure: false,
        how: HoldOutcome::Released,
    };

    #[test]
    fn a_success_costs_its_usage_or_the_estimate() {
        for status in [200, 201, 299] {
            assert_eq!(
                bill(&request(), ESTIMATE, &answer(status, USAGE)),
                settled(138_000)
            );
        }
        for unreadable in [
            "",
            "{}",
            r#"{"usage":null}"#,
            r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
        ] {
            let bill = bill(&request(), ESTIMATE, &answer(200, unreadable));
            assert_eq!(bill, estimated(false), "{unreadable}");
        }
    }

    #[test]
    fn a_client_error_costs_nothing_and_every_other_failure_the_estimate() {
        for status in [400, 401, 404, 429, 499] {
            assert_eq!(
                bill(&request(), ESTIMATE, &answer(status, USAGE)),
                RELEASED,
                "{status}"
            );
        }
        for status in [300, 302, 399, 500, 503, 599] {
            assert_eq!(
                bill(&request(), ESTIMATE, &answer(status, USAGE)),
                estimated(true),
                "{status}"
            );
        }
        for failure in [Failure::Timeout, Failure::Unreachable(BreakOff::Connect)] {
            assert_eq!(bill(&request(), ESTIMATE, &Err(failure)), estimated(true));
        }
    }

    #[test]
    fn tier_search_and_encoding_are_considered() {
        let flex = r#"{"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":12}}"#;
        assert_eq!(bill(&request(), ESTIMATE, &answer(200, flex)), settled(69_000));
        let asked = CallRequest {
            service_tier: Some("flex".to_owned()),
            ..request()
        };
        assert_eq!(bill(&asked, ESTIMATE, &answer(200, flex)), settled(69_000));
        // Nothing confirms that the provider knows the tier, so the call is priced without it.
        assert_eq!(bill(&asked, ESTIMATE, &answer(200, USAGE)), settled(138_000));
        let searching = CallRequest {
            web_search: true,
            ..request()
        };
        assert_eq!(
            bill(&searching, ESTIMATE, &answer(200, USAGE)),
            settled(138_000 + 3_000_000)
        );
        let unknown = CallRequest {
            model: "n".to_owned(),
            ..request()
        };
        assert_eq!(
            bill(&unknown, ESTIMATE, &answer(200, USAGE)),
            settled(9 * 100_000 + 12 * 500_000)
        );
        // The header declares compression, but the body is not compressed and cannot be decoded.
        let mut compressed = answer(200, USAGE).unwrap();
        let gzip = HeaderValue::from_static("gzip");
        compressed.headers.insert(CONTENT_ENCODING, gzip);
        assert_eq!(bill(&request(), ESTIMATE, &Ok(compressed)), estimated(false));
    }

    /// Returns the charge for a usage that costs 138,000 nano-USD with this reported cost, or for an answer without
    /// usage.
    #[test]
    fn the_larger_of_the_table_and_of_a_reported_cost_is_charged_where_that_counts() {
        let counting = CallRequest {
            upstream: crate::fixture::upstream_of("[upstream]\nreported_cost = true\n"),
            ..request()
        };
        let usage = |cost: &str| -> Result<Answer, Failure> {
            let body = format!(r#"{{"usage":{{"prompt_tokens":9,"completion_tokens":12,"cost":{cost}}}}}"#);
            let mut answer = answer(200, "").unwrap();
            answer.body = body.into();
            Ok(answer)
        };
        for (cost, nanos) in [
            ("0.2", 200_000_000),
            ("\"0.0001380001\"", 138_001),
            ("0.000138", 138_000),
            ("0.0001", 138_000),
            ("0", 138_000),
            ("null", 138_000),
            // An ignored cost: the table's cost is charged.
            ("-0.2", 138_000),
            ("1e300", 138_000),
            ("\"dear\"", 138_000),
        ] {
            assert_eq!(bill(&counting, ESTIMATE, &usage(cost)), settled(nanos), "{cost}");
            assert_eq!(
                bill(&request(), ESTIMATE, &usage(cost)),
                settled(138_000),
                "it does not count: {cost}"
            );
        }
        let without = answer(200, r#"{"usage":{"cost":0.2}}"#);
        let dearer = Bill {
            cost: Nanos::from_stored(200_000_000),
            ..estimated(false)
        };
        assert_eq!(bill(&counting, ESTIMATE, &without), dearer);
        assert_eq!(bill(&request(), ESTIMATE, &without), estimated(false));
        let cheaper = answer(200, r#"{"usage":{"cost":1e-9}}"#);
        assert_eq!(bill(&counting, ESTIMATE, &cheaper), estimated(false));
        let refused = answer(400, r#"{"usage":{"cost":0.2}}"#);
        assert_eq!(bill(&counting, ESTIMATE, &refused), RELEASED);
    }

    #[test]
    fn what_was_measured_is_the_providers_word_and_the_edges_clock() {
        const CACHED: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}"#;
        let measured = |answer: &Result<Answer, Failure>| {
            let reported = answer
                .as_ref()
                .ok()
                .and_then(|answer| reported(&request(), answer));
            super::measured(
                &request(),
                answer,
                reported.as_ref(),
                Duration::from_micros(812_999),
            )
            .to_word()
        };
        for (answer, word) in [
            (answer(200, CACHED), "chat.completions,0,,9,4,12,812,,completed,0"),
            (answer(200, "{}"), "chat.completions,0,,,,,812,,completed,0"),
            (answer(429, USAGE), "chat.completions,0,,,,,812,,refused,0"),
            (answer(302, USAGE), "chat.completions,0,,,,,812,,failed,0"),
            (answer(500, USAGE), "chat.completions,0,,,,,812,,failed,0"),
            (
                Err(Failure::Timeout),
                "chat.completions,0,,,,,812,,total_timeout,0",
            ),
            (
                Err(Failure::Unreachable(BreakOff::Connect)),
                "chat.completions,0,,,,,812,,failed,0",
            ),
        ] {
            assert_eq!(measured(&answer), word);
        }
    }

    #[test]
    fn each_result_has_its_own_label() {
        for (status, end) in [
            (200, UpstreamResult::Success),
            (302, UpstreamResult::Redirect),
            (404, UpstreamResult::ClientError),
            (500, UpstreamResult::ServerError),
            (100, UpstreamResult::ServerError),
        ] {
            assert_eq!(
                upstream_result(&answer(status, "")) as usize,
                end as usize,
                "{status}"
            );
        }
        for (failure, end, kind) in [
            (
                Failure::Timeout,
                UpstreamResult::Timeout,
                RefusalKind::UpstreamTimeout,
            ),
            (
                Failure::Unreachable(BreakOff::Connect),
                UpstreamResult::Unreachable,
                RefusalKind::UpstreamUnreachable,
            ),
        ] {
            assert_eq!(refusal_of(&failure).kind, kind);
            assert_eq!(upstream_result(&Err(failure)) as usize, end as usize);
        }
    }
}
