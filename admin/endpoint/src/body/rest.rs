//! Bodies that hold another request: the presence of its fields, and the body without our own.

use super::{Fields, Given};
use serde_json::Value;

impl Fields<'_> {
    /// Whether the field is there, `null` or not.
    pub fn contains(&self, name: &str) -> bool {
        !matches!(self.get(name), Given::Absent)
    }

    /// Whether the field has a value.
    pub fn has_value(&self, name: &str) -> bool {
        matches!(self.get(name), Given::Value(_))
    }

    /// The object as it was sent, without the fields `names` and with `more` members behind it.
    pub fn without(&self, names: &[&str], more: &str) -> String {
        let rest = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let members = rest.map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()));
        let mut members: Vec<String> = members.collect();
        members.extend((!more.is_empty()).then(|| more.to_owned()));
        format!("{{{}}}", members.join(","))
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
        assert_eq!(
            fields.without(&["agent", "runId"], r#""messages":[]"#),
            r#"{"model":"m","n":1e0,"x\"y":[ null ],"messages":[]}"#
        );
        assert_eq!(Fields::default().without(&[], ""), "{}");
    }
}
