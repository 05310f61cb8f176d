//! The fields of a JSON body. Each is parsed as its expected type, so that every error names its field.
//!
//! A field is unknown, duplicate, absent, `null` or a value. Amounts are parsed from their own text and never pass
//! through floating point (decision D4).

use super::wallet_name::WalletName;
use super::whole_number::whole_number;
use crate::problem::Problem;
use domain::amount::{self, AmountError};
use domain::money::Nanos;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// The fields of a body that can contain an idempotency key, in order of precedence.
pub const IDEMPOTENCY_FIELDS: [&str; 2] = ["intent_id", "idempotency_key"];

/// A field of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue<T> {
    /// The body does not have the field.
    Absent,
    /// `null`.
    Null,
    /// Any other value.
    Value(T),
}

impl<T> FieldValue<T> {
    /// Returns the value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Returns the value of the field `name`, which must have one.
    ///
    /// # Errors
    /// 400 if it is absent or `null`.
    pub fn required(self, name: &str) -> Result<T, Problem> {
        self.value().ok_or_else(|| missing(name))
    }

    /// Returns the value of the field `name`, if it is present.
    ///
    /// # Errors
    /// 400 if it is `null`.
    pub fn not_null(self, name: &str) -> Result<Option<T>, Problem> {
        match self {
            Self::Value(value) => Ok(Some(value)),
            Self::Null => Err(Problem::validation(format!("{name} must not be null."))),
            Self::Absent => Ok(None),
        }
    }

    /// Returns `None` if the field is absent, and `Some(None)` if it is `null`.
    pub fn nullable(self) -> Option<Option<T>> {
        match self {
            Self::Value(value) => Some(Some(value)),
            Self::Null => Some(None),
            Self::Absent => None,
        }
    }

    /// Parses the value, if there is one.
    ///
    /// # Errors
    /// Those of `parse`.
    fn try_map<U>(self, parse: impl FnOnce(T) -> Result<U, Problem>) -> Result<FieldValue<U>, Problem> {
        match self {
            Self::Value(value) => parse(value).map(FieldValue::Value),
            Self::Null => Ok(FieldValue::Null),
            Self::Absent => Ok(FieldValue::Absent),
        }
    }
}

/// Maximum number of fields of a body; more than any operation has.
const FIELDS_MAX: usize = 100;

/// The form of a text field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// One line of visible text: no line breaks, no control characters, none that change the direction of text.
    Line,
    /// Several lines, possibly none, without characters that turn the direction of text.
    Lines,
}

/// The fields of an object, in the order sent, without duplicates; and the body that contains them.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(String, &'a RawValue)>, &'a [u8]);

impl<'a> Fields<'a> {
    /// Parses an object.
    ///
    /// # Errors
    /// 400 if it is not an object, or names a duplicate field.
    pub fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let fields = reader.deserialize_map(Collect).and_then(|fields| {
            reader.end()?;
            Ok(fields)
        });
        let fields = fields
            .map_err(|error| Problem::validation(format!("The body must be a JSON object: {error}.")))?;
        for (at, (name, _)) in fields.iter().enumerate() {
            if fields[..at].iter().any(|(other, _)| other == name) {
                return Err(Problem::validation(format!("{} is given twice.", quoted(name))));
            }
        }
        Ok(Self(fields, body))
    }

    /// Refuses fields that are not among `known`.
    ///
    /// # Errors
    /// 400 with the first unknown field.
    pub fn only(self, known: &[&str]) -> Result<Self, Problem> {
        self.require_only(known)?;
        Ok(self)
    }

    /// Like [`Fields::only`], by reference.
    ///
    /// # Errors
    /// 400 with the first unknown field.
    pub fn require_only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let known = match known {
                    [] => "the body has none".to_owned(),
                    _ => format!("known: {}", known.join(", ")),
                };
                let message = format!("{} is not a field here; {known}.", quoted(name));
                Err(Problem::validation(message))
            }
        }
    }

    /// Like [`Fields::require_only`], for a body that may also have an idempotency key.
    ///
    /// # Errors
    /// 400 with the first unknown field.
    pub fn require_only_with_key(&self, known: &[&str]) -> Result<(), Problem> {
        self.require_only(&[known, &IDEMPOTENCY_FIELDS].concat())
    }

    fn get(&self, name: &str) -> FieldValue<&'a str> {
        match self.0.iter().find(|(other, _)| other == name) {
            None => FieldValue::Absent,
            Some((_, value)) if value.get() == "null" => FieldValue::Null,
            Some((_, value)) => FieldValue::Value(value.get()),
        }
    }

    /// Returns any string, as it was sent: the caller of this function must validate it.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn string(&self, name: &str) -> Result<FieldValue<String>, Problem> {
        self.get(name).try_map(|json| {
            serde_json::from_str(json).map_err(|_| {
                let of_unicode = if json.starts_with('"') {
                    " of valid Unicode"
                } else {
                    ""
                };
                Problem::validation(format!("{name} must be a string{of_unicode}."))
            })
        })
    }

    /// Parses a limit in USD, which may be 0.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn limit(&self, name: &str) -> Result<FieldValue<Nanos>, Problem> {
        self.get(name)
            .try_map(|json| amount::parse_limit(json).map_err(|error| bad_amount(name, json, error)))
    }

    /// Parses a positive amount to be moved (decision D4).
    ///
    /// # Errors
    /// 400 with the field, also if it is missing.
    pub fn amount(&self, name: &str) -> Result<Nanos, Problem> {
        let json = self.get(name).required(name)?;
        amount::parse_amount(json).map_err(|error| bad_amount(name, json, error))
    }

    /// Parses the currency: `USD` by default, or `USDC` (decision D4).
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn currency(&self) -> Result<&'static str, Problem> {
        let [default, other] = CURRENCIES;
        match self.string("currency")?.value() {
            None => Ok(default),
            Some(text) if text == default => Ok(default),
            Some(text) if text == other => Ok(other),
            Some(_) => Err(Problem::validation("currency must be USD or USDC.")),
        }
    }

    /// Parses the name of a wallet (decision D61).
    ///
    /// # Errors
    /// 400 with the field, also if it is missing.
    pub fn wallet(&self, name: &str) -> Result<WalletName, Problem> {
        let json = self.get(name).required(name)?;
        WalletName::parse(json).ok_or_else(|| {
            let must = "must name a wallet: its number, its id `wal_…`, an agent's id, or `user`";
            Problem::validation(format!("{name} {must}."))
        })
    }

    /// Parses a JSON object of at most `OBJECT_MAX` bytes, as sent and as kept, and `OBJECT_DEPTH_MAX` levels.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn object(&self, name: &str) -> Result<FieldValue<Value>, Problem> {
        self.get(name).try_map(|json| {
            let bad = |what: String| Err(Problem::validation(format!("{name} {what}.")));
            if json.len() > OBJECT_MAX {
                return bad(format!("must have at most {OBJECT_MAX} bytes"));
            }
            match serde_json::from_str(json) {
                Ok(Value::Object(fields)) => {
                    let object = Value::Object(fields);
                    if depth(&object) > OBJECT_DEPTH_MAX {
                        return bad(format!("must be nested at most {OBJECT_DEPTH_MAX} deep"));
                    }
                    // A double such as 1e15 is kept with all of its digits, at more than four times its length.
                    if object.to_string().len() > OBJECT_MAX {
                        let numbers = "with numbers such as 1e15 written as 1000000000000000.0";
                        return bad(format!(
                            "must have at most {OBJECT_MAX} bytes as it is kept, {numbers}"
                        ));
                    }
                    Ok(object)
                }
                Ok(_) => bad("must be a JSON object".to_owned()),
                Err(error) => bad(format!("is not valid: {error}")),
            }
        })
    }

    /// Parses a positive integer, as a number or a string of digits.
    ///
    /// # Errors
    /// 400 with the field, also if it is missing.
    pub fn number(&self, name: &str) -> Result<u64, Problem> {
        let json = self.get(name).required(name)?;
        let quoted = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        let bad = || Problem::validation(format!("{name} must be a whole number above zero."));
        let number = whole_number(quoted.unwrap_or(json));
        number.filter(|number| *number > 0).ok_or_else(bad)
    }

    /// Parses `true` or `false`.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn flag(&self, name: &str) -> Result<FieldValue<bool>, Problem> {
        self.get(name).try_map(|json| match json {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Problem::validation(format!("{name} must be true or false."))),
        })
    }
}

/// The currencies, which have the same value in the ledger (decision D4); the first is the default.
pub const CURRENCIES: [&str; 2] = ["USD", "USDC"];
/// Longest free-form object of a body, as sent and as kept, in bytes.
pub const OBJECT_MAX: usize = 16 * 1024;
/// Maximum number of levels of objects and lists in it, including its own. Records and events nest it in other objects,
/// and JSON parsers, including ours, support some 127 levels.
pub(crate) const OBJECT_DEPTH_MAX: usize = 100;

/// Returns the number of levels of objects and lists in a value. The recursion is bounded, since the parser bounds the
/// levels.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Returns the error for a missing field.
pub fn missing(name: &str) -> Problem {
    Problem::validation(format!("{name} is required."))
}

/// Returns the error for an invalid amount. Programs that add floating-point numbers send unintended digits, such as
/// `0.11000000000000001`.
fn bad_amount(name: &str, json: &str, error: AmountError) -> Problem {
    let is_number = !json.starts_with('"');
    Problem::validation(match error {
        AmountError::TooFine if is_number => {
            format!(
                "{name} {error}: round it, or send the digits that are meant as a string such as \"0.11\"."
            )
        }
        _ => format!("{name} {error}."),
    })
}

/// Returns the name of a field or parameter that the caller sent, for an answer: quoted, escaped and cut.
pub(super) fn quoted(name: &str) -> String {
    const LONGEST: usize = 64;
    let cut: String = name.chars().take(LONGEST).collect();
    format!("{cut:?}")
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            if fields.len() == FIELDS_MAX {
                return Err(serde::de::Error::custom("it has too many fields"));
            }
            fields.push(field);
        }
        Ok(fields)
    }
}

mod rest;
mod strings;
#[cfg(test)]
mod tests;
