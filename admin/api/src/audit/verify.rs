//! `GET /audit/verify`: recomputes the whole trail and streams a line of JSON for each step.

use crate::state::{ApiState, Call};
use archive::Archive;
use audit_verify::checkpoint::Checkpoints;
use audit_verify::{Broken, Busy, KnownEnd, Verdict, VerificationSlot, online};
use axum::http::header;
use bytes::Bytes;
use endpoint::{Answer, Code, Problem, Reply};
use futures::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::audit::checkpoint_key;
use store::keys::Realm;
use telemetry::error_chain;
use tokio::sync::mpsc;

/// Maximum number of lines that wait for the caller; further progress lines are dropped.
const LINES: usize = 16;
/// Least time between two lines.
const PAUSE: Duration = Duration::from_millis(100);
/// Value of `Retry-After`, in seconds, while the server verifies other trails.
const RETRY_AFTER: &str = "5";

/// `GET /audit/verify`
///
/// # Errors
/// 409 while a trail of the account is being verified; 503, also while the server verifies other trails.
pub async fn verify(call: Call) -> Answer {
    let slot = call
        .state
        .verification
        .slots
        .take(&call.caller.account)
        .map_err(busy)?;
    let (sender, lines) = mpsc::channel(LINES);
    let (api, realm) = (Arc::clone(&call.state), call.realm());
    tokio::spawn(async move {
        let listener = sender.clone();
        // If the caller disconnects, the receiver of the lines is dropped and nobody waits for the verdict.
        tokio::select! {
            () = listener.closed() => {}
            () = work(&api, &realm, sender, slot) => {}
        }
    });
    let lines = stream::unfold(lines, |mut lines| async {
        let line: Value = lines.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from(format!("{line}\n"))), lines))
    });
    Reply::lines(lines)
}

fn busy(busy: Busy) -> Problem {
    match busy {
        Busy::Account => Problem::new(
            Code::Conflict,
            "A trail of this account is being verified already.",
        ),
        Busy::Server => {
            let message = "This server is verifying other trails. Try again shortly.";
            Problem::new(Code::ServiceUnavailable, message).header(header::RETRY_AFTER, RETRY_AFTER)
        }
    }
}

/// Verifies the trail, and sends its progress and its result.
async fn work(api: &ApiState, realm: &Realm, sender: mpsc::Sender<Value>, slot: VerificationSlot) {
    let mut last: Option<Instant> = None;
    let progress = |checked: u64, total: u64| {
        if last.is_none_or(|last| last.elapsed() >= PAUSE) {
            last = Some(Instant::now());
            // A caller who reads slowly misses some of these lines.
            drop(sender.try_send(json!({ "checked": checked, "total": total })));
        }
    };
    let archive = api.archive.afresh();
    let signed = signed(api, &archive, realm).await;
    let every = api.verification.checkpoint_every;
    let verdict = online(&api.store, &archive, realm, signed.known, every, progress).await;
    let line = match verdict {
        Ok(mut verdict) => {
            verdict.broken = verdict.broken.or(signed.bad);
            verdict.warnings.extend(signed.warning);
            verdict_line(&verdict)
        }
        Err(error) => {
            let (account, mode) = (realm.account(), realm.mode());
            tracing::error!(account, %mode, error = %error_chain(&error), "a verification was cut off");
            let code = Code::ServiceUnavailable;
            json!({ "error": "The trail could not be read to its end; nothing is said of it. Try again shortly.",
                "code": code.as_str() })
        }
    };
    drop(slot);
    drop(sender.send(line).await);
}

fn verdict_line(verdict: &Verdict) -> Value {
    let broken = verdict.broken.as_ref();
    json!({
        "done": true,
        "ok": verdict.ok(),
        "entries": verdict.entries,
        "firstBroken": broken.map(|broken| json!({ "seq": broken.seq, "problem": broken.problem })),
        "endProven": verdict.end_proven && verdict.ok(),
        "provenTo": verdict.proven_to(),
        "message": verdict.text().replace('\n', " "),
    })
}

/// The signed checkpoint in the archive.
#[derive(Default)]
struct ArchivedCheckpoint {
    /// Its states of the trail.
    known: Vec<KnownEnd>,
    /// Its first fault.
    bad: Option<Broken>,
    /// Its warning to the reader.
    warning: Option<String>,
}

async fn signed(api: &ApiState, archive: &Archive, realm: &Realm) -> ArchivedCheckpoint {
    let key = match checkpoint_key::key(&api.store, &api.keyring).await {
        Ok(key) => key,
        Err(error) => {
            let (account, mode) = (realm.account(), realm.mode());
            tracing::warn!(account, %mode, error = %error_chain(&error), "no key to check a checkpoint with");
            return ArchivedCheckpoint::default();
        }
    };
    let checkpoints = Checkpoints::new(archive, key.public(), realm);
    match checkpoints.largest().await {
        Ok(largest) => ArchivedCheckpoint {
            known: largest
                .iter()
                .map(|found| KnownEnd::from_archive(&found.checkpoint))
                .collect(),
            bad: None,
            warning: largest.and_then(|found| found.warning()),
        },
        Err(stays) if stays.is_tampering() => {
            let problem = format!("{stays}.");
            ArchivedCheckpoint {
                bad: Some(Broken { seq: None, problem }),
                ..ArchivedCheckpoint::default()
            }
        }
        Err(stays) => {
            let (account, mode) = (realm.account(), realm.mode());
            tracing::warn!(account, %mode, error = %error_chain(&stays), "the checkpoint cannot be read");
            ArchivedCheckpoint::default()
        }
    }
}
