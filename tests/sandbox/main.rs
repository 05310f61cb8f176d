//! The sandbox provider.
#![cfg(test)]

mod demanded;
mod process;
mod scenarios;
mod shape;
mod streams;

use harness::{Caller, RawClient, Reply, chat_body};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// A provider key as a caller of the provider would have.
const KEY: &str = "sk-sandbox-0123456789abcdef";

/// A sandbox in this process; it ends with the test's runtime.
async fn start(delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(sandbox::serve(listener, delay, std::future::pending()));
    address
}

async fn caller() -> Caller {
    Caller::new(&format!("http://{}", start(Duration::ZERO).await), KEY)
}

/// A call that asks for a scenario by the header.
async fn send(caller: &Caller, scenario: &str) -> Reply {
    caller
        .chat_with(
            &[("x-sandbox-scenario", scenario)],
            chat_body("gpt-4o-mini", "hello"),
        )
        .await
}

async fn stats(caller: &Caller) -> Value {
    caller.get("/sandbox/stats").await.json()
}
