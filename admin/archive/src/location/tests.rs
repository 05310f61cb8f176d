//! Tests of a directory as archive. `tests/record` tests an S3-compatible service.

use super::*;
use settings::load_from;

fn settings(archive: &str, more: &[(&str, &str)]) -> AuditSettings {
    let named = [("archive", archive)];
    let all = named.iter().chain(more);
    let variables = all.map(|(key, value)| {
        (
            format!("TOLLGATE_AUDIT__{}", key.to_uppercase()),
            (*value).to_owned(),
        )
    });
    load_from(None, variables).unwrap().audit
}

fn directory() -> (tempfile::TempDir, ArchiveLocation) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a b#/%41");
    let location = ArchiveLocation::from_settings(&settings(path.to_str().unwrap(), &[])).unwrap();
    (root, location)
}

#[tokio::test]
async fn a_stored_object_is_read_listed_and_replaced() {
    let (root, location) = directory();
    assert_eq!(location.list("segments").await.unwrap(), Vec::<String>::new());
    assert_eq!(location.get("segments/x").await.unwrap(), None);
    for path in [
        "segments/b/2.json",
        "segments/b/1.json",
        "segments/bb/1.json",
        "other",
    ] {
        location.put(path, path.as_bytes().to_vec()).await.unwrap();
    }
    location.put("segments/b/2.json", b"new".to_vec()).await.unwrap();
    assert_eq!(location.get("segments/b/2.json").await.unwrap().unwrap(), "new");
    assert_eq!(location.get("other").await.unwrap().unwrap(), "other");
    assert_eq!(
        location.list("segments/b").await.unwrap(),
        ["segments/b/1.json", "segments/b/2.json"]
    );
    assert_eq!(location.list("segments").await.unwrap().len(), 3);
    assert_eq!(location.list("").await.unwrap().len(), 4);
    let plain = root.path().join("a b#/%41/segments/bb/1.json");
    assert_eq!(std::fs::read(plain).unwrap(), b"segments/bb/1.json");
}

#[tokio::test]
async fn a_pipe_in_place_of_an_object_is_not_waited_for() {
    let (root, location) = directory();
    location.put("segments/x", b"x".to_vec()).await.unwrap();
    let file = root.path().join("a b#/%41/segments/x");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, Mode::S_IRWXU).unwrap();
    let error = location.get("segments/x").await.unwrap_err().to_string();
    assert!(error.ends_with("it is no file"), "{error}");
}

#[tokio::test]
async fn paths_stay_within_the_archive() {
    let (root, location) = directory();
    std::fs::write(root.path().join("secret"), "x").unwrap();
    for path in ["../../secret", "segments/../../../secret", "/../secret"] {
        let error = location.get(path).await.unwrap_err().to_string();
        assert!(error.starts_with("the archive cannot read"), "{error}");
        assert!(location.put(path, Vec::new()).await.is_err(), "{path}");
    }
    assert_eq!(std::fs::read(root.path().join("secret")).unwrap(), b"x");
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_fails_when_something_is_put() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    let location =
        ArchiveLocation::from_settings(&settings(file.join("below").to_str().unwrap(), &[])).unwrap();
    std::fs::write(&file, "x").unwrap();
    let error = location.put("segments/1", vec![1]).await.unwrap_err().to_string();
    assert!(
        error.starts_with("the archive cannot write `segments/1`: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn bad_settings_name_their_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let secret = ("s3_secret_access_key", "hush");
    let id = ("s3_access_key_id", "me");
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 8] = [
        ("", &[], "audit.archive must"),
        ("ftp://x/y", &[], "audit.archive `ftp://x/y`"),
        (file.path().to_str().unwrap(), &[], "audit.archive `"),
        ("s3:///prefix", &[id, secret], "audit.archive must be s3://"),
        ("s3://bucket/a", &[id], "audit.s3_secret_access_key"),
        ("s3://bucket/a", &[secret], "audit.s3_access_key_id"),
        (
            "s3://bucket/a",
            &[id, secret, ("s3_region", "")],
            "audit.s3_region",
        ),
        (
            "s3://bucket/a",
            &[id, secret, ("s3_endpoint", "localhost:9000")],
            "audit.s3_endpoint",
        ),
    ];
    for (archive, more, key) in cases {
        let error = ArchiveLocation::from_settings(&settings(archive, more))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(key) && error.lines().count() == 1, "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
    let good = settings(
        "s3://bucket/a/b/",
        &[id, secret, ("s3_endpoint", "http://127.0.0.1:1/")],
    );
    let location = ArchiveLocation::from_settings(&good).unwrap();
    assert_eq!(location.at("segments/x").unwrap().as_ref(), "a/b/segments/x");
    assert!(!format!("{location:?}").contains("hush"), "secrets are not shown");
}

/// Root runs the operator's commands, and the admin server's user reads the archive.
#[tokio::test]
async fn files_written_by_root_belong_to_the_owner_of_the_archive() {
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let (root, location) = directory();
    location.put("segments/old/1.json", b"x".to_vec()).await.unwrap();
    let archive = root.path().join("a b#/%41");
    let owner = (4321, 8765);
    chown(&archive, Some(owner.0), Some(owner.1)).unwrap();
    chown(archive.join("segments"), Some(11), Some(12)).unwrap();
    for path in ["segments/old/1.json", "segments/new/1.json", "new/1"] {
        location.put(path, b"y".to_vec()).await.unwrap();
    }
    let owner_of = |path: &str| {
        let about = std::fs::symlink_metadata(archive.join(path)).unwrap();
        (about.uid(), about.gid())
    };
    for path in [
        "segments/old/1.json",
        "segments/new",
        "segments/new/1.json",
        "new",
        "new/1",
    ] {
        assert_eq!(owner_of(path), owner, "{path}");
    }
    assert_eq!(owner_of("segments"), (11, 12), "another user's folder");
    // Outside of the archive nothing changes its owner.
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), archive.join("link")).unwrap();
    location.put("link/1", b"y".to_vec()).await.unwrap();
    assert_eq!(std::fs::metadata(outside.path().join("1")).unwrap().uid(), 0);
}

/// Decision records are for their operator alone, whatever the process was started with.
#[tokio::test]
async fn files_and_folders_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (root, location) = directory();
    location.put("segments/b/1.json", b"x".to_vec()).await.unwrap();
    location.put("segments/b/1.json", b"y".to_vec()).await.unwrap();
    let mut paths = vec![root.path().join("a b#")];
    let mut seen = 0;
    while let Some(path) = paths.pop() {
        let about = std::fs::metadata(&path).unwrap();
        let expected = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.permissions().mode() & 0o777, expected, "{}", path.display());
        if about.is_dir() {
            paths.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}
