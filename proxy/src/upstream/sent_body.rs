//! The body of a request to a provider, as far as its headers depend on it.

use http::header::{self, HeaderName, HeaderValue};

/// The body that goes with the headers.
#[derive(Debug, Clone, Copy)]
pub struct SentBody {
    /// Bytes.
    pub length: usize,
    /// True if the body requests a stream.
    pub streams: bool,
}

impl SentBody {
    /// Creates that of a request without a stream.
    #[cfg(test)]
    pub const fn from_length(length: usize) -> Self {
        Self {
            length,
            streams: false,
        }
    }

    /// Returns whether the header requests another form of answer than the body. Some providers follow it, and a stream
    /// that the edge did not expect has no usage: the caller could choose to be charged the estimate.
    pub(super) fn is_contradicted(self, name: &HeaderName, value: &HeaderValue) -> bool {
        !self.streams && name == header::ACCEPT && accepts_events(value)
    }
}

fn accepts_events(value: &HeaderValue) -> bool {
    let types = value.as_bytes().to_ascii_lowercase();
    memchr::memmem::find(&types, b"event-stream").is_some()
}
