//! A store over its `maxmemory`: it refuses writes, and entries are read, verified, exported and archived as before.

use crate::audit_writer::{AuditWriter, lines};
use crate::fixture::{BINARY, FULL, Fixture, success};
use crate::trail_fixture::audit;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Cli, until};
use serde_json::json;
use store::StoreError;
use store::audit::chain::Chain;

/// Entries that the archiver leaves in the store.
const LEFT: u64 = 10;

#[tokio::test]
async fn a_full_store_is_read_and_archived() {
    let fixture = Fixture::start().await;
    let (account, api) = fixture.account("builder").await;
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    AuditWriter::new(&fixture.store, &account, Mode::Live)
        .write(&lines(50))
        .await;
    let dir = tempfile::tempdir().unwrap();
    let (archive, file, note) = (
        dir.path().join("archive").display().to_string(),
        dir.path().join("export").display().to_string(),
        dir.path().join("note").display().to_string(),
    );
    let cli = Cli::new(BINARY, fixture.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", &archive);
    let export = ["export", "--out", &file, "--checkpoint", &note];
    let first = audit(&cli, &account.id, &export, 0);

    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let list = api.get("/v1/audit?limit=5").await;
    success(&list, 200);
    assert_eq!(list.json()["logs"].as_array().unwrap().len(), 5, "{list:?}");
    success(&api.get("/v1/thresholds").await, 200);
    success(&api.get("/v1/audit?type=decision.approved").await, 200);
    assert_eq!(
        audit(&cli, &account.id, &["verify"], 0)["entries"],
        first["entries"]
    );
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&note).unwrap();
    assert_eq!(audit(&cli, &account.id, &export, 0)["ok"], json!(true));

    let options = AdminOptions::new(BINARY, fixture.redis.url())
        .env("TOLLGATE_AUDIT__ARCHIVE", &archive)
        .env("TOLLGATE_AUDIT__SEGMENT_ENTRIES", "7")
        .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", LEFT.to_string());
    let admin = Admin::start(options);
    let chain = Chain::new(&fixture.store, account.keys.live());
    until("entries that left the full store", async || {
        let backlog = chain.backlog().await.unwrap();
        backlog.live <= LEFT
    })
    .await;
    for name in [
        "audit_seals_failed",
        "archiving_failed",
        "audit_checkpoints_failed",
    ] {
        let failed: u64 = admin.metric(&format!("tollgate_admin_{name}_total")).expect(name);
        assert_eq!(failed, 0, "{name}\n{}", admin.logs());
    }
    assert_eq!(
        audit(&cli, &account.id, &["verify"], 0)["entries"],
        first["entries"]
    );
    let reader = admin.caller(&key.secret);
    success(&reader.get("/v1/audit?limit=50").await, 200);
}

/// A pipeline or a transaction that a full store refuses is a refusal of the server: nothing ran.
#[tokio::test]
async fn a_refusal_within_a_pipeline_is_a_refusal() {
    let fixture = Fixture::start().await;
    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    for is_transaction in [true, false] {
        let mut pipeline = redis::pipe();
        if is_transaction {
            pipeline.atomic();
        }
        pipeline.cmd("GET").arg("x").cmd("SET").arg("x").arg(1);
        let answer: Result<(Option<String>, String), StoreError> = fixture.store.pipeline(&pipeline).await;
        let error = answer.unwrap_err();
        assert!(
            matches!(&error, StoreError::Refused { code, .. } if code == "OOM"),
            "{error:?}"
        );
        assert!(!error.may_have_run());
    }
}
