//! Reads the body of a request within limits of bytes, time, and [memory](crate::memory) for all bodies together.
//!
//! A body takes memory before its caller has proven any permission. So the body of an unknown caller must be short.

use crate::memory::{BODY_MAX, Reserved};
use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use std::time::Duration;

/// Longest request body of a caller without a credential, in bytes.
pub const PUBLIC_BODY_MAX: usize = 8 << 10;

/// Reads a body: for a known caller up to [`BODY_MAX`], in memory that stays `reserved` for it until that is dropped;
/// for any other caller up to [`PUBLIC_BODY_MAX`].
///
/// # Errors
/// 413 if it is longer, 408 after `timeout`, 429 or 503 without memory, 400 if it is incomplete.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    timeout: Duration,
    mut reserved: Option<&mut Reserved>,
) -> Result<Bytes, Problem> {
    let max = match reserved {
        Some(_) => BODY_MAX,
        None => PUBLIC_BODY_MAX,
    };
    let declared = headers.get(CONTENT_LENGTH);
    let declared: Option<usize> = declared
        .and_then(|text| text.to_str().ok())
        .and_then(|text| text.parse().ok());
    if declared.is_some_and(|length| length > max) {
        return Err(too_large(max));
    }
    let collect = async {
        let mut chunks = body.into_data_stream();
        let mut all = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk =
                chunk.map_err(|_| Problem::validation("The request body could not be read to its end."))?;
            if all.len() + chunk.len() > max {
                return Err(too_large(max));
            }
            if let Some(reserved) = reserved.as_deref_mut() {
                reserved.grow(chunk.len())?;
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    };
    match tokio::time::timeout(timeout, collect).await {
        Ok(body) => body,
        Err(_elapsed) => Err(Code::RequestTimeout.into()),
    }
}

fn too_large(max: usize) -> Problem {
    let message = format!("The request body is longer than {max} bytes.");
    Problem::new(Code::PayloadTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stranger_may_send_a_short_body_only() {
        let timeout = Duration::from_secs(1);
        let sent = |bytes: usize| Body::from(vec![b' '; bytes]);
        let read = async |bytes| read(&HeaderMap::new(), sent(bytes), timeout, None).await;
        assert_eq!(read(PUBLIC_BODY_MAX).await.unwrap().len(), PUBLIC_BODY_MAX);
        assert_eq!(
            read(PUBLIC_BODY_MAX + 1).await.unwrap_err().code(),
            Code::PayloadTooLarge
        );
    }
}
