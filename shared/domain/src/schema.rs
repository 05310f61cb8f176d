//! The schemas of the domain's own values that have a form of their own in answers: money, moments, hashes.

use serde_json::{Value, json};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{KnownFormat, SchemaFormat};

#[doc(hidden)]
pub use utoipa::openapi::RefOr;
#[doc(hidden)]
pub use utoipa::openapi::schema::{ObjectBuilder, Schema};
#[doc(hidden)]
pub use utoipa::{PartialSchema, ToSchema};

/// The moment of examples.
pub const EXAMPLE_TIME: &str = "2026-11-21T08:15:30.123Z";
/// Hexadecimal digits of examples.
pub const EXAMPLE_HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// Declares names of schemas. Each is a type without values, and its documentation is the description of the schema.
#[macro_export]
macro_rules! schema_types {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {
        $($(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}

        impl $crate::schema::PartialSchema for $name {
            fn schema() -> $crate::schema::RefOr<$crate::schema::Schema> {
                let schema: $crate::schema::ObjectBuilder = $schema;
                schema.description(Some(concat!($($doc),+).trim())).into()
            }
        }

        impl $crate::schema::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(stringify!($name))
            }
        })+
    };
}

schema_types! {
    /// An amount in USD: an exact decimal number with at most nine fraction digits. Read it as a decimal, not as a
    /// float, where every digit counts.
    Usd = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).examples([json!(12.5)]);
    /// The same amount as a whole number of nano-USD (10⁻⁹ USD), as text, so that no reader loses digits.
    NanoUsd = text().pattern(Some("^[0-9]{1,20}$")).examples(["12500000000"]);
    /// A moment: ISO 8601, UTC, with milliseconds.
    Time = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).examples([EXAMPLE_TIME]);
    /// A SHA-256 in hexadecimal digits.
    Sha256 = text().pattern(Some("^[0-9a-f]{64}$")).examples([EXAMPLE_HEX]);
    /// The hash of the entry before it, or `genesis` for the first entry.
    PreviousHash = text().pattern(Some("^([0-9a-f]{64}|genesis)$")).examples(["genesis"]);
}

/// Returns a schema of texts.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Builds a schema of these words.
pub fn words(words: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    text().enum_values(Some(words.into_iter().map(Value::from)))
}
