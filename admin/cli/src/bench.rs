//! `tollgate-admin bench`: generates load on an edge, and reports its results.

use super::context::{CommandContext, CommandKind, open_store};
use super::output::write_stderr;
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use crypto::virtual_key::WellFormed;
use domain::money::Nanos;
use load_test::LoadTestError;
use load_test::fixtures::{self, Fixtures, KEYS_MAX, Provisioner};
use load_test::plan::{LoadPlan, RATE_MAX};
use load_test::scenario::Scenario;
use load_test::streamed::Streamed;
use reqwest::Url;
use secrecy::SecretString;
use settings::Settings;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::lookup::VirtualKeyOwner;
use tokio::signal::unix::{SignalKind, signal};

const CONNECTIONS_MAX: u64 = 10_000;
/// Maximum number of steps of a ramp.
const STEPS_MAX: i64 = 100;
/// Maximum factor by which a spike exceeds the rate.
const SPIKE_MAX: i64 = 100;
/// Maximum number of events of a stream.
const EVENTS_MAX: u64 = 100_000;
const AGENTS_MAX: u64 = 1000;

/// Sends load to an edge at a fixed rate, and checks afterwards that it charged what it reported.
#[derive(Debug, clap::Args)]
pub(super) struct BenchArgs {
    /// The edge's address, without /v1
    #[arg(long, value_name = "URL")]
    target: Url,
    /// Make agents and keys in this account for the run
    #[arg(long, value_name = "ID", value_parser = value::id, required_unless_present = "keys_file", conflicts_with = "keys_file")]
    account: Option<String>,
    /// Virtual keys, one per line, after `frozen`, `revoked` or `over-cap` if it should be denied
    #[arg(long, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// With --keys-file: check the charges in the configuration's store
    #[arg(long, conflicts_with = "account")]
    check: bool,
    /// The course of the load
    #[arg(long, value_enum, default_value = "steady")]
    scenario: Scenario,
    /// Calls per second; for a ramp: at its last step
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX)))]
    rate: u32,
    /// Connections, and maximum of calls in flight
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: u64,
    /// Duration, such as 90s or 5m; at most one hour
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = value::duration)]
    duration: Duration,
    /// Time before the figures count
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = value::duration)]
    warm_up: Duration,
    /// Steps of a ramp
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=STEPS_MAX))]
    steps: u32,
    /// p99 at which a ramp ends
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = value::duration)]
    p99_bound: Duration,
    /// Factor of a spike
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=SPIKE_MAX))]
    spike_factor: u32,
    /// Share of calls that are to be denied, 0 to 1 [default: 0.5 for denials, 0.1 for mixed, else 0]
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    deny_share: Option<f64>,
    /// Share of approved streams whose callers leave in the middle, 0 to 1 [default: 0.5 for leaving, else 0]
    #[arg(long, value_name = "SHARE", requires = "stream", value_parser = value::share)]
    leave_share: Option<f64>,
    /// Share of errors above which the run fails
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = value::share)]
    max_errors: f64,
    /// Share of calls denied by a cap, a plan or a rate above which the run fails and a ramp ends [default: that of
    /// --max-errors; with --cap, 1]
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    max_limited: Option<f64>,
    /// The requested model
    #[arg(long, value_name = "NAME", default_value = "gpt-4o-mini", value_parser = value::name)]
    model: String,
    /// max_tokens of each call
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_tokens: u64,
    /// Sizes of the bodies in bytes, in turn
    #[arg(long, value_name = "N,…", default_value = "1024", value_delimiter = ',', value_parser = value::body_bytes)]
    body_bytes: Vec<usize>,
    /// Request streams, and report the time to the first byte
    #[arg(long)]
    stream: bool,
    /// With --stream and a sandbox: events of each stream, and least max_tokens
    #[arg(long, value_name = "N", requires = "stream", value_parser = clap::value_parser!(u64).range(1..=EVENTS_MAX))]
    events: Option<u64>,
    /// With --events: wait between two events
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "events", value_parser = value::duration)]
    event_delay: Duration,
    /// Time limit of a call
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = value::duration)]
    timeout: Duration,
    /// With --account: agents that share the load
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "keys_file", value_parser = clap::value_parser!(u64).range(1..=AGENTS_MAX))]
    agents: u64,
    /// With --account: virtual keys in all [default: as many as the plan's rate of a key needs]
    #[arg(long, value_name = "N", conflicts_with = "keys_file", value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX as u64))]
    keys: Option<u64>,
    /// With --account: daily cap of each agent; calls beyond it should be denied
    #[arg(long, value_name = "USD", conflicts_with = "keys_file", value_parser = value::usd)]
    cap: Option<Nanos>,
    /// With --account: a file with the agents' provider key [default: one that only a sandbox takes]
    #[arg(long, value_name = "FILE", conflicts_with = "keys_file")]
    provider_key_file: Option<PathBuf>,
    /// Additional trusted PEM certificates
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Allow a target that is not this machine
    #[arg(long)]
    yes: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

impl From<LoadTestError> for CommandFailure {
    fn from(error: LoadTestError) -> Self {
        match error {
            LoadTestError::Usage(message) => Self::usage(message),
            LoadTestError::Refused(message) => Self::refused("BENCH", message),
            LoadTestError::Store(error) => error.into(),
        }
    }
}

fn read(option: &str, path: &PathBuf) -> Result<Vec<u8>, CommandFailure> {
    std::fs::read(path)
        .map_err(|error| CommandFailure::usage(format!("{option} {}: {error}", path.display())))
}

fn read_text(option: &str, path: &PathBuf) -> Result<String, CommandFailure> {
    String::from_utf8(read(option, path)?)
        .map_err(|_| CommandFailure::usage(format!("{option} {}: it is no text", path.display())))
}

impl BenchArgs {
    pub(super) async fn run(self, settings: Settings, kind: CommandKind) -> Result<Report, CommandFailure> {
        let plan = self.plan()?;
        plan.check()?;
        let cost = plan.cost_at_most(&settings.prices()?);
        let intention = load_test::intention(&plan, cost);
        if !plan.is_local() && !self.yes {
            return Err(CommandFailure::usage(format!(
                "the target is not this machine; with --yes this sends {intention}"
            )));
        }
        if !self.quiet {
            write_stderr(&intention);
        }
        let stop = Arc::new(AtomicBool::new(false));
        tokio::spawn(stop_on_signal(Arc::clone(&stop)));
        match (&self.account, &self.keys_file) {
            (Some(account), _) => self.with_account(account, plan, settings, kind, &stop).await,
            (None, Some(file)) => {
                let text = read_text("--keys-file", file)?;
                self.with_keys(&text, plan, settings, &stop).await
            }
            (None, None) => Err(CommandFailure::usage("--account or --keys-file is needed")),
        }
    }

    fn plan(&self) -> Result<LoadPlan, CommandFailure> {
        let parts = load_test::mix::WHOLE as f64;
        let share = |given: Option<f64>| given.map(|share| (share * parts).round() as u64);
        Ok(LoadPlan {
            target: self.target.clone(),
            ca: self
                .ca_file
                .as_ref()
                .map(|path| read("--ca-file", path))
                .transpose()?,
            scenario: self.scenario,
            rate: self.rate,
            spike_factor: self.spike_factor,
            steps: self.steps,
            connections: usize::try_from(self.connections).unwrap_or(usize::MAX),
            duration: self.duration,
            warm_up: self.warm_up,
            timeout: self.timeout,
            deny_share: share(self.deny_share).unwrap_or_else(|| self.scenario.deny_share()),
            leave_share: share(self.leave_share).unwrap_or_else(|| self.scenario.leave_share()),
            model: self.model.clone(),
            max_tokens: self.max_tokens,
            body_bytes: self.body_bytes.clone(),
            stream: self.stream.then_some(Streamed {
                events: self.events,
                delay: self.event_delay,
                grows: self.scenario == Scenario::Growing,
            }),
            max_errors: self.max_errors,
            max_limited: self.max_limited.unwrap_or(match self.cap {
                Some(_) => 1.0,
                None => self.max_errors,
            }),
            p99_bound: self.p99_bound,
        })
    }

    async fn with_account(
        &self,
        account: &str,
        plan: LoadPlan,
        settings: Settings,
        kind: CommandKind,
        stop: &Arc<AtomicBool>,
    ) -> Result<Report, CommandFailure> {
        let provider_key: SecretString = match &self.provider_key_file {
            None => fixtures::STAND_IN.into(),
            Some(path) => read_text("--provider-key-file", path)?.trim().into(),
        };
        let (keyring, plans) = (settings.keyring()?, settings.plans()?);
        let context = CommandContext::open(settings, kind).await?;
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let provisioner = Provisioner {
            store: &context.store,
            keyring: &keyring,
            check_secret: &context.record.check_secret,
            plans: &plans,
            provider: &context.settings.upstream.provider,
            account,
            agents: count(self.agents),
            keys: self.keys.map(count),
            rate: plan.highest_rate(),
            cap: self.cap,
            provider_key: &provider_key,
            denials: plan.deny_share > 0,
        };
        let mut fixtures = Fixtures::default();
        let outcome = match provisioner.make(&mut fixtures).await {
            Ok(()) => self.fire(plan, &fixtures, Some(&context.store), stop).await,
            Err(error) => Err(error.into()),
        };
        // The fixtures are removed whatever the outcome; a failure to remove them is reported in addition.
        match (outcome, fixtures.remove_all(&provisioner).await) {
            (outcome, Ok(())) => outcome,
            (Ok(report), Err(left)) => Ok(report.with_trouble("leftOver", left.left(), &left.to_string())),
            (Err(failure), Err(left)) => Err(failure.and(&left.to_string())),
        }
    }

    async fn with_keys(
        &self,
        text: &str,
        plan: LoadPlan,
        settings: Settings,
        stop: &Arc<AtomicBool>,
    ) -> Result<Report, CommandFailure> {
        let lines = fixtures::lines(text)?;
        if !self.check {
            return self
                .fire(plan, &Fixtures::from_file(text, &[])?, None, stop)
                .await;
        }
        let store = open_store(&settings)?;
        let mut owners = Vec::new();
        for (_, key) in lines {
            let formed = WellFormed::parse(key.as_bytes());
            owners.push(match formed {
                Some(formed) => VirtualKeyOwner::find(&store, &formed.hash()).await?,
                None => None,
            });
        }
        let fixtures = Fixtures::from_file(text, &owners)?;
        self.fire(plan, &fixtures, Some(&store), stop).await
    }

    async fn fire(
        &self,
        plan: LoadPlan,
        fixtures: &Fixtures,
        store: Option<&store::Store>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Report, CommandFailure> {
        let outcome = load_test::run(plan.clone(), fixtures, store, stop, !self.quiet).await?;
        let ok = outcome.is_good(&plan);
        let report = Report::new(
            load_test::text(&plan, &outcome),
            load_test::json(&plan, &outcome, ok),
        );
        Ok(if ok { report } else { report.incomplete() })
    }
}

/// Stops the run on Ctrl-C and SIGTERM; results until then are reported.
async fn stop_on_signal(stop: Arc<AtomicBool>) {
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
    stop.store(true, Ordering::Release);
}
