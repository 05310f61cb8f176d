//! Formats a log event as one line of JSON directly into the line's buffer, with the same fields in the same order as
//! `tracing-subscriber`'s formatter but without its serializer. Each call writes one line, so this is part of the cost
//! of a call.
//!
//! Events of libraries, and events inside spans, use the formatter of `tracing-subscriber`.

use super::filter::OWN_CRATES;
use domain::timestamp::IsoMicros;
use json_stops::first_stop;
use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

/// Initial capacity: a decision's line.
const LINE: usize = 1024;

/// Formats events as lines of JSON.
#[derive(Debug)]
pub(super) struct JsonLine {
    any: Format<Json>,
}

impl JsonLine {
    /// Creates the formatter.
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
        let is_own = OWN_CRATES.contains(&crate_of(about.target()));
        if !is_own || context.event_scope().is_some() {
            return self.any.format_event(context, line, event);
        }
        // A local string: `line` is a pointer to a writer, with a virtual call for each of about sixty pieces.
        let mut text = String::with_capacity(LINE);
        text.push_str(r#"{"timestamp":""#);
        text.push_str(IsoMicros::from_micros(clock::now_nanos() / 1_000).as_str());
        text.push_str(r#"","level":""#);
        text.push_str(about.level().as_str());
        text.push('"');
        let mut fields = FieldWriter {
            line: &mut text,
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        text.push_str(r#","target":""#);
        escape(&mut text, about.target());
        text.push_str("\"}\n");
        line.write_str(&text)
    }
}

/// Returns the crate of a target: the part before the first colon.
fn crate_of(target: &str) -> &str {
    let end = target.bytes().position(|byte| byte == b':');
    &target[..end.unwrap_or(target.len())]
}

/// Writes an event's fields, each after a comma.
struct FieldWriter<'a> {
    line: &'a mut String,
    written: fmt::Result,
}

impl FieldWriter<'_> {
    /// Names of our own fields need no escapes.
    fn name(&mut self, field: &Field) {
        debug_assert_eq!(first_stop(field.name().as_bytes()), None, "{}", field.name());
        self.line.push_str(",\"");
        self.line.push_str(field.name());
        self.line.push_str("\":");
    }

    /// Writes a value that needs no escapes.
    fn bare(&mut self, field: &Field, value: &str) {
        self.name(field);
        self.line.push_str(value);
    }
}

impl Visit for FieldWriter<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        self.line.push('"');
        escape(self.line, value);
        self.line.push('"');
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        self.line.push('"');
        let written = write!(Escaped(self.line), "{value:?}");
        self.written = self.written.and(written);
        self.line.push('"');
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.bare(field, itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.bare(field, itoa::Buffer::new().format(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.bare(field, if value { "true" } else { "false" });
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let value = value.is_finite().then(|| format!("{value:?}"));
        self.bare(field, value.as_deref().unwrap_or("null"));
    }
}

/// Escapes the output of a `Display` implementation.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text);
        Ok(())
    }
}

/// Appends `text` as the content of a JSON string.
fn escape(line: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = first_stop(rest.as_bytes()) {
        line.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => line.push_str("\\\""),
            b'\\' => line.push_str("\\\\"),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x08 => line.push_str("\\b"),
            0x0c => line.push_str("\\f"),
            control => line.push_str(&format!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    line.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use proptest::prelude::*;
    use std::io;
    use std::sync::Arc;
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
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
        /// Returns the written line without its timestamp.
        fn timeless(&self) -> String {
            let text = String::from_utf8(self.0.lock().clone()).unwrap();
            let (before, rest) = text.split_once(r#""timestamp":""#).unwrap();
            let (at, rest) = rest.split_at("2026-11-20T22:36:43.120001Z".len());
            assert!(domain::timestamp::ms_from_iso(at).is_some(), "{at}");
            format!("{before}\"at\":\"{rest}")
        }
    }

    /// Returns the same event as written by this formatter and by that of `tracing-subscriber`.
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
