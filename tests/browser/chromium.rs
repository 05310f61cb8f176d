//! The browser of the journeys, and the packages that drive it.

use harness::node_package;
use std::path::PathBuf;

/// The browser's driver and the checker of its pages. The driver is the newest one for the Node of Debian 12: 1.62.0
/// and newer end at once under Node 18.
const PACKAGES: &[&str] = &["playwright-core@1.61.1", "axe-core@4.14.1"];
/// Names the browser's program, should it be none of [`NAMES`].
const VARIABLE: &str = "TOLLGATE_CHROMIUM";
/// Names of the program in distributions.
const NAMES: [&str; 4] = [
    "chromium",
    "google-chrome",
    "google-chrome-stable",
    "chromium-browser",
];

/// The folder in whose `node_modules` the packages are: `target/browser-node`.
pub fn packages() -> PathBuf {
    node_package(env!("CARGO_TARGET_TMPDIR"), "browser-node", PACKAGES)
}

/// The browser's program.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = NAMES.iter().find_map(|name| {
        std::env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|file| file.is_file())
    });
    found.unwrap_or_else(|| {
        panic!(
            "This test needs Chromium or Chrome: install the package chromium (on Ubuntu, where that package is no \
             browser, Google Chrome), or name the program in {VARIABLE}."
        )
    })
}
