//! Every reason for refusing a request body, declared once: its code, its message and the parameter at fault.

use super::{DEPTH_MAX, INPUTS_MAX, KEY_BYTES_MAX, KEYS_MAX, MODEL_BYTES_MAX, SERVICE_TIER_BYTES_MAX};

/// Result of a parsing step.
pub(super) type Scan<T = ()> = Result<T, BodyError>;

/// Why a body is refused; always answered with 400 (specification, Other proxy responses). A message contains at most
/// one key of the caller, shortened and without control characters (`key::quotable`), and no other text of the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is empty or only white space.
    #[error("the body is empty")]
    Empty,
    /// A byte sequence that is not UTF-8.
    #[error("the body is not valid UTF-8 (byte {at})")]
    NotUtf8 {
        /// Its offset.
        at: usize,
    },
    /// A byte order mark, which some parsers skip and others refuse.
    #[error("the body starts with a byte order mark")]
    ByteOrderMark,
    /// An array, a string or anything else that is not an object.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// The body ends too early.
    #[error("the body ends in the middle of its JSON object")]
    Truncated,
    /// A character that JSON does not allow at this position.
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
    /// An escape sequence that JSON does not define.
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
    /// A number that some parsers read as infinite and others refuse.
    #[error("number out of range at byte {at} of the body")]
    NumberTooLarge {
        /// The offset of its first byte.
        at: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("the body is nested more than {} levels deep", DEPTH_MAX)]
    TooDeep,
    /// Anything except white space after the object.
    #[error("unexpected data after the JSON body at byte {at}")]
    TrailingData {
        /// Its offset.
        at: usize,
    },
    /// A key that occurs twice after unescaping: a top-level key, or the key of a part's payload.
    #[error("the key `{key}` appears twice")]
    DuplicateKey {
        /// The key, shortened for quoting.
        key: String,
    },
    /// A top-level key that another parser could take for a key that the gate reads: a parser that ignores case, stops
    /// at a NUL, or ignores word separators.
    #[error("the key `{key}` must be written `{wanted}`")]
    NearKey {
        /// The key, shortened for quoting.
        key: String,
        /// The key that it resembles.
        wanted: &'static str,
    },
    /// A top-level key longer than any parameter.
    #[error("the key `{key}` is longer than {} bytes", KEY_BYTES_MAX)]
    KeyTooLong {
        /// The key, shortened for quoting.
        key: String,
    },
    /// More top-level keys than the API has parameters.
    #[error("the body has more than {} top-level keys", KEYS_MAX)]
    TooManyKeys,
    /// `model` is absent, `null`, empty or not a string.
    #[error("`model` is required and must be a non-empty string")]
    MissingModel,
    /// `messages` is absent, `null`, empty or not an array.
    #[error("`messages` is required and must be a non-empty array")]
    MissingMessages,
    /// `stream` is `true`.
    #[error(
        "streaming is not supported here: leave `stream` out or set it to false, or ask the operator for `proxy.streaming = true`"
    )]
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
    /// `model` is too long, has a control character, at which some programs end a string, or a comma, which separates
    /// several models at a LiteLLM proxy.
    #[error("`model` must be at most {MODEL_BYTES_MAX} bytes long, without commas and control characters")]
    BadModel,
    /// An element of `messages` that is not an object.
    #[error("`messages[{index}]` must be an object")]
    MessageNotObject {
        /// Its index, starting at 0.
        index: usize,
    },
    /// A count that is not an integer (such as `2.0`, `2e0` or `"2"`), or is out of range.
    #[error("`{key}` must be an integer from 1 to {max}")]
    BadCount {
        /// Name of the field.
        key: &'static str,
        /// The largest value allowed.
        max: u64,
    },
    /// The answer has no limit, but one is required (`proxy.require_token_limit`).
    #[error(
        "{} is required here: without, an answer can cost more than is held for it",
        limits(key)
    )]
    MissingTokenLimit {
        /// The key that limits the answer.
        key: &'static str,
    },
    /// `service_tier` is not a string, is too long, or has a control character.
    #[error(
        "`service_tier` must be a string of at most {SERVICE_TIER_BYTES_MAX} bytes, without control characters"
    )]
    BadServiceTier,
    /// `input` is absent, `null`, empty or of another type.
    #[error("`input` is required and must be a non-empty string or array")]
    MissingInput,
    /// An element of the `input` of a response that is not an object.
    #[error("`input[{index}]` must be an object")]
    ItemNotObject {
        /// Its index, starting at 0.
        index: usize,
    },
    /// A value of another type than the expected one.
    #[error("`{key}` must be {wanted}")]
    WrongType {
        /// Name of the field.
        key: &'static str,
        /// The expected type, with its article.
        wanted: &'static str,
    },
    /// A field whose cost the edge cannot determine.
    #[error("`{field}` is not supported: {why}")]
    UnsupportedField {
        /// Its path, such as `tools[0].type`; made of known names and numbers only.
        field: String,
        /// Why its cost cannot be determined.
        why: &'static str,
    },
    /// A key with which the caller would choose the billed model or tier.
    #[error(
        "`{key}` is not supported: by it this provider may bill another model or a service whose cost cannot be seen here"
    )]
    BilledByChoice {
        /// The documented form of the key.
        key: &'static str,
    },
    /// More inputs than an embeddings call may have.
    #[error("`input` has more than {} elements", INPUTS_MAX)]
    TooManyInputs,
    /// An element of an embeddings `input` that is not a text, a token id or an array of token ids, or has another type
    /// than the first element.
    #[error("`input[{index}]` must be a string, a token id or an array of token ids, as all its elements")]
    BadInput {
        /// Its index, starting at 0.
        index: usize,
    },
}

domain::words! {
    /// Kind of the answer to a body that is refused, by its `error.code`.
    pub enum BodyErrorKind {
        /// The body is not a JSON object, or parsers could read it in different ways.
        InvalidJson = "invalid_json",
        /// No `model`.
        MissingModel = "missing_model",
        /// No `messages`.
        MissingMessages = "missing_messages",
        /// No `input`.
        MissingInput = "missing_input",
        /// `stream: true` where streams are not available.
        StreamNotSupported = "stream_not_supported",
        /// No limit of the answer, where one is required.
        MissingTokenLimit = "missing_token_limit",
        /// A field whose cost the edge cannot determine.
        UnsupportedField = "unsupported_field",
    }
}

/// Returns the keys that limit an answer, for the message. Chat completions have an older key as well.
fn limits(key: &str) -> String {
    match key {
        "max_completion_tokens" => "`max_completion_tokens` or `max_tokens`".to_owned(),
        key => format!("`{key}`"),
    }
}

impl BodyError {
    /// Returns the `error.code` of the answer.
    pub const fn code(&self) -> &'static str {
        self.kind().as_str()
    }

    /// Returns the kind of the answer.
    pub const fn kind(&self) -> BodyErrorKind {
        match self {
            Self::MissingModel => BodyErrorKind::MissingModel,
            Self::MissingMessages => BodyErrorKind::MissingMessages,
            Self::StreamNotSupported => BodyErrorKind::StreamNotSupported,
            Self::MissingTokenLimit { .. } => BodyErrorKind::MissingTokenLimit,
            Self::MissingInput => BodyErrorKind::MissingInput,
            Self::UnsupportedField { .. } | Self::BilledByChoice { .. } => BodyErrorKind::UnsupportedField,
            _ => BodyErrorKind::InvalidJson,
        }
    }

    /// Returns the `error.param` of the answer: the key at fault, if there is one.
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
