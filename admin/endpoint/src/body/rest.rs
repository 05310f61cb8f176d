//! Bodies that contain another request: checks for its fields, and the body without our own.

use super::{FieldValue, Fields};
use serde_json::Value;

impl Fields<'_> {
    /// Returns whether the field is present, even if it is `null`.
    pub fn contains(&self, name: &str) -> bool {
        !matches!(self.get(name), FieldValue::Absent)
    }

    /// Returns whether the field has a value.
    pub fn has_value(&self, name: &str) -> bool {
        matches!(self.get(name), FieldValue::Value(_))
    }

    /// Returns the object as it was sent, without the fields `names` and with the members `more` at the end. Each value
    /// keeps its byte position in the body, so that errors refer to the caller's bytes.
    pub fn without(&self, names: &[&str], more: &str) -> String {
        let mut text = String::with_capacity(self.1.len() + more.len() + 2);
        text.push('{');
        let rest = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        for (name, value) in rest {
            if text.len() > 1 {
                text.push(',');
            }
            // The sent name has at least as many bytes as this form; more if it is escaped unnecessarily.
            let name = Value::from(name.as_str()).to_string();
            let at = value.get().as_ptr().addr().saturating_sub(self.1.as_ptr().addr());
            let written = text.len() + name.len() + 1;
            text.extend(std::iter::repeat_n(' ', at.saturating_sub(written)));
            text += &name;
            text.push(':');
            text += value.get();
        }
        if text.len() > 1 && !more.is_empty() {
            text.push(',');
        }
        text + more + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_was_sent() {
        let body = br#"{"agent":"bot", "model" :"m","n": 1e0 ,"x\"y":[ null ],"runId":null}"#;
        let fields = Fields::parse(body).unwrap();
        assert!(fields.has_value("n") && !fields.has_value("runId"));
        assert!(fields.contains("runId") && !fields.contains("stream"));
        let rest = fields.without(&["agent", "runId"], r#""messages":[]"#);
        assert_eq!(
            rest.replace(' ', ""),
            r#"{"model":"m","n":1e0,"x\"y":[null],"messages":[]}"#
        );
        let body = std::str::from_utf8(body).unwrap();
        for value in [r#""m""#, "1e0", "[ null ]"] {
            assert_eq!(rest.find(value), body.find(value), "{value}");
        }
        assert_eq!(fields.without(&[], "").len(), body.len());
        assert_eq!(Fields::default().without(&[], ""), "{}");
    }
}
