//! Reads the fields of a record.

use domain::money::Nanos;
use std::collections::HashMap;
use std::str::FromStr;

/// The fields of a record. Every method returns `None` for a malformed field.
#[derive(Clone, Copy)]
pub(crate) struct RecordFields<'a>(pub &'a HashMap<String, String>);

impl<'a> RecordFields<'a> {
    /// Returns a field; `None` if the record does not have it.
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a copy of a field; `None` if the record does not have it.
    pub fn text(self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Parses a field that every such record has.
    pub fn number<T: FromStr>(self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// Parses an amount that every such record has.
    pub fn nanos(self, name: &str) -> Option<Nanos> {
        self.number(name).map(Nanos::from_stored)
    }

    /// Parses a field that a record may lack.
    pub fn optional<T: FromStr>(self, name: &str) -> Option<Option<T>> {
        self.get(name).map(str::parse).transpose().ok()
    }

    /// Parses a limit that a record may lack. One above [`Nanos::MAX`] is malformed.
    pub fn optional_limit(self, name: &str) -> Option<Option<Nanos>> {
        match self.optional(name)? {
            None => Some(None),
            Some(nanos) => Nanos::new(nanos).map(Some),
        }
    }
}
