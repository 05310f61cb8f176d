//! A log event as one line of JSON, written straight into the line's buffer: the same fields in the same order as the
//! formatter of `tracing-subscriber`, without its serializer. A line for each decision is a part of what a call costs.
//!
//! Events of libraries, and those inside of spans, go through that formatter: it knows more than they need here.

use super::OWN_CRATES;
use crate::clock;
use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

/// Formats events as lines of JSON.
#[derive(Debug)]
pub(super) struct JsonLine {
    any: Format<Json>,
}

impl JsonLine {
    /// The formatter.
    pub(super) fn new() -> Self {
        let any = tracing_subscriber::fmt::format().json().flatten_event(true);
        Self { any }
    }
}

impl<S> FormatEvent<S, JsonFields> for JsonLine
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        let origin = about.target().split("::").next().unwrap_or_default();
        if !OWN_CRATES.contains(&origin) || context.event_scope().is_some() {
            return self.any.format_event(context, line, event);
        }
        line.write_str(r#"{"timestamp":""#)?;
        line.write_str(clock::iso_micros_now().as_str())?;
        line.write_str(r#"","level":""#)?;
        line.write_str(about.level().as_str())?;
        line.write_str("\"")?;
        let mut fields = Fields {
            line: &mut line,
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        line.write_str(r#","target":""#)?;
        Escaped(&mut line).write_str(about.target())?;
        line.write_str("\"}\n")
    }
}

/// Writes an event's fields, each behind a comma.
struct Fields<'a, 'line> {
    line: &'a mut Writer<'line>,
    written: fmt::Result,
}

impl Fields<'_, '_> {
    fn field(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let line = &mut *self.line;
        self.written = self.written.and_then(|()| {
            line.write_str(",\"")?;
            Escaped(line).write_str(field.name())?;
            line.write_str("\":")?;
            value(line)
        });
    }

    fn text(&mut self, field: &Field, value: impl FnOnce(&mut Escaped<'_, '_>) -> fmt::Result) {
        self.field(field, |line| {
            line.write_str("\"")?;
            value(&mut Escaped(line))?;
            line.write_str("\"")
        });
    }
}

impl Visit for Fields<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, |text| text.write_str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, |text| write!(text, "{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, |line| line.write_str(itoa::Buffer::new().format(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, |line| line.write_str(itoa::Buffer::new().format(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, |line| write!(line, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, |line| match value.is_finite() {
            true => write!(line, "{value:?}"),
            false => line.write_str("null"),
        });
    }
}

/// The inside of a JSON string.
struct Escaped<'a, 'line>(&'a mut Writer<'line>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most texts hold nothing to escape. All bytes are looked at without a stop, which takes many at a time.
        if !text.bytes().fold(false, |found, byte| found | is_escaped(byte)) {
            return self.0.write_str(text);
        }
        let mut rest = text;
        while let Some(at) = rest.bytes().position(is_escaped) {
            self.0.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => self.0.write_str("\\\"")?,
                b'\\' => self.0.write_str("\\\\")?,
                b'\n' => self.0.write_str("\\n")?,
                b'\r' => self.0.write_str("\\r")?,
                b'\t' => self.0.write_str("\\t")?,
                0x08 => self.0.write_str("\\b")?,
                0x0c => self.0.write_str("\\f")?,
                control => write!(self.0, "\\u{control:04x}")?,
            }
            rest = &rest[at + 1..];
        }
        self.0.write_str(rest)
    }
}

const fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Lines {
        /// What was written, without the moment at which it was.
        fn timeless(&self) -> String {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            let (before, rest) = text.split_once(r#""timestamp":""#).unwrap();
            let (at, rest) = rest.split_at("2026-11-20T22:36:43.120001Z".len());
            assert!(clock::ms_from_iso(at).is_some(), "{at}");
            format!("{before}\"at\":\"{rest}")
        }
    }

    /// The same event, written by ours and by theirs.
    fn both(event: impl Fn()) -> (String, String) {
        let (ours, theirs) = (Lines::default(), Lines::default());
        let json = || tracing_subscriber::fmt().json().flatten_event(true);
        let one = json()
            .event_format(JsonLine::new())
            .with_writer(ours.clone())
            .finish();
        tracing::subscriber::with_default(one, &event);
        let other = json().with_writer(theirs.clone()).finish();
        tracing::subscriber::with_default(other, &event);
        (ours.timeless(), theirs.timeless())
    }

    #[test]
    fn every_kind_of_field_is_written_as_the_library_writes_it() {
        let broken = "7x".parse::<u64>().unwrap_err();
        let (ours, theirs) = both(|| {
            tracing::warn!(
                decision = "approved",
                run.id = %"r\"1",
                list = ?["a\n", "b"],
                error = &broken as &dyn std::error::Error,
                up = 1_u64,
                down = -1_i64,
                small = 1.5_f64,
                none = f64::NAN,
                yes = true,
                nothing = tracing::field::Empty,
                "said {}",
                1
            );
        });
        assert_eq!(ours, theirs);
        let value: serde_json::Value = serde_json::from_str(&ours).unwrap();
        assert_eq!(value["run.id"], "r\"1");
        assert_eq!(value["message"], "said 1");
    }

    #[test]
    fn events_of_others_and_inside_spans_look_as_before() {
        let (ours, theirs) = both(|| tracing::info!(target: "library", text = "x", "said"));
        assert_eq!(ours, theirs);
        let (ours, theirs) = both(|| {
            let _inside = tracing::info_span!("call", id = 7).entered();
            tracing::info!("said");
        });
        assert_eq!(ours, theirs);
        assert!(ours.contains(r#""span":{"id":7,"name":"call"}"#), "{ours}");
    }

    proptest! {
        #[test]
        fn any_text_is_escaped_as_the_library_escapes_it(text in any::<String>(), odd in "[\\x00-\\x20\"\\\\é/\\x7f]*") {
            let (ours, theirs) = both(|| tracing::info!(text, odd = ?odd, shown = %odd, "{text}{odd}"));
            prop_assert_eq!(ours, theirs);
        }
    }
}
