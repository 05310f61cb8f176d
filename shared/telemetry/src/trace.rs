//! Trace context of a request: the caller's, if it sent a W3C `traceparent`, otherwise a new one. The trace id is in
//! the request's log line. This module also decides whether spans are exported.

use super::span;
use data_encoding::HEXLOWER;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// Header of the trace context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Vendor header that accompanies `traceparent`.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Characters of a `traceparent` of version 00.
const LENGTH: usize = 55;
/// Flag of a caller that records the trace.
const SAMPLED: u8 = 1;

/// The id of a trace; prints as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub u128);

impl TraceId {
    /// Returns what `Display` writes, for a log line of each call: formatting costs as much as ten of its fields.
    pub fn hex(self) -> String {
        HEXLOWER.encode(&self.0.to_be_bytes())
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// A request's position in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Trace id, from `traceparent` or generated.
    pub id: TraceId,
    /// The caller's span; 0 if none was sent.
    pub parent: u64,
    /// The request's own span, if it is exported.
    pub exported: Option<u64>,
    /// True if it is exported only because its caller records the trace, which an unauthenticated caller can also
    /// claim.
    pub by_caller: bool,
}

impl Trace {
    /// Returns the trace of the headers, else a new one.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let sent = sent(headers);
        let (id, parent) = match sent {
            Some(sent) => (sent.id, sent.parent),
            // Without randomness calls are denied anyway.
            None => (entropy::id_bits().unwrap_or_default(), 0),
        };
        let exported = span::wanted(id, sent.map(|sent| sent.sampled)).then(new_span);
        Self {
            id: TraceId(id),
            parent,
            exported,
            by_caller: exported.is_some() && !span::wanted(id, None),
        }
    }

    /// Returns the trace context of an outgoing request with the span `span`.
    pub fn continued(&self, span: u64) -> Option<ContinuedTrace> {
        let traceparent = HeaderValue::try_from(format!("00-{}-{span:016x}-01", self.id)).ok()?;
        Some(ContinuedTrace {
            traceparent,
            is_new: self.parent == 0,
        })
    }
}

/// The trace context of an outgoing request.
#[derive(Debug)]
pub struct ContinuedTrace {
    /// Value of the header [`TRACEPARENT`].
    pub traceparent: HeaderValue,
    /// The caller sent no trace that can be parsed.
    is_new: bool,
}

impl ContinuedTrace {
    /// Returns whether the caller's header `name` is dropped: `traceparent` always, `tracestate` if the trace is new.
    pub fn replaces(&self, name: &HeaderName) -> bool {
        *name == TRACEPARENT || self.is_new && *name == TRACESTATE
    }
}

/// Returns a new span id, never 0.
pub fn new_span() -> u64 {
    let bits = entropy::id_bits().unwrap_or(1);
    u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(1).max(1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReceivedTraceparent {
    id: u128,
    parent: u64,
    sampled: bool,
}

/// Parses the only `traceparent`. Several, or a malformed one, count as none.
fn sent(headers: &HeaderMap) -> Option<ReceivedTraceparent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?;
    match values.next() {
        None => parse(value.as_bytes()),
        Some(_) => None,
    }
}

/// Parses `00-<32 hex>-<16 hex>-<2 hex>`; later versions may have further parts after another `-`.
fn parse(text: &[u8]) -> Option<ReceivedTraceparent> {
    let head = text.get(..LENGTH)?;
    let version = lower_hex(&head[..2])?;
    let goes_on = text.len() > LENGTH;
    let dashes = [2, 35, 52].iter().all(|at| head[*at] == b'-');
    let ends = !goes_on || version != 0 && text[LENGTH] == b'-';
    if version == 0xff || !dashes || !ends {
        return None;
    }
    let id = lower_hex(&head[3..35])?;
    let parent = u64::try_from(lower_hex(&head[36..52])?).ok()?;
    let flags = u8::try_from(lower_hex(&head[53..55])?).ok()?;
    (id != 0 && parent != 0).then_some(ReceivedTraceparent {
        id,
        parent,
        sampled: flags & SAMPLED != 0,
    })
}

/// Parses at most 32 lower-case hex digits.
fn lower_hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |sum, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_as_w3c_says() {
        let good = ReceivedTraceparent {
            id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            parent: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        };
        assert_eq!(parse(GOOD.as_bytes()), Some(good));
        let unsampled = GOOD.replace("-01", "-02");
        assert_eq!(parse(unsampled.as_bytes()).map(|sent| sent.sampled), Some(false));
        let later = GOOD.replacen("00-", "cc-", 1) + "-what-the-future-will-be-like";
        assert_eq!(parse(later.as_bytes()), Some(good));
        for bad in [
            String::new(),
            GOOD.replacen("00-", "ff-", 1),
            GOOD.to_uppercase(),
            format!("{GOOD}-x"),
            GOOD.replacen("00-", "cc-", 1) + "x",
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GOOD.replace("-00f", "_00f"),
            GOOD[..54].to_owned(),
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_request_without_one_begins_a_trace() {
        let mut headers = HeaderMap::new();
        let made = Trace::from_headers(&headers);
        assert!(made.parent == 0 && made.id.0 != 0 && made != Trace::from_headers(&headers));
        assert_eq!(made.exported, None, "nothing is exported unless it is configured");
        headers.append(TRACEPARENT, GOOD.parse().unwrap());
        let sent = Trace::from_headers(&headers);
        assert_eq!(sent.id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(
            sent.continued(0xabc).unwrap().traceparent,
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000abc-01"
        );
        headers.append(TRACEPARENT, GOOD.parse().unwrap());
        assert_ne!(Trace::from_headers(&headers).id, sent.id, "two are none");
    }
}
