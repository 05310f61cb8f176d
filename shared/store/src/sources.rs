//! The sources of this crate, for tests of rules that every file keeps.

use std::path::Path;

/// Returns each file below `src` with this extension: its path there and its text.
pub(crate) fn sources(extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        "",
        extension,
        &mut found,
    );
    found
}

fn collect(folder: &Path, below: &str, extension: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}
