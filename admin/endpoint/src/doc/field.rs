//! Schemas of the fields of bodies (parsed by [`crate::Fields`]) and of query and path parameters.

use crate::{CURRENCIES, CURSOR_MAX, FIELD_OBJECT_MAX, OFFSET_MAX, PAGE_DEFAULT, PAGE_MAX};
use domain::names::{AGENT_ID_MAX, ID_PATTERN, NAME_PATTERN, RUN_ID_MAX};
use domain::number;
use domain::printable::HIDDEN;
use openapi::components::NOT_IN_EXAMPLES;
use openapi::components::{or_null, reference};
use openapi::{Json, object};
use store::idempotency::KEY_MAX;
use store::keys::USER;

/// Characters that no line may contain, as part of a character class.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069";
/// An amount as text: a number in JSON's grammar, since programs write small decimals like `1E-7`.
const DECIMAL: &str = r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$";
/// The largest amount, in USD.
const USD_MAX: u64 = 9_000_000;

/// A field or parameter.
#[derive(Debug, Clone)]
pub struct Field {
    /// As in the JSON body, the query or the path.
    pub name: &'static str,
    /// JSON schema without the description.
    pub schema: Json,
    /// Description; empty if the name is sufficient.
    pub description: &'static str,
    /// True if a body without it is refused.
    pub is_required: bool,
}

impl Field {
    /// Creates a required field.
    pub fn required(name: &'static str, schema: Json, description: &'static str) -> Self {
        Self {
            name,
            schema,
            description,
            is_required: true,
        }
    }

    /// Creates an optional field, which must not be `null`.
    pub fn optional(name: &'static str, schema: Json, description: &'static str) -> Self {
        Self {
            name,
            schema,
            description,
            is_required: false,
        }
    }

    /// Creates an optional field, which may be `null`.
    pub fn optional_or_null(name: &'static str, schema: Json, description: &'static str) -> Self {
        Self::optional(name, or_null(schema), description)
    }

    /// Omits the field from examples.
    pub(crate) fn not_in_examples(mut self) -> Self {
        self.schema.set(NOT_IN_EXAMPLES, true);
        self
    }

    /// Returns the schema with the description.
    pub fn described(&self) -> Json {
        match self.description {
            "" => self.schema.clone(),
            description => self.schema.clone().with("description", description),
        }
    }
}

fn kind(kind: &str) -> Json {
    object([("type", kind.into())])
}

/// Returns the schema of one line of visible text.
pub fn line(longest: usize) -> Json {
    kind("string")
        .with("minLength", 1_u64)
        .with("maxLength", longest)
        .with(
            "pattern",
            format!(r"^[^{CONTROL}]*[^\s{CONTROL}{}][^{CONTROL}]*$", hidden()),
        )
}

/// Returns the schema of one line in which every character except inner spaces is visible.
pub fn plain_line(longest: usize) -> Json {
    let seen = format!(r"[^\s{CONTROL}{}]", hidden());
    kind("string")
        .with("minLength", 1_u64)
        .with("maxLength", longest)
        .with("pattern", format!("^{seen}+( +{seen}+)*$"))
}

/// Returns the invisible characters with four-digit code points, as part of a character class: regular expressions have
/// no common syntax for longer ones.
fn hidden() -> String {
    let short = HIDDEN.iter().filter(|range| *range.end() <= '\u{ffff}');
    let class = short.map(|range| {
        format!(
            r"\u{:04x}-\u{:04x}",
            u32::from(*range.start()),
            u32::from(*range.end())
        )
    });
    class.collect()
}

/// Returns the schema of several lines, which may be empty.
pub fn lines(longest: usize) -> Json {
    let pattern = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]*$";
    kind("string").with("maxLength", longest).with("pattern", pattern)
}

/// Returns the schema of any string.
pub fn string() -> Json {
    kind("string")
}

/// Returns the schema of a string of this form.
pub fn pattern(pattern: &str) -> Json {
    kind("string").with("pattern", pattern)
}

/// `true` or `false`.
pub fn flag() -> Json {
    kind("boolean")
}

/// Returns the schema of an e-mail address.
pub fn email() -> Json {
    kind("string").with("format", "email").with("maxLength", 254_u64)
}

/// Returns the schema of one of these words.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Json {
    kind("string").with("enum", words.into_iter().collect::<Vec<_>>())
}

/// Returns the schema of a list with this schema of items.
pub fn list(items: Json, most: usize) -> Json {
    kind("array").with("items", items).with("maxItems", most)
}

/// Returns the schema of a whole number from `low` to `high`.
pub fn whole(low: usize, high: usize) -> Json {
    kind("integer").with("minimum", low).with("maximum", high)
}

/// Returns the schema of a number from `low` on.
pub fn count(low: usize) -> Json {
    kind("integer").with("minimum", low)
}

/// Returns a schema that is defined in [`super::is`].
pub fn is(name: &str) -> Json {
    reference(name)
}

/// Returns the schema of an amount to be moved.
pub fn amount() -> Json {
    usd(kind("number")
        .with("exclusiveMinimum", 0_u64)
        .with("maximum", USD_MAX))
}

/// Returns the schema of a limit in USD.
pub fn limit() -> Json {
    usd(kind("number").with("minimum", 0_u64).with("maximum", USD_MAX))
}

fn usd(number: Json) -> Json {
    let text = pattern(DECIMAL);
    object([("anyOf", Json::List(vec![number, text]))]).example(Json::Number(25.into()))
}

/// `USD` or `USDC`.
pub fn currency() -> Json {
    words(CURRENCIES).with("x-default", CURRENCIES[0])
}

/// Returns the schema of the name of a wallet (decision D61).
pub fn wallet() -> Json {
    let name = pattern(&format!("^[A-Za-z0-9._:-]{{1,{AGENT_ID_MAX}}}$"));
    object([("anyOf", Json::List(vec![record_number(), name]))]).example("research-bot")
}

/// Returns the schema of a wallet's number or id.
pub fn wallet_of_path() -> Json {
    pattern("^([1-9][0-9]{0,18}|wal_[0-9A-Za-z]{26})$").example("17")
}

/// Returns the schema of a positive integer, as a number or as text.
pub fn number() -> Json {
    let text = pattern("^0*[1-9][0-9]{0,17}$");
    object([("anyOf", Json::List(vec![record_number(), text]))]).example(Json::Number(42.into()))
}

/// Returns the schema of the number of a wallet or an escrow.
fn record_number() -> Json {
    count(1).with("maximum", number::LAST)
}

/// Returns the schema of an object of any fields.
pub fn free() -> Json {
    kind("object")
        .with("additionalProperties", true)
        .with("x-longest-bytes", FIELD_OBJECT_MAX)
}

/// Returns the schema of an existing agent's id, in a path or query.
pub fn agent_id() -> Json {
    not_user(is("AgentId"))
}

/// Returns the schema of the id of an agent that a request can create.
pub fn new_agent_id() -> Json {
    let taken = vec![object([("const", USER.into())]), pattern(ID_PATTERN)];
    let not = object([("anyOf", Json::List(taken))]);
    name(AGENT_ID_MAX).with("not", not).example("research-bot")
}

/// Excludes the word that names the account's own wallet (decision D61) from a schema.
fn not_user(schema: Json) -> Json {
    schema.with("not", object([("const", USER.into())]))
}

/// Returns the schema of a run's id.
pub fn run_id() -> Json {
    name(RUN_ID_MAX).example("nightly-42")
}

fn name(longest: usize) -> Json {
    kind("string")
        .with("maxLength", longest)
        .with("pattern", NAME_PATTERN)
}

/// Returns the schema of a moment.
pub fn time() -> Json {
    kind("string")
        .with("format", "date-time")
        .example("2026-11-01T00:00:00Z")
}

/// Returns the schema of an idempotency key.
pub fn idempotency_key() -> Json {
    pattern(&format!("^[ -~]{{1,{KEY_MAX}}}$")).example("order-7731")
}

/// The description of `cursor`.
pub const CURSOR_SAYS: &str = "The `nextCursor` of the page before this one, with the same filters. It goes on from any depth, \
     and gives each record that is there throughout once, whatever comes and goes meanwhile. Give no `offset` above 0 with it.";

/// Returns the schema of the number of records to skip.
pub fn offset() -> Json {
    whole(0, OFFSET_MAX).with("x-default", 0_u64)
}

/// Returns the schema of a cursor: the end of the previous page.
pub fn cursor() -> Json {
    pattern(&format!("^[A-Za-z0-9_-]{{1,{CURSOR_MAX}}}$")).example("AfQ1bGl2ZSAxNzY0MDI2NjI5MTIz")
}

/// Returns the parameters of a page.
pub fn page() -> [Field; 3] {
    let limit = whole(1, PAGE_MAX).with("x-default", PAGE_DEFAULT);
    [
        Field::optional("limit", limit, "Most records on the page."),
        Field::optional("offset", offset(), "Records to leave out at the beginning."),
        Field::optional("cursor", cursor(), CURSOR_SAYS),
    ]
}
