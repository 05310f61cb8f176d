//! Entries of proxied calls: `A …` for an approved call after its end, `D …` for a denied one.

use super::{EndedBy, Entry, RecordedCheck};
use crate::decision::{self, denial_id};
use crate::denial::Denial;
use crate::measured::Measured;
use crate::money::Nanos;
use serde_json::{Map, Value};

crate::words! {
    /// Outcome of an approved call, which determines its charge.
    pub enum HoldOutcome {
        /// The provider reported its usage: the real cost is charged.
        Settled = "settled",
        /// The provider refused the call, or an operator released it. Nothing is charged.
        Released = "released",
        /// The real cost is unknown: the estimate stays charged.
        Estimated = "estimated",
        /// Not settled by its deadline: the estimate stays charged.
        Kept = "kept",
        /// It was kept first, and corrected later.
        Corrected = "corrected",
        /// The approval's answer was lost, so the charge was given back.
        Voided = "voided",
        /// Cap approved the call, but Tollgate could not send it, for example because the provider key cannot be
        /// decrypted. Nothing is charged, and the caller was denied with `service_unavailable` under the `deny_…` id of
        /// this entry.
        Unsent = "unsent",
    }
}

impl HoldOutcome {
    /// Returns whether the charge is the real cost.
    const fn is_actual(self) -> bool {
        !matches!(self, Self::Estimated | Self::Kept)
    }
}

/// Placeholder in a line for a missing run or price version.
pub const NONE: &str = "-";
/// Represents a run named `-` in a line. Run ids cannot contain this character.
const RUN_CALLED_NONE: &str = "%";

/// Returns the form of a run in a line. `run` is empty for a request without one.
pub fn run_word(run: &str) -> &str {
    match run {
        "" => NONE,
        NONE => RUN_CALLED_NONE,
        run => run,
    }
}

/// Returns the run for its form in a line, the inverse of [`run_word`]; `None` for a request without one.
pub fn run_of_word(word: &str) -> Option<&str> {
    match word {
        NONE => None,
        RUN_CALLED_NONE => Some(NONE),
        word => Some(word),
    }
}

/// The call's part of a decision's line.
struct Memo<'a> {
    agent: &'a str,
    run: Option<&'a str>,
    key_id: &'a str,
    price_version: Option<&'a str>,
    model: &'a str,
}

impl<'a> Memo<'a> {
    /// Parses `<account> <agent> <run> <key_id> <price_version> <model>`.
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.splitn(6, ' ');
        let _account = words.next()?;
        Some(Self {
            agent: words.next()?,
            run: run_of_word(words.next()?),
            key_id: words.next()?,
            price_version: Some(words.next()?).filter(|version| *version != NONE),
            model: words.next()?,
        })
    }
}

/// The first line version that may contain measurements.
const MEASURED_SINCE: u64 = 2;
/// The first version whose lines may say who ended the hold.
const ENDED_BY_SINCE: u64 = 3;
/// The first version whose measurements may have details of the charge.
const BILLING_SINCE: u64 = 4;

/// Parses the text after number, time and version.
pub(super) fn read(seq: u64, at_ms: u64, version: u64, rest: &str) -> Option<Entry> {
    let (letter, rest) = rest.split_once(' ')?;
    match letter {
        "A" => ended(seq, at_ms, version, rest),
        "D" => denied(seq, at_ms, rest),
        _ => None,
    }
}

/// `<how> <cost> <allow id> [<ended by>] [<measured>] H <estimate> <day> <month> <named> <checks> <memo>`
fn ended(seq: u64, at_ms: u64, version: u64, rest: &str) -> Option<Entry> {
    let mut words = rest.splitn(4, ' ');
    let outcome = HoldOutcome::parse(words.next()?)?;
    let cost: u64 = words.next()?.parse().ok()?;
    let id = words.next()?;
    let (ended_by, rest) = ended_by(version >= ENDED_BY_SINCE, words.next()?);
    let (measured, hold) = measured(version, rest)?;
    let mut words = hold.splitn(7, ' ');
    if words.next()? != "H" {
        return None;
    }
    let estimate = words.next()?.parse().ok()?;
    let day: i64 = words.next()?.parse().ok()?;
    let month: i64 = words.next()?.parse().ok()?;
    let _named = words.next()?;
    let checks = RecordedCheck::parse(words.next()?)?;
    let memo = Memo::parse(words.next()?)?;
    let mut data = Map::new();
    let denied = (outcome == HoldOutcome::Unsent).then_some(Denial::ServiceUnavailable);
    data.insert("approved".to_owned(), denied.is_none().into());
    data.insert("reason".to_owned(), denied.map(Denial::reason).into());
    data.insert("outcome".to_owned(), outcome.as_str().into());
    describe(&mut data, &memo, Some(estimate));
    amount(&mut data, "charged", Some(cost));
    amount(&mut data, "actual", outcome.is_actual().then_some(cost));
    data.insert("day".to_owned(), day.into());
    data.insert("month".to_owned(), month.into());
    if let Some(measured) = measured {
        data.insert("call".to_owned(), measured.shown());
    }
    show(&mut data, &checks, None);
    if let Some(reason) = ended_by.as_ref().and_then(EndedBy::reason) {
        data.insert("operatorReason".to_owned(), reason.into());
    }
    let kind = match outcome {
        HoldOutcome::Voided => decision::VOIDED,
        HoldOutcome::Unsent => decision::DENIED,
        _ => decision::APPROVED,
    };
    let id = denied.map_or_else(|| id.to_owned(), |denial| denial_id(denial, id));
    let entry = entry(seq, at_ms, id, kind, &memo, data);
    Some(match ended_by {
        Some(by) => Entry {
            actor: by.actor().to_owned(),
            ..entry
        },
        None => entry,
    })
}

/// Parts who ended the hold, where the line says so, and the rest.
fn ended_by(may_be_there: bool, text: &str) -> (Option<EndedBy>, &str) {
    let parts = text.split_once(' ').filter(|_| may_be_there);
    let said = parts.and_then(|(word, rest)| Some((EndedBy::parse(word)?, rest)));
    said.map_or((None, text), |(by, rest)| (Some(by), rest))
}

/// Separates the measurements from the text of the hold.
fn measured(version: u64, text: &str) -> Option<(Option<Measured>, &str)> {
    let (word, hold) = text.split_once(' ')?;
    if word == "H" {
        return Some((None, text));
    }
    let measured = Measured::parse(word)?;
    let since = match measured.billing.is_ordinary() {
        true => MEASURED_SINCE,
        false => BILLING_SINCE,
    };
    (version >= since).then_some((Some(measured), hold))
}

/// Parses `<reason> <allow id> <estimate> <checks> <memo>`.
fn denied(seq: u64, at_ms: u64, rest: &str) -> Option<Entry> {
    let mut words = rest.splitn(5, ' ');
    let reason = Denial::from_reason(words.next()?)?;
    let id = words.next()?;
    let estimate = match words.next()? {
        NONE => None,
        digits => Some(digits.parse().ok()?),
    };
    let checks = RecordedCheck::parse(words.next()?)?;
    let memo = Memo::parse(words.next()?)?;
    let mut data = Map::new();
    data.insert("approved".to_owned(), false.into());
    data.insert("reason".to_owned(), reason.reason().into());
    data.insert("outcome".to_owned(), "denied".into());
    describe(&mut data, &memo, estimate);
    amount(&mut data, "charged", Some(0));
    amount(&mut data, "actual", None);
    show(&mut data, &checks, Some(reason));
    let id = denial_id(reason, id);
    Some(entry(seq, at_ms, id, decision::DENIED, &memo, data))
}

fn describe(data: &mut Map<String, Value>, memo: &Memo<'_>, estimate: Option<u64>) {
    let model = (!memo.model.is_empty()).then_some(memo.model);
    for (name, value) in [
        ("keyId", Some(memo.key_id)),
        ("model", model),
        ("runId", memo.run),
        ("priceVersion", memo.price_version),
    ] {
        data.insert(name.to_owned(), value.into());
    }
    amount(data, "estimate", estimate);
}

/// Adds `<name>Usd` and the exact `<name>Nanos`.
fn amount(data: &mut Map<String, Value>, name: &str, nanos: Option<u64>) {
    let usd = nanos.map(|nanos| Nanos::from_stored(nanos).as_double());
    data.insert(format!("{name}Usd"), usd.into());
    data.insert(
        format!("{name}Nanos"),
        nanos.map(|nanos| nanos.to_string()).into(),
    );
}

fn show(data: &mut Map<String, Value>, checks: &[RecordedCheck], denied: Option<Denial>) {
    let made = checks.iter().filter(|check| check.was_made(denied));
    let checks: Vec<Value> = made.map(|check| check.shown(denied)).collect();
    data.insert("checks".to_owned(), checks.into());
}

fn entry(seq: u64, at_ms: u64, id: String, kind: &str, memo: &Memo<'_>, data: Map<String, Value>) -> Entry {
    Entry {
        seq,
        id,
        at_ms,
        kind: kind.to_owned(),
        agent: Some(memo.agent.to_owned()),
        actor: memo.key_id.to_owned(),
        data,
    }
}
