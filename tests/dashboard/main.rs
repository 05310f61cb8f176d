//! The dashboard's own arithmetic, run by Node.js: amounts are read and shown to the nano, whatever a browser's numbers can hold.
#![cfg(test)]

use std::path::Path;
use std::process::Command;

#[test]
fn amounts_are_read_shown_and_typed_exactly() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    // Outside a page, Node.js has to be told that these files are modules.
    std::fs::write(folder.path().join("package.json"), r#"{"type":"module"}"#).expect("a package");
    for file in ["exact.js", "money.js"] {
        let from = root.join("admin/web/js").join(file);
        std::fs::copy(from, folder.path().join(file)).expect(file);
    }
    std::fs::copy(
        root.join("tests/dashboard/amounts.mjs"),
        folder.path().join("amounts.mjs"),
    )
    .expect("the checks");
    let run = Command::new("node")
        .arg("amounts.mjs")
        .current_dir(folder.path())
        .output()
        .expect("node");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), "checked");
}
