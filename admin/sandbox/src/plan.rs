//! The options of a streamed answer: `stream:<option>,<option>=<value>,…`.

use super::DELAY_MAX;
use super::usage::UsageValue;
use std::time::Duration;

/// Maximum number of deltas of a stream.
const EVENTS_MAX: u64 = 1_000_000;
/// Longest text of a delta, and of all deltas of a choice together, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 20;
/// Bytes of a delta's text if the scenario gives their number.
pub(super) const EVENT_BYTES: usize = 4;
/// Maximum number of events of one write.
const BATCH_MAX: u64 = 10_000;

/// Line ends of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineEnd {
    #[default]
    Lf,
    Cr,
    CrLf,
}

impl LineEnd {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Cr => "\r",
            Self::CrLf => "\r\n",
        }
    }
}

/// The events that have the usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum UsagePlacement {
    /// The last one before `[DONE]`, if the request has it enabled.
    #[default]
    Last,
    /// The first one, even without a request.
    First,
    /// Every one, with the tokens so far, even without a request.
    Each,
    /// Two at the end.
    Twice,
    /// One after `[DONE]`.
    AfterDone,
}

/// A fault after a given number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFault {
    /// The connection breaks off.
    Cut,
    /// The body ends as if it were complete.
    End,
    /// Nothing more is sent for [`DELAY_MAX`].
    Stall,
    /// An event reports an error, and the body ends.
    Error,
    /// The response fails and reports its usage; like `Error` for chat completions.
    Failed,
}

/// Parameters of a stream.
#[derive(Debug, Clone)]
pub(super) struct StreamPlan {
    /// Wait before the head.
    pub(super) head: Duration,
    /// Wait before the first event.
    pub(super) first: Duration,
    /// Wait before each further event.
    pub(super) delay: Duration,
    /// Number of deltas of each choice; by default the words of the usual text.
    pub(super) events: Option<u64>,
    /// Bytes of the text of each of them.
    pub(super) event_bytes: usize,
    /// Bytes of each write.
    pub(super) piece: Option<usize>,
    /// Events of each write.
    pub(super) batch: u64,
    pub(super) line_end: LineEnd,
    /// A comment before each event.
    pub(super) comments: bool,
    /// True if each event has an `event:` line, even if the provider sends none.
    pub(super) names: bool,
    pub(super) usage: UsageValue,
    pub(super) place: UsagePlacement,
    /// `[DONE]` at the end; for responses the last event.
    pub(super) done: bool,
    pub(super) fault: Option<(u64, StreamFault)>,
    /// True if a complete JSON answer replaces the stream.
    pub(super) json: bool,
    pub(super) gzip: bool,
    /// Status of an error whose body is one event.
    pub(super) status: Option<u16>,
}

impl Default for StreamPlan {
    fn default() -> Self {
        Self {
            head: Duration::ZERO,
            first: Duration::ZERO,
            delay: Duration::ZERO,
            events: None,
            event_bytes: EVENT_BYTES,
            piece: None,
            batch: 1,
            line_end: LineEnd::Lf,
            comments: false,
            names: false,
            usage: UsageValue::Real,
            place: UsagePlacement::Last,
            done: true,
            fault: None,
            json: false,
            gzip: false,
            status: None,
        }
    }
}

impl StreamPlan {
    /// Reads the options; `None` if one is unknown or out of range.
    pub(super) fn parse(options: &str) -> Option<Self> {
        let mut plan = Self::default();
        each(options).try_for_each(|option| plan.read(option))?;
        let deltas = usize::try_from(plan.events.unwrap_or(0)).ok()?;
        let text_bytes = deltas.checked_mul(plan.event_bytes)?;
        (text_bytes <= TEXT_BYTES_MAX).then_some(plan)
    }

    /// Returns why the options are refused; `None` if they are not.
    pub(super) fn fault(options: &str) -> Option<String> {
        if Self::parse(options).is_some() {
            return None;
        }
        let refused = each(options).find(|option| Self::default().read(option).is_none());
        Some(match refused {
            Some(option) => format!("The option `{option}` of a stream is unknown or out of range."),
            None => format!("`events` times `bytes` is over {} MiB.", TEXT_BYTES_MAX >> 20),
        })
    }

    fn read(&mut self, option: &str) -> Option<()> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        self.set(name, value)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "head" => self.head = wait(value)?,
            "first" => self.first = wait(value)?,
            "delay" => self.delay = wait(value)?,
            "events" => self.events = Some(number(value, 0, EVENTS_MAX)?),
            "bytes" => self.event_bytes = size(value, 1, TEXT_BYTES_MAX)?,
            "piece" => self.piece = Some(size(value, 1, TEXT_BYTES_MAX)?),
            "batch" => self.batch = number(value, 1, BATCH_MAX)?,
            "eol" => {
                self.line_end = match value {
                    "lf" => LineEnd::Lf,
                    "cr" => LineEnd::Cr,
                    "crlf" => LineEnd::CrLf,
                    _ => return None,
                };
            }
            "comments" if value.is_empty() => self.comments = true,
            "names" if value.is_empty() => self.names = true,
            "json" if value.is_empty() => self.json = true,
            "gzip" if value.is_empty() => self.gzip = true,
            "no-done" if value.is_empty() => self.done = false,
            "usage" => self.set_usage(value)?,
            "cost" => {
                let (prompt, completion) = value.split_once('/')?;
                self.usage = UsageValue::Tokens(prompt.parse().ok()?, completion.parse().ok()?);
            }
            "status" => self.status = Some(value.parse().ok().filter(|code| (400..600).contains(code))?),
            fault => self.fault = Some((number(value, 0, EVENTS_MAX)?, fault_of(fault)?)),
        }
        Some(())
    }

    fn set_usage(&mut self, value: &str) -> Option<()> {
        match value {
            "none" => self.usage = UsageValue::None,
            "absurd" => self.usage = UsageValue::Absurd,
            "last" => self.place = UsagePlacement::Last,
            "first" => self.place = UsagePlacement::First,
            "each" => self.place = UsagePlacement::Each,
            "twice" => self.place = UsagePlacement::Twice,
            "after-done" => self.place = UsagePlacement::AfterDone,
            _ => return None,
        }
        Some(())
    }
}

/// Returns the options, one by one.
fn each(options: &str) -> impl Iterator<Item = &str> {
    options
        .split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty())
}

fn fault_of(name: &str) -> Option<StreamFault> {
    Some(match name {
        "cut" => StreamFault::Cut,
        "end" => StreamFault::End,
        "stall" => StreamFault::Stall,
        "error" => StreamFault::Error,
        "failed" => StreamFault::Failed,
        _ => return None,
    })
}

fn wait(value: &str) -> Option<Duration> {
    Some(Duration::from_millis(value.parse().ok()?).min(DELAY_MAX))
}

fn number(value: &str, least: u64, most: u64) -> Option<u64> {
    value
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
}

fn size(value: &str, least: usize, most: usize) -> Option<usize> {
    value.parse().ok().filter(|size| (least..=most).contains(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_bounded() {
        let plan =
            StreamPlan::parse("events=3, delay=7,piece=1,eol=crlf,comments,usage=twice,cut=2,cost=5/6")
                .unwrap();
        assert_eq!((plan.events, plan.delay), (Some(3), Duration::from_millis(7)));
        assert_eq!(
            (plan.piece, plan.line_end, plan.comments),
            (Some(1), LineEnd::CrLf, true)
        );
        assert_eq!(
            (plan.place, plan.fault),
            (UsagePlacement::Twice, Some((2, StreamFault::Cut)))
        );
        assert!(matches!(plan.usage, UsageValue::Tokens(5, 6)));
        assert!(StreamPlan::parse("").is_some());
        assert_eq!(StreamPlan::parse("delay=99999999999").unwrap().delay, DELAY_MAX);
        for (name, most) in [("events", EVENTS_MAX), ("batch", BATCH_MAX), ("cut", EVENTS_MAX)] {
            assert!(StreamPlan::parse(&format!("{name}={most}")).is_some(), "{name}");
            assert!(
                StreamPlan::parse(&format!("{name}={}", most + 1)).is_none(),
                "{name}"
            );
        }
        for name in ["bytes", "piece"] {
            assert!(
                StreamPlan::parse(&format!("{name}={TEXT_BYTES_MAX}")).is_some(),
                "{name}"
            );
            assert!(
                StreamPlan::parse(&format!("{name}={}", TEXT_BYTES_MAX + 1)).is_none(),
                "{name}"
            );
        }
        assert!(StreamPlan::parse(&format!("events=2,bytes={}", TEXT_BYTES_MAX / 2)).is_some());
        assert!(StreamPlan::parse(&format!("events=2,bytes={}", TEXT_BYTES_MAX / 2 + 1)).is_none());
        for bad in [
            "events",
            "events=x",
            "x=1",
            "x",
            "eol=nl",
            "usage=",
            "usage=never",
            "status=200",
            "status=600",
            "cost=1",
            "comments=1",
            "bytes=0",
            "piece=0",
            "batch=0",
            "cut",
            "EVENTS=1",
        ] {
            assert!(StreamPlan::parse(bad).is_none(), "{bad}");
        }
    }
}
