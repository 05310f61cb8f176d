//! The charge of a call (specification "Proxy spend ledger", decisions D33 to D37).

use super::call_request::{CallRequest, StreamRequest};
use crate::upstream::usage;
use crate::upstream::{Failure, WholeAnswer};
use domain::entry::HoldOutcome;
use domain::measured::CallEnd;
use domain::money::Nanos;
use domain::price::{Usage, reported_cost};
use sse::Filter;

/// The final charge of a call.
#[derive(Debug)]
pub struct Bill {
    /// The amount to charge.
    pub cost: Nanos,
    /// Method by which the cost was determined, as in the audit trail.
    pub how: HoldOutcome,
    /// The usage that the provider reported, if any. Of a stream, only the usage that determined the cost.
    pub usage: Option<Usage>,
}

impl Bill {
    /// Computes the charge of a call by the provider's whole answer.
    pub fn of_whole(request: &CallRequest, estimate: Nanos, answer: &Result<WholeAnswer, Failure>) -> Self {
        let answer = answer.as_ref().ok();
        if answer.is_some_and(|answer| answer.status.is_client_error()) {
            return Self::without_usage(Nanos::ZERO, HoldOutcome::Released);
        }
        let success = answer.filter(|answer| answer.status.is_success());
        let Some(reported) = success.and_then(|answer| answer.reported.as_ref()) else {
            return Self::without_usage(estimate, HoldOutcome::Estimated);
        };
        let usage = reported.usage;
        let actual = usage
            .as_ref()
            .and_then(|usage| request.actual_cost(usage, reported.service_tier.as_deref()));
        Self::new(actual, request.counted_cost(reported.cost), estimate, usage)
    }

    /// Computes the charge of a stream that ended with `end`, at `held` if its usage is not that of the whole answer.
    /// The charge is then also at least the cost of the text seen, and of the usage so far.
    pub fn of_stream(
        request: &CallRequest,
        stream_request: &StreamRequest,
        held: Nanos,
        filter: &Filter,
        end: CallEnd,
    ) -> Self {
        let json = filter.usage();
        let usage = json.and_then(|json| usage::of_object(request.endpoint, json));
        // The filter has the last cost, too. It is read again so that an invalid one is logged, once a stream.
        let last = json.and_then(|json| request.counted_cost(reported_cost(json)));
        let reported = last.max(filter.cost_nanos().map(Nanos::from_stored));
        let so_far = usage
            .as_ref()
            .and_then(|usage| request.actual_cost(usage, filter.service_tier()));
        if so_far.is_some() && filter.usage_is_whole(end == CallEnd::Completed) {
            return Self::new(so_far, reported, held, usage);
        }
        let seen = stream_request.cost_of_seen(request, filter.text_bytes(), filter.service_tier());
        let held = [so_far, seen].into_iter().flatten().fold(held, Nanos::max);
        Self::new(None, reported, held, None)
    }

    /// Charges `actual`, the cost of the usage of the whole answer, or `held` if it is not known. The charge is never
    /// less than the cost that the provider reports, if reported costs are used. `held` is never less than the
    /// estimate, since reasoning is not seen.
    fn new(actual: Option<Nanos>, reported: Option<Nanos>, held: Nanos, usage: Option<Usage>) -> Self {
        let (cost, how) = match actual {
            Some(cost) => (cost, HoldOutcome::Settled),
            None => (held, HoldOutcome::Estimated),
        };
        let cost = cost.max(reported.unwrap_or(Nanos::ZERO));
        Self { cost, how, usage }
    }

    const fn without_usage(cost: Nanos, how: HoldOutcome) -> Self {
        Self {
            cost,
            how,
            usage: None,
        }
    }

    /// Returns the cost if the provider's usage determined it.
    pub fn actual(&self) -> Option<Nanos> {
        (self.how == HoldOutcome::Settled).then_some(self.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::call_request::Run;
    use crate::upstream::failure::BreakOff;
    use crate::upstream::usage::Reported;
    use bytes::Bytes;
    use domain::measured::Endpoint;
    use domain::price::{DEFAULT_PRICES, PriceTable};
    use http::{HeaderMap, StatusCode};
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

    fn read(body: &str) -> Option<Reported> {
        usage::read(Endpoint::Chat, body.as_bytes(), true)
    }

    fn answer(status: u16, body: &str) -> Result<WholeAnswer, Failure> {
        Ok(WholeAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            reported: read(body),
        })
    }

    /// 9 tokens of 2 and 12 of 10 USD a million.
    const USAGE: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12}}"#;

    fn bill(request: &CallRequest, answer: &Result<WholeAnswer, Failure>) -> (Nanos, HoldOutcome) {
        let bill = Bill::of_whole(request, ESTIMATE, answer);
        (bill.cost, bill.how)
    }

    fn settled(nanos: u64) -> (Nanos, HoldOutcome) {
        (Nanos::from_stored(nanos), HoldOutcome::Settled)
    }

    const ESTIMATED: (Nanos, HoldOutcome) = (ESTIMATE, HoldOutcome::Estimated);
    const RELEASED: (Nanos, HoldOutcome) = (Nanos::ZERO, HoldOutcome::Released);

    #[test]
    fn a_success_costs_its_usage_or_the_estimate() {
        for status in [200, 201, 299] {
            assert_eq!(bill(&request(), &answer(status, USAGE)), settled(138_000));
        }
        for unreadable in [
            "",
            "{}",
            r#"{"usage":null}"#,
            r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
        ] {
            let bill = bill(&request(), &answer(200, unreadable));
            assert_eq!(bill, ESTIMATED, "{unreadable}");
        }
    }

    #[test]
    fn a_client_error_costs_nothing_and_every_other_failure_the_estimate() {
        for status in [400, 401, 404, 429, 499] {
            assert_eq!(bill(&request(), &answer(status, USAGE)), RELEASED, "{status}");
        }
        for status in [300, 302, 399, 500, 503, 599] {
            assert_eq!(bill(&request(), &answer(status, USAGE)), ESTIMATED, "{status}");
        }
        for failure in [Failure::Timeout, Failure::Unreachable(BreakOff::Connect)] {
            assert_eq!(bill(&request(), &Err(failure)), ESTIMATED);
        }
    }

    #[test]
    fn tier_search_and_encoding_are_considered() {
        let flex = r#"{"service_tier":"flex","usage":{"prompt_tokens":9,"completion_tokens":12}}"#;
        assert_eq!(bill(&request(), &answer(200, flex)), settled(69_000));
        let asked = CallRequest {
            service_tier: Some("flex".to_owned()),
            ..request()
        };
        assert_eq!(bill(&asked, &answer(200, flex)), settled(69_000));
        // Nothing confirms that the provider knows the tier, so the call is priced without it.
        assert_eq!(bill(&asked, &answer(200, USAGE)), settled(138_000));
        let searching = CallRequest {
            web_search: true,
            ..request()
        };
        assert_eq!(
            bill(&searching, &answer(200, USAGE)),
            settled(138_000 + 3_000_000)
        );
        let unknown = CallRequest {
            model: "n".to_owned(),
            ..request()
        };
        assert_eq!(
            bill(&unknown, &answer(200, USAGE)),
            settled(9 * 100_000 + 12 * 500_000)
        );
        // The body could not be decoded.
        let mut compressed = answer(200, USAGE).unwrap();
        compressed.reported = None;
        assert_eq!(bill(&request(), &Ok(compressed)), ESTIMATED);
    }

    /// Returns the charge for a usage that costs 138,000 nano-USD with this reported cost, or for an answer without
    /// usage.
    #[test]
    fn the_larger_of_the_table_and_of_a_reported_cost_is_charged_where_that_counts() {
        let counting = CallRequest {
            upstream: crate::fixture::upstream_of("[upstream]\nreported_cost = true\n"),
            ..request()
        };
        let usage = |cost: &str| -> Result<WholeAnswer, Failure> {
            let body = format!(r#"{{"usage":{{"prompt_tokens":9,"completion_tokens":12,"cost":{cost}}}}}"#);
            let mut answer = answer(200, "").unwrap();
            answer.reported = read(&body);
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
            assert_eq!(bill(&counting, &usage(cost)), settled(nanos), "{cost}");
            assert_eq!(
                bill(&request(), &usage(cost)),
                settled(138_000),
                "it does not count: {cost}"
            );
        }
        let without = answer(200, r#"{"usage":{"cost":0.2}}"#);
        let dearer = (Nanos::from_stored(200_000_000), HoldOutcome::Estimated);
        assert_eq!(bill(&counting, &without), dearer);
        assert_eq!(bill(&request(), &without), ESTIMATED);
        let cheaper = answer(200, r#"{"usage":{"cost":1e-9}}"#);
        assert_eq!(bill(&counting, &cheaper), ESTIMATED);
        let refused = answer(400, r#"{"usage":{"cost":0.2}}"#);
        assert_eq!(bill(&counting, &refused), RELEASED);
    }

    #[test]
    fn only_the_usage_of_a_success_is_measured() {
        const CACHED: &str = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}"#;
        let measured = |answer| {
            let usage = Bill::of_whole(&request(), ESTIMATE, &answer).usage;
            let took = std::time::Duration::from_micros(812_999);
            let measured = request().measured(usage.as_ref(), CallEnd::Completed, took);
            measured.to_word()
        };
        for (answer, word) in [
            (answer(200, CACHED), "chat.completions,0,,9,4,12,812,,completed,0"),
            (answer(200, "{}"), "chat.completions,0,,,,,812,,completed,0"),
            (answer(429, USAGE), "chat.completions,0,,,,,812,,completed,0"),
            (answer(500, USAGE), "chat.completions,0,,,,,812,,completed,0"),
            (Err(Failure::Timeout), "chat.completions,0,,,,,812,,completed,0"),
        ] {
            assert_eq!(measured(answer), word);
        }
    }
}
