//! The Standard Webhooks library for Python, installed once below the build's target folder and used from there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The library that is proved to work.
const LIBRARY: &str = "standardwebhooks==1.1.0";

fn step(program: impl AsRef<Path>, args: &[&str], advice: &str) {
    let program = program.as_ref();
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}. {advice}", program.display()));
    assert!(
        output.status.success(),
        "{} {args:?}: {}{}\n{advice}",
        program.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The Python that has the library. Test processes that run at the same time wait for each other.
pub fn python() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = scratch
        .parent()
        .expect("the target folder")
        .join("webhooks-python");
    let program = dir.join("bin/python");
    let lock = File::create(dir.with_extension("lock")).expect("a lock file");
    lock.lock().expect("the lock");
    let done = dir.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == LIBRARY) {
        return program;
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("an unfinished installation is removed");
    }
    let advice = "The test of webhook signatures needs Python 3 with venv: install the packages python3 and python3-venv.";
    step("python3", &["-m", "venv", &dir.display().to_string()], advice);
    let advice = "The test of webhook signatures installs a library once with pip, from the package index that pip is set to.";
    step(&program, &["-m", "pip", "install", "--quiet", LIBRARY], advice);
    std::fs::write(done, LIBRARY).expect("a mark");
    program
}
