//! Every way in which a request body can be refused, declared once: its code, its sentence and the parameter at fault.

use super::{DEPTH_MAX, INPUTS_MAX, KEY_BYTES_MAX, KEYS_MAX, MODEL_BYTES_MAX, SERVICE_TIER_BYTES_MAX};

/// What a reading step returns.
pub(super) type Scan<T = ()> = Result<T, BodyError>;

/// Why a body is refused; always answered with 400 (specification, Other proxy responses). The sentences hold no
/// text of the caller but at most one key, shortened and without control characters (`key::quotable`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// There is nothing but white space.
    #[error("the body is empty")]
    Empty,
    /// A byte sequence that is no UTF-8.
    #[error("the body is not valid UTF-8 (byte {at})")]
    NotUtf8 {
        /// Its offset.
        at: usize,
    },
    /// A byte order mark, which some parsers skip and others refuse.
    #[error("the body starts with a byte order mark")]
    ByteOrderMark,
    /// An array, a string or any other beginning.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// The end came too early.
    #[error("the body ends in the middle of its JSON object")]
    Truncated,
    /// A character that JSON does not allow where it stands.
    #[error("unexpected character at byte {at} of the body")]
    Unexpected {
        /// Its offset.
        at: usize,
    },
    /// A raw control character, such as a line break, inside a string.
    #[error("unescaped control character in a string at byte {at} of the body")]
    ControlCharacter {
        /// Its offset.
        at: usize,
    },
    /// A backslash sequence that JSON does not have.
    #[error("invalid escape at byte {at} of the body")]
    BadEscape {
        /// The offset of the backslash.
        at: usize,
    },
    /// A surrogate without its other half: parsers replace it, drop it or keep it.
    #[error("half of a surrogate pair at byte {at} of the body")]
    LoneSurrogate {
        /// The offset of the backslash.
        at: usize,
    },
    /// A number that breaks JSON's grammar: `01`, `1.`, `-`, `1e`.
    #[error("malformed number at byte {at} of the body")]
    BadNumber {
        /// The offset of its first byte.
        at: usize,
    },
    /// A number that becomes infinite in some parsers and an error in others.
    #[error("number out of range at byte {at} of the body")]
    NumberTooLarge {
        /// The offset of its first byte.
        at: usize,
    },
    /// Arrays and objects too deep inside each other.
    #[error("the body is nested more than {} levels deep", DEPTH_MAX)]
    TooDeep,
    /// Anything but white space after the object.
    #[error("unexpected data after the JSON body at byte {at}")]
    TrailingData {
        /// Its offset.
        at: usize,
    },
    /// A key that stands there twice, escapes undone: a top-level one, or one for the payload of a part.
    #[error("the key `{key}` appears twice")]
    DuplicateKey {
        /// The key, fit for quoting.
        key: String,
    },
    /// A top-level key that another parser takes for a key that the gate reads: one that is blind to case, stops at a
    /// NUL, or does not look at what separates words.
    #[error("the key `{key}` must be written `{wanted}`")]
    NearKey {
        /// The key, fit for quoting.
        key: String,
        /// What it comes close to.
        wanted: &'static str,
    },
    /// A top-level key longer than any parameter.
    #[error("the key `{key}` is longer than {} bytes", KEY_BYTES_MAX)]
    KeyTooLong {
        /// The key, fit for quoting.
        key: String,
    },
    /// More top-level keys than there are parameters.
    #[error("the body has more than {} top-level keys", KEYS_MAX)]
    TooManyKeys,
    /// `model` is absent, `null`, empty or no string.
    #[error("`model` is required and must be a non-empty string")]
    MissingModel,
    /// `messages` is absent, `null`, empty or no array.
    #[error("`messages` is required and must be a non-empty array")]
    MissingMessages,
    /// `stream` is `true`.
    #[error("streaming is not supported: leave `stream` out or set it to false")]
    StreamNotSupported,
    /// `stream` is neither a boolean nor `null`.
    #[error("`stream` must be a boolean")]
    StreamNotBoolean,
    /// `stream_options` is neither an object nor `null`, or has more or longer keys than an object of parameters.
    #[error(
        "`stream_options` must be an object with at most {KEYS_MAX} keys of at most {KEY_BYTES_MAX} bytes"
    )]
    BadStreamOptions,
    /// `stream_options.include_usage` is neither a boolean nor `null`.
    #[error("`stream_options.include_usage` must be a boolean")]
    IncludeUsageNotBoolean,
    /// `model` is too long, or has a control character, at which some programs end a string.
    #[error("`model` must be at most {MODEL_BYTES_MAX} bytes long, without control characters")]
    BadModel,
    /// An element of `messages` that is no object.
    #[error("`messages[{index}]` must be an object")]
    MessageNotObject {
        /// Its place, counted from 0.
        index: usize,
    },
    /// A count that is no integer (`2.0`, `2e0` and `"2"` are none) or out of range.
    #[error("`{key}` must be an integer from 1 to {max}")]
    BadCount {
        /// The key.
        key: &'static str,
        /// The largest value allowed.
        max: u64,
    },
    /// No limit of the answer, where one is required (`proxy.require_token_limit`).
    #[error(
        "{} is required here: without, an answer can cost more than is held for it",
        limits(key)
    )]
    MissingTokenLimit {
        /// The key that limits the answer.
        key: &'static str,
    },
    /// `service_tier` is no string, too long, or has a control character.
    #[error(
        "`service_tier` must be a string of at most {SERVICE_TIER_BYTES_MAX} bytes, without control characters"
    )]
    BadServiceTier,
    /// `input` is absent, `null`, empty or of another type.
    #[error("`input` is required and must be a non-empty string or array")]
    MissingInput,
    /// An element of the `input` of a response that is no object.
    #[error("`input[{index}]` must be an object")]
    ItemNotObject {
        /// Its place, counted from 0.
        index: usize,
    },
    /// A value of another type than the one that can be read.
    #[error("`{key}` must be {wanted}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// The type, with its article.
        wanted: &'static str,
    },
    /// Something whose cost the edge cannot see.
    #[error("`{field}` is not supported: {why}")]
    UnsupportedField {
        /// Where it stands, such as `tools[0].type`; made of known names and numbers.
        field: String,
        /// Why its cost cannot be seen.
        why: &'static str,
    },
    /// A key by which the caller would choose what is billed.
    #[error(
        "`{key}` is not supported: by it this provider may bill another model or a service whose cost cannot be seen here"
    )]
    BilledByChoice {
        /// The key, as it is documented.
        key: &'static str,
    },
    /// More inputs than an embeddings call can have.
    #[error("`input` has more than {} elements", INPUTS_MAX)]
    TooManyInputs,
    /// An element of an embeddings `input` that is neither a text nor a token id nor an array of them, or is another
    /// one than the first.
    #[error("`input[{index}]` must be a string, a token id or an array of token ids, as all its elements")]
    BadInput {
        /// Its place, counted from 0.
        index: usize,
    },
}

/// The keys that limit an answer, for people: chat completions have an older one beside `key`.
fn limits(key: &str) -> String {
    match key {
        "max_completion_tokens" => "`max_completion_tokens` or `max_tokens`".to_owned(),
        key => format!("`{key}`"),
    }
}

impl BodyError {
    /// The `error.code` of the answer: `missing_model`, `missing_messages`, `missing_input`, `stream_not_supported`,
    /// `missing_token_limit`, `unsupported_field`, and for all else `invalid_json`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingModel => "missing_model",
            Self::MissingMessages => "missing_messages",
            Self::StreamNotSupported => "stream_not_supported",
            Self::MissingTokenLimit { .. } => "missing_token_limit",
            Self::MissingInput => "missing_input",
            Self::UnsupportedField { .. } | Self::BilledByChoice { .. } => "unsupported_field",
            _ => "invalid_json",
        }
    }

    /// The `error.param` of the answer: the key at fault, when there is one.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::DuplicateKey { key } | Self::NearKey { key, .. } | Self::KeyTooLong { key } => Some(key),
            Self::MissingModel | Self::BadModel => Some("model"),
            Self::MissingMessages | Self::MessageNotObject { .. } => Some("messages"),
            Self::StreamNotSupported | Self::StreamNotBoolean => Some("stream"),
            Self::BadStreamOptions | Self::IncludeUsageNotBoolean => Some("stream_options"),
            Self::BadCount { key, .. }
            | Self::WrongType { key, .. }
            | Self::MissingTokenLimit { key }
            | Self::BilledByChoice { key } => Some(key),
            Self::UnsupportedField { field, .. } => Some(field),
            Self::MissingInput | Self::ItemNotObject { .. } | Self::TooManyInputs | Self::BadInput { .. } => {
                Some("input")
            }
            Self::BadServiceTier => Some("service_tier"),
            Self::Empty
            | Self::NotUtf8 { .. }
            | Self::ByteOrderMark
            | Self::NotAnObject
            | Self::Truncated
            | Self::Unexpected { .. }
            | Self::ControlCharacter { .. }
            | Self::BadEscape { .. }
            | Self::LoneSurrogate { .. }
            | Self::BadNumber { .. }
            | Self::NumberTooLarge { .. }
            | Self::TooDeep
            | Self::TrailingData { .. }
            | Self::TooManyKeys => None,
        }
    }
}
