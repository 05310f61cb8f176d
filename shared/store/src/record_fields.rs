//! The fields of a record, as `HGETALL` returns them, and how they are read.

use domain::money::Nanos;
use std::collections::HashMap;
use std::str::FromStr;

/// The values of a record, by the names of their fields.
pub type FieldValues = HashMap<String, String>;

/// Reads the fields of a record. Every method returns `None` for a malformed field.
#[derive(Debug, Clone, Copy)]
pub struct RecordFields<'a>(pub &'a FieldValues);

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

    /// Returns the length of a field in bytes; 0 if the record does not have it.
    pub fn length(self, name: &str) -> u64 {
        self.get(name).map_or(0, |text| text.len() as u64)
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
