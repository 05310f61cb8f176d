//! The closed loop over HTTP/2: several streams of one connection, each with one request under way.

use crate::outcome::{Samples, Window};
use crate::target::{ANSWER_TIMEOUT, Request, Target};
use crate::tls;
use crate::wire::PATH;
use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

/// Flow-control window for an answer that is not read yet; more than any answer has.
const WINDOW_BYTES: u32 = 1 << 20;

/// Runs one connection with a stream for each of `requests` until the window ends.
pub(crate) async fn connection(target: Arc<Target>, requests: Vec<Request>, window: Window) -> Samples {
    let mut all = Samples::default();
    if let Err(error) = dial_and_exchange(&target, requests, window, &mut all).await {
        all.errors.push(error.to_string());
    }
    all
}

async fn dial_and_exchange(
    target: &Arc<Target>,
    requests: Vec<Request>,
    window: Window,
    all: &mut Samples,
) -> io::Result<()> {
    let Some(first) = requests.first() else {
        return Ok(());
    };
    let stream = target.connect(first.number).await?;
    match &target.tls {
        Some(connector) => {
            let stream = connector.connect(tls::name()?, stream);
            let stream = tokio::time::timeout(ANSWER_TIMEOUT, stream).await??;
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(io::Error::other("the target does not speak HTTP/2"));
            }
            exchange_all(stream, target, requests, window, all).await
        }
        None => exchange_all(stream, target, requests, window, all).await,
    }
}

async fn exchange_all(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    target: &Arc<Target>,
    requests: Vec<Request>,
    window: Window,
    all: &mut Samples,
) -> io::Result<()> {
    let mut builder = client::Builder::new();
    builder
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
    // Ends with the last sender; the streams report its errors.
    let driver = tokio::spawn(connection);
    let mut streams = JoinSet::new();
    for request in requests {
        let (sender, target) = (sender.clone(), Arc::clone(target));
        streams.spawn(one_stream(sender, target, request, window));
    }
    drop(sender);
    while let Some(samples) = streams.join_next().await {
        all.add(samples?);
    }
    driver.abort();
    Ok(())
}

async fn one_stream(
    sender: SendRequest<Bytes>,
    target: Arc<Target>,
    request: Request,
    window: Window,
) -> Samples {
    let mut samples = Samples::default();
    if let Err(error) = exchange_until_end(sender, &target, &request, window, &mut samples).await {
        samples.errors.push(error.to_string());
    }
    samples
}

async fn exchange_until_end(
    mut sender: SendRequest<Bytes>,
    target: &Target,
    request: &Request,
    window: Window,
    samples: &mut Samples,
) -> io::Result<()> {
    let scheme = if target.tls.is_some() { "https" } else { "http" };
    let head = http::Request::post(format!("{scheme}://{}{PATH}", tls::NAME))
        .header(AUTHORIZATION, format!("Bearer {}", request.key))
        .header("x-service-run-id", &request.run)
        .header(USER_AGENT, "bench-load")
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .header(CONTENT_LENGTH, request.body.len())
        .body(())
        .map_err(io::Error::other)?;
    loop {
        let sent = Instant::now();
        if sent >= window.end {
            return Ok(());
        }
        let exchange = exchange(&mut sender, head.clone(), request.body.clone());
        let status = tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await?
            .map_err(io::Error::other)?;
        samples.count(status, &target.expected)?;
        let answered = Instant::now();
        if window.holds(answered) {
            samples.latencies.push(answered - sent);
        }
    }
}

async fn exchange(
    sender: &mut SendRequest<Bytes>,
    head: http::Request<()>,
    body: Bytes,
) -> Result<u16, h2::Error> {
    std::future::poll_fn(|context| sender.poll_ready(context)).await?;
    let (response, mut stream) = sender.send_request(head, false)?;
    stream.send_data(body, true)?;
    let response = response.await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(piece) = body.data().await {
        let length = piece?.len();
        body.flow_control().release_capacity(length)?;
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use crate::outcome::Window;
    use crate::target::Version;
    use crate::target::tests::plain;
    use crate::wire::chat_answer;
    use bytes::Bytes;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::net::TcpListener;

    /// Answers each stream of each connection once its body is complete.
    async fn serve(listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    tokio::spawn(async move {
                        let mut body = request.into_body();
                        while let Some(piece) = body.data().await {
                            let length = piece.unwrap().len();
                            body.flow_control().release_capacity(length).unwrap();
                        }
                        let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
                        stream.send_data(Bytes::from(chat_answer()), true).unwrap();
                    });
                }
            });
        }
    }

    #[tokio::test]
    async fn streams_share_connections_and_every_answer_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        let run = async |expected: &[u16]| {
            let (target, requests) = plain(address, expected, 6);
            let mut target = Arc::into_inner(target).unwrap();
            target.version = Version::Http2;
            let window = Window::after(Duration::from_millis(20), Duration::from_secs(2));
            crate::closed::run(Arc::new(target), requests, 3, window, &[])
                .await
                .unwrap()
        };
        let good = run(&[200]).await;
        assert_eq!((good.errors, good.first_error), (0, None));
        assert!(good.answered > 6, "{}", good.answered);
        let bad = run(&[402]).await;
        assert_eq!((bad.answered_in_all, bad.errors), (0, 6));
    }
}
