//! The dashboard's words for reasons and checks are those of the table of reasons.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test dashboard words` writes them anew.

use domain::reason::{Denial, TITLES};
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/admin/dashboard/web/js/reasons.js");
const REWRITE: &str = "TOLLGATE_REWRITE_DOCS";

fn module() -> String {
    let mut text = "/**\n * Reasons and checks as people read them. Written by tests/dashboard/words.rs from shared/domain/src/reason.rs.\n */\n\n\
                    /** Why something was denied. */\nexport const REASONS = {\n"
        .to_owned();
    for (word, title, _) in TITLES {
        writeln!(text, "  {word}: '{title}',").unwrap();
    }
    text.push_str("};\n\n/** The checks, where they are called otherwise than the denial by them. */\nexport const CHECKS = {\n");
    for (word, title, check) in TITLES {
        if let Some(check) = check.filter(|check| check != title) {
            writeln!(text, "  {word}: '{check}',").unwrap();
        }
    }
    text.push_str("};\n\n/** The reasons for which calls are denied; the others are those of spends and escrows. */\nexport const CALL_REASONS = [\n");
    for denial in Denial::ALL {
        writeln!(text, "  '{}',", denial.reason()).unwrap();
    }
    text.push_str("];\n");
    text
}

#[test]
fn the_dashboard_has_the_words_of_the_table() {
    let module = module();
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(FILE, &module).unwrap();
    }
    let found = std::fs::read_to_string(FILE).unwrap();
    assert_eq!(found, module, "{REWRITE}=1 writes {FILE} anew");
}
