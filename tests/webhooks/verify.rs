//! Independent verification of our signatures: by the Standard Webhooks library, and by the receiver of
//! docs/reference/webhooks.md, run unchanged.

use crate::fixture::{Fixture, SOON, accepting, attempts, success};
use harness::{Recorded, eventually, free_port, python_package};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// The library that is proved to work.
const LIBRARY: &str = "standardwebhooks==1.1.0";
const VERIFY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/webhooks/verify.py");
const DOCS: &str = include_str!("../../docs/reference/webhooks.md");
const ENCODED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_b2xkIHNlY3JldCBvZiB0aGVpcnM=";

fn line(secret: &str, request: &Recorded, body: &str) -> Value {
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: Vec<(&str, &str)> = headers.map(|name| (name, request.header(name).unwrap())).into();
    let headers: std::collections::BTreeMap<_, _> = headers.into_iter().collect();
    json!({ "secret": secret, "headers": headers, "body": body })
}

#[tokio::test]
async fn the_standard_webhooks_library_verifies_our_deliveries() {
    let python = python_package(env!("CARGO_TARGET_TMPDIR"), "webhooks-python", LIBRARY).join("bin/python");
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    let webhook = owner
        .register(&crate::fixture::url(&receiver), &["agent.frozen"])
        .await;
    let path = format!("/v1/webhooks/{webhook}");
    for secret in [OLD, ENCODED] {
        success(&owner.caller.patch(&path, json!({ "secret": secret })).await, 200);
    }
    owner.freeze("bot").await;
    receiver.wait_for(1, SOON).await;
    let request = &receiver.requests()[0];
    let body = String::from_utf8(request.body.clone()).unwrap();
    let lines = [
        line(ENCODED, request, &body),
        line(OLD, request, &body),
        line("whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==", request, &body),
        line(ENCODED, request, &body.replace("bot", "bat")),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mut child = Command::new(python)
        .arg(VERIFY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(format!("{}\n", text.join("\n")).as_bytes())
        .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(
        &printed[..2],
        ["verified agent.frozen"; 2],
        "with the new secret and the old one"
    );
    assert!(
        printed.len() == 4 && printed[2..].iter().all(|line| line.starts_with("refused")),
        "{printed:?}"
    );
}

/// The first block of a language in the documentation.
fn example(language: &str) -> &'static str {
    let (_, rest) = DOCS.split_once(&format!("```{language}\n")).expect("an example");
    rest.split_once("```").expect("its end").0
}

struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn the_receiver_of_the_documentation_accepts_ours_and_refuses_others() {
    accepts_ours_and_refuses_others("python3", ["-c", example("python")]).await;
}

#[tokio::test]
async fn so_does_the_one_for_node() {
    accepts_ours_and_refuses_others("node", ["-e", example("js")]).await;
}

async fn accepts_ours_and_refuses_others(program: &str, args: [&str; 2]) {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let port = free_port();
    let listening = async || {
        eventually("the receiver", SOON, async || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop)
        })
        .await;
    };
    let run = |secret: &str| {
        let receiver = Command::new(program)
            .args(args)
            .env("WEBHOOK_SECRET", secret)
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Receiver(receiver.expect(program))
    };
    let url = format!("http://127.0.0.1:{port}/hook");
    let good = run(crate::fixture::SECRET);
    listening().await;
    let webhook = owner.register(&url, &["agent.frozen"]).await;
    owner.freeze("bot").await;
    let done = owner
        .wait_for(&webhook, "its acceptance", |delivery| {
            delivery["status"] == "delivered"
        })
        .await;
    assert_eq!(done["responseCode"], json!(200));
    drop(good);
    let _other = run("somebody else's secret");
    listening().await;
    owner.freeze("bot").await;
    let refused = eventually("its refusal", SOON, async || {
        let newest = owner.deliveries(&webhook).await.into_iter().next()?;
        (attempts(&newest) > 0 && newest["responseCode"] == 400).then_some(newest)
    })
    .await;
    assert_eq!(refused["status"], json!("pending"));
}
