//! `tollgate-admin audit` on trails and exports that are whole, cut, changed, or cannot be compared.

use crate::audit_writer::lines;
use crate::fixture::{BINARY, Fixture, text};
use crate::trail_fixture::{TrailFixture, audit, broken, forge, rewrite};
use domain::mode::Mode;
use harness::{Cli, REPOSITORY, Redis, Seed, assert_fields};
use serde_json::{Value, json};
use store::account::ModeField;
use store::keys::Realm;

#[tokio::test]
async fn a_trail_in_order_verifies() {
    let fixture = TrailFixture::open().await;
    let verdict = fixture.verify(&[], 0);
    for (field, value) in [
        ("ok", json!(true)),
        ("entries", json!(50)),
        ("firstBroken", Value::Null),
        ("problem", Value::Null),
        ("checkpoint", Value::Null),
        ("endProven", json!(false)),
    ] {
        assert_eq!(verdict[field], value, "{field}: {verdict}");
    }
    let warning = text(&verdict, "/warnings/0");
    assert!(
        warning.contains("no signed checkpoint") && warning.contains("audit.archive"),
        "{verdict}"
    );
    let (file, note) = fixture.export("export.jsonl");
    let online = fixture.verify(&["--checkpoint", &note], 0);
    assert_eq!(online["checkpoint"]["source"], "note");
    assert_eq!(online["endProven"], json!(true));
    let alone = fixture.verify(&["--file", &file], 0);
    assert_eq!(
        (&alone["checkpoint"]["source"], &alone["endProven"]),
        (&json!("store"), &json!(false))
    );
    assert!(
        text(&alone, "/warnings/0").contains("no signed checkpoint"),
        "{alone}"
    );
    let archived = fixture.note();
    std::fs::create_dir_all(archived.parent().unwrap()).unwrap();
    std::fs::copy(&note, &archived).unwrap();
    for (args, source) in [
        (&["--file", &file][..], "archive"),
        (&["--file", &file, "--checkpoint", &note], "note"),
    ] {
        let verdict = fixture.verify(args, 0);
        assert_fields!(verdict, { "ok": true, "entries": 50, "endProven": true });
        assert_fields!(verdict, { "checkpoint": { "source": source, "size": 50, "hash": verdict["hash"] } });
        assert_eq!(verdict["warnings"], json!([]));
    }
    assert_eq!(fixture.verify(&["--mode", "test"], 0)["entries"], json!(0));
    let reported = fixture
        .cli
        .run(&["audit", "verify", "--account", &fixture.account.id]);
    assert!(
        reported.stdout.contains("Entries 1 to 50 are in order."),
        "{reported:?}"
    );
    let plain = fixture
        .cli
        .run(&["audit", "export", "--account", &fixture.account.id]);
    assert_eq!(plain.stdout, std::fs::read_to_string(&file).unwrap());
}

#[tokio::test]
async fn an_export_is_verified_without_a_store() {
    let fixture = TrailFixture::open().await;
    let (file, note) = fixture.export("export.jsonl");
    let (key, alone, id) = (fixture.key(), fixture.alone(), &fixture.account.id);
    let verify =
        |args: &[&str], code| audit(&alone, id, &[&["verify", "--file", &file], args].concat(), code);
    let proven = verify(&["--checkpoint", &note, "--key", &key], 0);
    assert_fields!(proven, { "ok": true, "endProven": true });
    verify(&["--checkpoint", &note, "--key", &key, "--require-proof"], 0);
    let nothing = verify(&[], 0);
    assert_fields!(nothing, { "ok": true, "endProven": false, "checkpoint": null });
    assert!(
        nothing["warnings"]
            .to_string()
            .contains("the end was not compared"),
        "{nothing}"
    );
    let unchecked = verify(&["--checkpoint", &note], 2);
    assert!(text(&unchecked, "/error").contains("--key"), "{unchecked}");
    // The archive's note suffices where the store is unreachable.
    let path = fixture.note();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(&note, &path).unwrap();
    let archived = verify(&["--key", &key], 0);
    assert_eq!(
        (&archived["checkpoint"]["source"], &archived["endProven"]),
        (&json!("archive"), &json!(true))
    );
    rewrite(&file, |lines| lines.truncate(41));
    broken(&verify(&["--key", &key], 1), 42, "missing at the end");
    broken(
        &verify(&["--checkpoint", &note, "--key", &key], 1),
        42,
        "missing at the end",
    );
    assert_eq!(verify(&[], 0)["endProven"], json!(false), "no checkpoint");
    assert_eq!(
        verify(&["--require-proof"], 3)["ok"],
        json!(true),
        "nothing is wrong"
    );
    rewrite(&file, |lines| lines[5] = lines[5].replace("vk_", "vk-"));
    broken(&verify(&["--require-proof"], 1), 6, "does not match its hash");
    assert_eq!(
        audit(&alone, id, &["verify"], 3)["code"],
        "STORE",
        "the result is undetermined"
    );
}

/// An older program does not know whether a line of a later release is in order.
#[tokio::test]
async fn a_line_of_a_later_release_is_not_broken() {
    let fixture = TrailFixture::open().await;
    fixture.verify(&[], 0);
    let keys = &fixture.account.keys;
    let (log, record) = (keys.live().audit(), keys.record());
    let _: i64 = fixture
        .redis
        .command(&["RPUSH", &log, "51 1795900000000 v99 something new"]);
    let field = ModeField::AuditSeq.name(Mode::Live);
    let _: i64 = fixture.redis.command(&["HINCRBY", &record, &field, "1"]);
    let undetermined = fixture.verify(&[], 3);
    assert_fields!(undetermined, { "ok": false, "code": "LATER_RELEASE" });
    let why = text(&undetermined, "/error");
    assert!(
        why.contains("audit entry 51") && why.contains("upgrade this program"),
        "{why}"
    );
    let checked = fixture.cli.json_exit(&["ledger", "check", "--trail"], 3);
    assert!(
        checked["inconclusive"].to_string().contains("later release"),
        "{checked}"
    );
    // A line that is lost is none of a later release.
    let _: i64 = fixture.redis.command(&["HINCRBY", &record, &field, "1"]);
    let _: String = fixture
        .redis
        .command(&["LSET", &log, "-1", "51 1795900000000 {}"]);
    fixture.verify(&[], 1);
}

#[tokio::test]
async fn an_archive_that_cannot_be_read_is_no_archive_without_a_checkpoint() {
    let fixture = TrailFixture::open().await;
    let (file, note) = fixture.export("export.jsonl");
    // A path below a file cannot be read, also by root.
    let place = fixture.note().parent().unwrap().to_owned();
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, "").unwrap();
    let is_undetermined = |document: &Value| {
        assert_fields!(document, { "ok": false, "code": "ARCHIVE" });
        assert!(text(document, "/error").contains("cannot be read"), "{document}");
    };
    for args in [&[][..], &["--file", &file]] {
        is_undetermined(&fixture.verify(args, 3));
    }
    let key = fixture.key();
    let alone = ["verify", "--file", &file, "--key", &key];
    is_undetermined(&audit(&fixture.alone(), &fixture.account.id, &alone, 3));
    // A note that was given is enough for an export.
    fixture.verify(&["--file", &file, "--checkpoint", &note], 0);
    // A fault of the export itself is certain.
    rewrite(&file, |lines| lines[5] = lines[5].replace("vk_", "vk-"));
    broken(
        &fixture.verify(&["--file", &file], 1),
        6,
        "does not match its hash",
    );
}

#[tokio::test]
async fn a_store_that_was_written_anew_proves_no_export() {
    let fixture = TrailFixture::open().await;
    let (_, note) = fixture.export("before.jsonl");
    let (before, hashes) = (fixture.writer.lines().await, fixture.writer.hashes().await);
    let archived = fixture.note();
    std::fs::create_dir_all(archived.parent().unwrap()).unwrap();
    std::fs::copy(&note, &archived).unwrap();
    let mut changed = before.clone();
    changed[22] = String::from_utf8(changed[22].clone())
        .unwrap()
        .replace("bot-", "bat-")
        .into_bytes();
    // All later hashes are recomputed.
    fixture.writer.forge(&changed, &hashes[..22], 50).await;
    let file = fixture.path("anew.jsonl").display().to_string();
    fixture.audit(&["export", "--out", &file], 0);
    broken(&fixture.verify(&["--file", &file], 1), 50, "its hash differs");
    // The original trail, longer than the note: its last lines are old, so that the note should cover them, or new.
    for is_new in [false, true] {
        fixture.writer.forge(&before, &hashes, 50).await;
        match is_new {
            true => fixture.writer.write_now(&lines(3)).await,
            false => fixture.writer.write(&lines(3)).await,
        }
        fixture.audit(&["export", "--out", &file], 0);
        for args in [&["--file", &file][..], &[]] {
            let verdict = fixture.verify(args, 0);
            assert_fields!(verdict, { "ok": true, "endProven": is_new, "provenTo": 50 });
            let warnings = verdict["warnings"].to_string();
            let is_said = warnings.contains("entries 51 to 53 are covered by no signed checkpoint");
            assert_eq!(is_said, !is_new, "{warnings}");
        }
    }
    let given = ["--file", &file, "--checkpoint", &note];
    broken(&fixture.verify(&given, 1), 51, "beyond the end");
    let older = fixture.verify(&[&given[..], &["--older"]].concat(), 0);
    assert_eq!(
        (&older["checkpoint"]["size"], &older["endProven"]),
        (&json!(50), &json!(false))
    );
    assert!(
        text(&older, "/warnings/0").contains("older than the file"),
        "{older}"
    );
}

#[tokio::test]
async fn notes_and_keys_must_be_the_right_ones() {
    let fixture = TrailFixture::open().await;
    let (file, note) = fixture.export("export.jsonl");
    let verify = |args: &[&str], code| fixture.verify(&[&["--file", &file], args].concat(), code);
    let good = std::fs::read_to_string(&note).unwrap();
    let bad = fixture.path("bad.note").display().to_string();
    let put = |text: &str| std::fs::write(&bad, text).unwrap();
    put(&good.replacen("\n50\n", "\n49\n", 1));
    broken(
        &verify(&["--checkpoint", &bad], 1),
        Value::Null,
        "signature does not fit",
    );
    put("nonsense");
    broken(&verify(&["--checkpoint", &bad], 1), Value::Null, "no signed note");
    broken(
        &fixture.verify(&["--checkpoint", &bad], 1),
        Value::Null,
        "no signed note",
    );
    let other = Redis::start();
    let stranger = Seed::new(&other.store()).await.account("builder").await;
    let cli = Cli::new(BINARY, other.url());
    let key = text(&cli.json(&["audit", "key"]), "/publicKey").to_owned();
    broken(
        &verify(&["--checkpoint", &note, "--key", &key], 1),
        Value::Null,
        "no signature of the expected key",
    );
    let theirs = ["verify", "--file", &file, "--checkpoint", &note];
    broken(
        &audit(&cli, &stranger.id, &theirs, 1),
        Value::Null,
        "another chain",
    );
    for args in [
        &["--key", "x"][..],
        &["--after", "-1"],
        &["--file", "/nowhere"],
        &["--checkpoint", "/nowhere"],
    ] {
        let output = fixture
            .cli
            .run(&[&["audit", "verify", "--account", &fixture.account.id], args].concat());
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
    }
    assert_fields!(audit(&fixture.cli, "acct_none", &["verify"], 1), { "code": "NOT_FOUND" });
}

#[tokio::test]
async fn an_export_must_be_what_the_store_has() {
    let fixture = TrailFixture::open().await;
    let (file, note) = fixture.export("export.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let verify = |code| fixture.verify(&["--file", &file], code);
    // All hashes after the changed entry match again, and verification still reports the entry.
    rewrite(&file, |lines| forge(lines, 22));
    broken(&verify(1), 23, "differs from the entry in the store");
    broken(
        &fixture.verify(&["--file", &file, "--checkpoint", &note], 1),
        50,
        "its hash differs",
    );
    rewrite(&file, |lines| {
        lines.truncate(30);
        lines.push("x".to_owned());
    });
    broken(&verify(1), 23, "differs from the entry in the store");
    std::fs::write(&file, whole.lines().take(20).collect::<Vec<_>>().join("\n")).unwrap();
    broken(&verify(1), 21, "--checkpoint");
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(verify(0)["ok"], json!(true));
    // An earlier export is proven with the checkpoint that was taken with it.
    fixture.writer.write_now(&lines(3)).await;
    broken(&verify(1), 51, "--checkpoint");
    let old = fixture.verify(&["--file", &file, "--checkpoint", &note], 0);
    assert_eq!(old["endProven"], json!(true));
    let (newer, _) = fixture.export("newer.jsonl");
    broken(
        &fixture.verify(&["--file", &newer, "--checkpoint", &note], 1),
        51,
        "beyond the end",
    );
    // An export of a part.
    let part = fixture.path("part.jsonl").display().to_string();
    let made = fixture.audit(&["export", "--out", &part, "--after", "40"], 0);
    assert_eq!(made["entries"], json!(13));
    broken(
        &fixture.verify(&["--file", &part], 1),
        1,
        "entry 41 stands in its place",
    );
    let verdict = fixture.verify(&["--file", &part, "--after", "40"], 0);
    assert_fields!(verdict, { "entries": 13, "endProven": false });
    assert!(verdict["warnings"].to_string().contains("on trust"), "{verdict}");
    // The part has entry 50, so it can be compared with the checkpoint of entry 50.
    std::fs::create_dir_all(fixture.note().parent().unwrap()).unwrap();
    std::fs::copy(&note, fixture.note()).unwrap();
    let verdict = fixture.verify(&["--file", &part, "--after", "40"], 0);
    assert_eq!(verdict["endProven"], json!(true));
}

#[tokio::test]
async fn a_store_that_was_changed_is_named() {
    let fixture = TrailFixture::open().await;
    let (_, note) = fixture.export("export.jsonl");
    let (lines, hashes) = (fixture.writer.lines().await, fixture.writer.hashes().await);
    let mut changed = lines.clone();
    changed[11] = b"12 5 nonsense".to_vec();
    fixture.writer.forge(&changed, &hashes, 50).await;
    broken(&fixture.verify(&[], 1), 12, "cannot be read");
    fixture.writer.forge(&lines[..45], &hashes[..45], 50).await;
    broken(&fixture.verify(&[], 1), 46, "the account's record counts them");
    fixture.writer.forge(&lines[..45], &hashes[..45], 45).await;
    assert_fields!(fixture.verify(&[], 0), { "entries": 45 }, "the store alone shows no fault");
    broken(
        &fixture.verify(&["--checkpoint", &note], 1),
        46,
        "missing at the end",
    );
    fixture.writer.forge(&lines, &hashes, 50).await;
    assert_eq!(fixture.verify(&["--checkpoint", &note], 0)["ok"], json!(true));
    let reported = fixture
        .cli
        .run(&["audit", "verify", "--account", &fixture.account.id]);
    assert_eq!(reported.code, Some(0), "{reported:?}");
}

#[tokio::test]
async fn a_list_that_hides_entries_is_named() {
    let fixture = TrailFixture::open().await;
    assert_eq!(fixture.verify(&[], 0)["ok"], json!(true));
    let realm = fixture.account.keys.live();
    let every = realm.audit_index(None, Some("decision.denied"));
    let agent = realm.audit_index(Some("bot-1"), None);
    let both = realm.audit_index(Some("bot-1"), Some("decision.denied"));
    for (key, end) in [(&every, "RPOP"), (&agent, "LPOP"), (&both, "RPOP")] {
        let number: u64 = fixture.redis.command(&[end, key]);
        let verdict = fixture.verify(&[], 1);
        broken(&verdict, Value::Null, "the list of entries of");
        let back = end.replace("POP", "PUSH");
        let _: u64 = fixture.redis.command(&[&back, key, &number.to_string()]);
        assert_eq!(fixture.verify(&[], 0)["ok"], json!(true), "{key}");
    }
    // The archive's count is one too high, as if the missing entry were archived.
    let archived = realm.audit_archived();
    let field = Realm::audit_count(Some("bot-1"), None);
    let _: u64 = fixture.redis.command(&["HSET", &archived, &field, "1"]);
    broken(&fixture.verify(&[], 1), Value::Null, "agent `bot-1`");
}

/// An output path that is not a regular file is written to, not replaced.
#[tokio::test]
async fn an_export_replaces_no_device_no_pipe_and_no_link() {
    let fixture = TrailFixture::open().await;
    let (file, _) = fixture.export("export.jsonl");
    let expected = std::fs::read(&file).unwrap();
    let export = |name: &str| {
        let out = fixture.path(name).display().to_string();
        fixture.audit(&["export", "--out", &out], 0)
    };
    for target in ["there", "not there"] {
        if target == "there" {
            std::fs::write(fixture.path(target), "old").unwrap();
        }
        let link = format!("link to what is {target}");
        std::os::unix::fs::symlink(target, fixture.path(&link)).unwrap();
        export(&link);
        assert!(fixture.path(&link).is_symlink(), "{link}");
        assert_eq!(std::fs::read(fixture.path(target)).unwrap(), expected, "{link}");
    }
    std::os::unix::fs::symlink("/dev/null", fixture.path("null")).unwrap();
    export("null");
    assert_eq!(
        std::fs::read_link(fixture.path("null")).unwrap().as_os_str(),
        "/dev/null"
    );
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());

    let pipe = fixture.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    export("pipe");
    assert_eq!(reader.join().unwrap(), expected);
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
}

#[tokio::test]
async fn the_program_of_the_docs_verifies_an_export() {
    let fixture = TrailFixture::open().await;
    let (file, _) = fixture.export("export.jsonl");
    let docs = std::fs::read_to_string(format!("{REPOSITORY}/docs/reference/audit.md")).unwrap();
    let (_, program) = docs.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let run = || {
        let run = std::process::Command::new("python3")
            .args(["-c", program, &file])
            .output();
        let output = run.expect("python3");
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let hash = fixture.verify(&[], 0)["hash"].as_str().unwrap().to_owned();
    let (ok, said, errors) = run();
    assert!(ok, "{errors}");
    assert_eq!(said, format!("50 {hash}\n"));
    rewrite(&file, |lines| lines[22] = lines[22].replace("key_1", "key_2"));
    let (ok, _, errors) = run();
    assert!(!ok && errors.contains("entry 23"), "{errors}");
}

#[tokio::test]
async fn the_key_survives_the_rotation_of_the_master_key() {
    let management = Fixture::start().await;
    let cli = Cli::new(BINARY, management.redis.url());
    let key = cli.json(&["audit", "key"])["publicKey"].clone();
    let new = "FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxc=";
    let name = "TOLLGATE_SECRETS__MASTER_KEY";
    let both = cli
        .clone()
        .env(name, format!("{new},{}", harness::TEST_MASTER_KEY));
    assert_eq!(both.json(&["keys", "rotate"])["checkpointKey"], "reencrypted");
    assert_eq!(both.json(&["keys", "rotate"])["checkpointKey"], "current");
    let renewed = cli.clone().env(name, new);
    assert_eq!(renewed.json(&["audit", "key"])["publicKey"], key);
    let lost = cli.run(&["audit", "key", "--json"]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    let rotated = cli.run(&["keys", "rotate", "--json"]);
    let rotated: Value = serde_json::from_str(&rotated.stdout).unwrap();
    assert_eq!(rotated["checkpointKey"], "unopenable");
}
