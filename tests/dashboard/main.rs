//! The dashboard's modules, run by Node.js: amounts are exact to the nano beyond a browser's numbers, and a request
//! that must happen once carries one idempotency key.
#![cfg(test)]

mod words;

use std::path::Path;
use std::process::Command;

/// Stands in for the view library, which needs a page.
const HTML: &str = "export const html = () => null;\nexport const useEffect = () => {};\n\
     export const useState = (value) => [value, () => {}];\nexport const useRef = (current) => ({ current });\n";
/// Stands in for the server: records the keys of requests, and gives scripted answers.
const API: &str = "let made = 0;\nexport const sent = [];\nexport const answers = [];\nexport const newIdempotencyKey = () => `key-${made += 1}`;\n\
     export const post = async (_path, _body, { idempotencyKey }) => { sent.push(idempotencyKey); return answers.shift()(); };\n";

/// Stands in for the signed-in user, whom the checks can change.
const SESSION: &str =
    "export const user = { id: 'usr_1' };\nexport const session = { get: () => ({ user }) };\n";

/// Runs `checks` beside these modules of the dashboard and the files of `others`.
fn run(checks: &str, modules: &[&str], others: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    // Outside a page, Node.js needs the declaration that these files are modules.
    std::fs::write(folder.path().join("package.json"), r#"{"type":"module"}"#).expect("a package");
    for (file, text) in others {
        std::fs::write(folder.path().join(file), text).expect("a stand-in");
    }
    for file in modules {
        let from = root.join("admin/dashboard/web/js").join(file);
        let to = folder.path().join(file);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(from, to).expect("a module");
    }
    let from = root.join("tests/dashboard").join(checks);
    std::fs::copy(from, folder.path().join(checks)).expect("the checks");
    let run = Command::new("node")
        .arg(checks)
        .current_dir(folder.path())
        .output()
        .expect("node");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), "checked");
}

#[test]
fn amounts_are_read_shown_and_typed_exactly() {
    run("amounts.mjs", &["exact.js", "money.js"], &[]);
}

#[test]
fn a_change_keeps_its_idempotency_key_until_its_outcome_is_known() {
    run(
        "once.mjs",
        &["once.js", "store.js", "time.js"],
        &[("html.js", HTML), ("api.js", API), ("session.js", SESSION)],
    );
}

#[test]
fn usage_is_summed_exactly_and_in_its_interval() {
    run(
        "usage.mjs",
        &[
            "exact.js",
            "money.js",
            "reasons.js",
            "words.js",
            "pages/usage/links.js",
            "pages/usage/sums.js",
        ],
        &[("api.js", PAGES)],
    );
}

/// Stands in for the server: returns its pages one by one, and records the cursors of requests.
const PAGES: &str = "export const pages = [];\nexport const cursors = [];\n\
     export const get = async (_path, { cursor }) => { cursors.push(cursor); return pages.shift(); };\n";
