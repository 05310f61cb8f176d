//! The plan of a run: its options, their bounds, and the phases and bodies that follow from them.

use super::mix::denied_before;
use super::record::RecordedSamples;
use super::scenario::{Phase, Scenario};
use super::streamed::Streamed;
use crate::error::LoadTestError;
use domain::measured::Endpoint;
use domain::money::Nanos;
use domain::price::PriceTable;
use reqwest::Url;
use std::net::IpAddr;
use std::time::Duration;

/// Maximum number of calls of a run, which bounds the sums of the ledger check and the cost of a mistake.
pub const CALLS_MAX: u64 = 20_000_000;
/// Maximum number of calls per second of any phase, including a spike.
pub const RATE_MAX: u32 = 100_000;
/// The longest run, warm-up included.
pub const RUN_MAX: Duration = Duration::from_secs(3600);
/// Letters of the prompt around the padding of a body.
const BODY_FRAME: usize = 128;

/// All options of a run.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The edge, without `/v1`.
    pub target: Url,
    /// Additional trusted certificate authority, in PEM.
    pub ca: Option<Vec<u8>>,
    /// Course of the rate over time.
    pub scenario: Scenario,
    /// Calls per second: of the highest step, and before and after a spike.
    pub rate: u32,
    /// Factor by which a spike exceeds the rate.
    pub spike_factor: u32,
    /// Steps of a ramp.
    pub steps: u32,
    /// Number of connections, and maximum of calls in flight.
    pub connections: usize,
    /// Without the warm-up.
    pub duration: Duration,
    /// Before the figures count.
    pub warm_up: Duration,
    /// Time limit of a call.
    pub timeout: Duration,
    /// Of calls to be denied, in parts per million.
    pub deny_share: u64,
    /// Of approved calls whose callers leave in the middle of the stream, in parts per million.
    pub leave_share: u64,
    /// The requested model.
    pub model: String,
    /// `max_tokens`
    pub max_tokens: u64,
    /// Sizes of bodies, in turn.
    pub body_bytes: Vec<usize>,
    /// Kind of the streamed answers; `None` for complete ones.
    pub stream: Option<Streamed>,
    /// Maximum share of errors.
    pub max_errors: f64,
    /// Maximum share of calls denied by a limit (a cap, a plan, a rate): denials are cheap, so results with many of
    /// them do not represent approved calls.
    pub max_limited: f64,
    /// Maximum p99 latency of a ramp's step.
    pub p99_bound: Duration,
}

impl LoadPlan {
    /// Returns the phases, in order.
    pub fn phases(&self) -> Vec<Phase> {
        let phase = |name: String, rate, time| Phase {
            name,
            rate,
            time,
            measured: true,
            is_step: false,
        };
        let mut phases = Vec::new();
        if !self.warm_up.is_zero() {
            let rate = match self.scenario {
                Scenario::Ramp => self.step_rate(1),
                _ => self.rate,
            };
            phases.push(Phase {
                measured: false,
                ..phase("warm-up".to_owned(), rate, self.warm_up)
            });
        }
        match self.scenario {
            Scenario::Steady
            | Scenario::Denials
            | Scenario::Mixed
            | Scenario::Leaving
            | Scenario::Growing => {
                phases.push(phase("steady".to_owned(), self.rate, self.duration));
            }
            Scenario::Spike => {
                let (beside, spike) = (self.duration * 2 / 5, self.duration / 5);
                phases.push(phase("before".to_owned(), self.rate, beside));
                let rate = self.rate.saturating_mul(self.spike_factor);
                phases.push(phase("spike".to_owned(), rate, spike));
                phases.push(phase("after".to_owned(), self.rate, beside));
            }
            Scenario::Ramp => phases.extend((1..=self.steps).map(|step| Phase {
                is_step: true,
                ..phase(
                    format!("step {step}"),
                    self.step_rate(step),
                    self.duration / self.steps,
                )
            })),
        }
        phases
    }

    fn step_rate(&self, step: u32) -> u32 {
        let rate = u64::from(self.rate) * u64::from(step) / u64::from(self.steps.max(1));
        u32::try_from(rate).unwrap_or(u32::MAX).max(1)
    }

    /// Calls of all phases.
    pub fn calls(&self) -> u64 {
        let calls = self.phases().into_iter().map(|phase| phase.calls());
        calls.fold(0, u64::saturating_add)
    }

    /// Calls a second of the highest phase.
    pub fn highest_rate(&self) -> u32 {
        let rates = self.phases().into_iter().map(|phase| phase.rate);
        rates.max().unwrap_or(self.rate)
    }

    /// Returns the maximum charge of the whole run by `prices`: the estimates of all calls that should be approved. For
    /// a stream without a limit, the one that its events would need is taken.
    pub fn cost_at_most(&self, prices: &PriceTable) -> Option<Nanos> {
        let limited = self.stream.map(|streamed| Streamed {
            grows: false,
            ..streamed
        });
        let bodies = self.bodies_with(limited);
        let estimates = bodies.iter().map(|body| {
            let chat = chat::parse_call(Endpoint::Chat, true, body.as_bytes()).ok()?;
            Some(prices.estimate(&chat.named_shape())?.get())
        });
        let dearest = estimates.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        let approved: u64 = self
            .phases()
            .iter()
            .map(|phase| phase.calls() - denied_before(phase.calls(), self.deny_share))
            .sum();
        Nanos::new(dearest.checked_mul(approved)?)
    }

    /// Returns the bodies of approved calls, in turn.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies_with(self.stream)
    }

    fn bodies_with(&self, stream: Option<Streamed>) -> Vec<String> {
        let body = |bytes: &usize| {
            let text = "x".repeat(bytes.saturating_sub(BODY_FRAME).max(1));
            let messages = serde_json::json!([{ "role": "user", "content": text }]);
            let body = serde_json::json!({ "model": self.model, "messages": messages, "max_tokens": self.max_tokens });
            match stream {
                Some(streamed) => streamed.requested_in(body).to_string(),
                None => body.to_string(),
            }
        };
        self.body_bytes.iter().map(body).collect()
    }

    /// Returns why a step of a ramp exceeded a bound, if it did.
    pub(super) fn beyond(&self, seen: &RecordedSamples) -> Option<String> {
        let (errors, calls) = (seen.errors(), seen.calls());
        if errors as f64 > self.max_errors * calls.max(1) as f64 {
            return Some(format!("{errors} of {calls} calls ended in errors"));
        }
        let limited = seen.limited();
        if limited as f64 > self.max_limited * calls.max(1) as f64 {
            return Some(format!(
                "{limited} of {calls} calls were denied by a cap, a plan or a rate"
            ));
        }
        let p99 = seen.quantile(0.99);
        if p99 > self.p99_bound {
            let (took, bound) = (millis(p99), millis(self.p99_bound));
            return Some(format!("p99 {took} ms, the bound is {bound} ms"));
        }
        None
    }

    /// Returns whether the target is this machine.
    pub fn is_local(&self) -> bool {
        let host = self.target.host_str().unwrap_or_default();
        let plain = host.trim_matches(['[', ']']);
        host == "localhost" || plain.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Validates the options.
    ///
    /// # Errors
    /// [`LoadTestError::Usage`] with the option.
    pub fn check(&self) -> Result<(), LoadTestError> {
        let usage = |text: &str| Err(LoadTestError::Usage(text.to_owned()));
        if !matches!(self.target.scheme(), "http" | "https") || self.target.host_str().is_none() {
            return usage("--target must be an address such as https://edge.staging.example");
        }
        if !matches!(self.target.path(), "" | "/") || self.target.query().is_some() {
            return usage("--target is the edge's address without a path: /v1 is added");
        }
        if self.stream.is_none() && self.leave_share > 0 {
            return usage("callers leave in the middle of a stream: add --stream");
        }
        let is_long = self.stream.is_some_and(|stream| stream.events.is_some());
        if self.scenario == Scenario::Growing && !is_long {
            return usage(
                "growing needs --stream and --events: more tokens than the 1,024 that are held at first",
            );
        }
        if self.duration.is_zero() {
            return usage("--duration must be longer than nothing");
        }
        if self.duration.saturating_add(self.warm_up) > RUN_MAX {
            return usage("--warm-up and --duration together are more than an hour");
        }
        if self.highest_rate() > RATE_MAX {
            return usage("more than 100,000 calls a second: lower --rate or --spike-factor");
        }
        if self.phases().iter().any(|phase| phase.calls() == 0) {
            return usage("a phase would send no call at all: raise --rate, or make --duration longer");
        }
        if self.calls() > CALLS_MAX {
            return usage("more than 20 million calls: lower --rate or --duration");
        }
        Ok(())
    }
}

/// Formats milliseconds with three fraction digits.
pub fn millis(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::super::kind::RequestKind;
    use super::super::mix::{WHOLE, is_left};
    use super::super::record::SampleEnd;
    use super::*;

    fn plan(scenario: Scenario) -> LoadPlan {
        LoadPlan {
            target: Url::parse("http://127.0.0.1:8080").unwrap(),
            ca: None,
            scenario,
            rate: 100,
            spike_factor: 5,
            steps: 4,
            connections: 8,
            duration: Duration::from_secs(20),
            warm_up: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            deny_share: scenario.deny_share(),
            leave_share: scenario.leave_share(),
            model: "gpt-4o-mini".to_owned(),
            max_tokens: 16,
            body_bytes: vec![1024, 4096],
            stream: None,
            max_errors: 0.001,
            max_limited: 0.001,
            p99_bound: Duration::from_millis(100),
        }
    }

    #[test]
    fn scenarios_are_phases() {
        let rates = |scenario| -> Vec<(u32, u64)> {
            let phases = plan(scenario).phases();
            phases.iter().map(|phase| (phase.rate, phase.calls())).collect()
        };
        assert_eq!(rates(Scenario::Steady), [(100, 200), (100, 2000)]);
        assert_eq!(
            rates(Scenario::Ramp),
            [(25, 50), (25, 125), (50, 250), (75, 375), (100, 500)]
        );
        assert_eq!(
            rates(Scenario::Spike),
            [(100, 200), (100, 800), (500, 2000), (100, 800)]
        );
        assert!(!plan(Scenario::Ramp).phases()[0].measured);
    }

    #[test]
    fn streamed_calls_cost_what_their_events_may() {
        let mut plan = plan(Scenario::Steady);
        let prices = PriceTable::builtin().unwrap();
        let whole = plan.cost_at_most(&prices).unwrap();
        plan.stream = Some(Streamed {
            events: Some(160),
            delay: Duration::ZERO,
            grows: false,
        });
        let body = &plan.bodies()[0];
        let call = chat::parse_call(Endpoint::Chat, true, body.as_bytes());
        assert!(call.unwrap().stream);
        let limited = plan.cost_at_most(&prices).unwrap();
        assert!(limited > whole);
        // Without a limit the call would be estimated at 1,024 tokens.
        plan.stream = plan.stream.map(|stream| Streamed {
            grows: true,
            ..stream
        });
        assert!(!plan.bodies()[0].contains("max_tokens"));
        assert_eq!(plan.cost_at_most(&prices), Some(limited));
    }

    #[test]
    fn callers_who_leave_are_spread_and_exact() {
        let left = |share| (0..1000).filter(|number| is_left(*number, share)).count();
        assert_eq!(
            (left(0), left(WHOLE / 10), left(WHOLE / 2), left(WHOLE)),
            (0, 100, 500, 1000)
        );
        assert!((0..10).all(|number| is_left(number, WHOLE / 2) == (number % 2 == 1)));
        let mut plan = plan(Scenario::Leaving);
        assert_eq!(plan.leave_share, WHOLE / 2);
        assert!(plan.check().unwrap_err().to_string().contains("--stream"));
        plan.scenario = Scenario::Growing;
        plan.stream = Some(Streamed {
            events: None,
            delay: Duration::ZERO,
            grows: true,
        });
        assert!(plan.check().unwrap_err().to_string().contains("--events"));
    }

    #[test]
    fn bodies_have_their_size_and_an_estimate() {
        let plan = plan(Scenario::Steady);
        for (body, bytes) in plan.bodies().iter().zip(&plan.body_bytes) {
            assert!(
                body.len().abs_diff(*bytes) < BODY_FRAME,
                "{} of {bytes}",
                body.len()
            );
            assert!(chat::parse_call(Endpoint::Chat, false, body.as_bytes()).is_ok());
        }
    }

    #[test]
    fn senseless_options_are_reported() {
        assert!(plan(Scenario::Ramp).check().is_ok());
        let said = |change: fn(&mut LoadPlan)| {
            let mut plan = plan(Scenario::Steady);
            change(&mut plan);
            plan.check().unwrap_err().to_string()
        };
        assert!(said(|plan| plan.duration = Duration::ZERO).contains("--duration"));
        assert!(said(|plan| plan.duration = Duration::from_millis(1)).contains("no call"));
        assert!(said(|plan| plan.duration = Duration::from_secs(3599)).contains("an hour"));
        assert!(said(|plan| plan.duration = Duration::MAX).contains("an hour"));
        let spike = |plan: &mut LoadPlan, rate| (plan.scenario, plan.rate) = (Scenario::Spike, rate);
        let mut highest = plan(Scenario::Steady);
        spike(&mut highest, RATE_MAX / 5);
        assert!(highest.check().is_ok(), "the highest phase is at the bound");
        spike(&mut highest, RATE_MAX / 5 + 1);
        assert!(
            highest
                .check()
                .unwrap_err()
                .to_string()
                .contains("--spike-factor")
        );
        assert!(
            said(|plan| (plan.rate, plan.duration) = (RATE_MAX, Duration::from_secs(300)))
                .contains("20 million")
        );
        assert!(said(|plan| plan.target = Url::parse("http://h/v1").unwrap()).contains("/v1"));
        assert!(said(|plan| plan.target = Url::parse("redis://h").unwrap()).contains("--target"));
    }

    #[test]
    fn calls_denied_by_limits_exceed_the_bounds() {
        let seen = |limited: u64| {
            let mut seen = RecordedSamples::new().unwrap();
            for number in 0..1000 {
                let (status, reason) = match number < limited {
                    true => (429, "rate_limited"),
                    false => (200, ""),
                };
                let (kind, reason) = (RequestKind::Approved, reason.to_owned());
                *seen.ends.entry(SampleEnd { kind, status, reason }).or_default() += 1;
            }
            seen
        };
        let mut plan = plan(Scenario::Ramp);
        assert_eq!(plan.beyond(&seen(1)), None);
        assert!(plan.beyond(&seen(2)).unwrap().contains("denied by a cap"));
        plan.max_limited = 1.0;
        assert_eq!(plan.beyond(&seen(1000)), None);
    }

    #[test]
    fn this_machine_is_distinguished_from_others() {
        let is_local = |target: &str| {
            let mut plan = plan(Scenario::Steady);
            plan.target = Url::parse(target).unwrap();
            plan.is_local()
        };
        for local in ["http://127.0.0.1:1", "http://localhost", "https://[::1]:8"] {
            assert!(is_local(local), "{local}");
        }
        for other in ["http://10.0.0.1", "https://localhost.example", "https://[::2]"] {
            assert!(!is_local(other), "{other}");
        }
    }
}
