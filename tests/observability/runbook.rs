//! The runbook's searches: a program logs each text that the runbook searches for.

use std::path::Path;

const SOURCES: [&str; 3] = ["proxy", "admin", "shared"];

/// The texts in quotes of all sources below a folder, comments left out.
fn collect_texts(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            collect_texts(&entry, found);
        } else if entry.extension().is_some_and(|end| end == "rs") {
            let source = std::fs::read_to_string(&entry).unwrap();
            let code = source
                .lines()
                .filter(|line| line.contains('"') && !line.trim_start().starts_with("//"));
            for line in code {
                let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
                found.push_str(&quoted.join("\n"));
                found.push('\n');
            }
        }
    }
}

/// Texts that a line searches our programs' logs for: the alternatives in quotes behind `edge-log` and `admin-log`.
fn searched(line: &str) -> Vec<&str> {
    let searches = line.split("-log \"").skip(1);
    let searches = searches.filter_map(|rest| rest.split_once('"'));
    searches.flat_map(|(texts, _)| texts.split('|')).collect()
}

#[test]
fn it_searches_the_log_for_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for source in SOURCES {
        collect_texts(&root.join(source), &mut all);
    }
    let runbook = std::fs::read_to_string(root.join("docs/guides/runbook.md")).unwrap();
    let mut count = 0;
    for text in runbook.lines().flat_map(searched) {
        assert!(all.contains(text), "no program says {text:?}");
        count += 1;
    }
    assert!(count >= 15, "{count}");
}
