//! Python and Node packages for tests: installed once below the target folder.

use crate::net::REPOSITORY;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a step of an installation, and returns its output. Panics with `advice`, which says what this machine lacks.
fn step(program: impl AsRef<Path>, args: &[&str], advice: &str) -> Vec<u8> {
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
    output.stdout
}

/// Installs into the folder `name` beside `scratch`, unless `package` is there already. Test processes that run at the
/// same time wait for each other.
fn once(scratch: &str, name: &str, package: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let target = Path::new(scratch).parent().expect("the target folder");
    std::fs::create_dir_all(target).expect("the target folder");
    let dir = target.join(name);
    let lock = File::create(dir.with_extension("lock")).expect("a lock file");
    lock.lock().expect("the lock");
    let done = dir.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == package) {
        return dir;
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).expect("an unfinished installation is removed");
    }
    install(&dir);
    std::fs::write(done, package).expect("a mark");
    dir
}

/// The folder of a virtual environment of Python that has `package`; its programs are in `bin`. `scratch` is the
/// caller's `CARGO_TARGET_TMPDIR`.
///
/// # Panics
/// If the installation fails; the message says what to install.
pub fn python_package(scratch: &str, name: &str, package: &str) -> PathBuf {
    python_packages(scratch, name, &[package])
}

/// Like [`python_package`], with several packages in one environment. What they need in turn has the releases of
/// `tests/python/<name>.txt`, a list of pip, so that a release of a stranger's package changes no test. With
/// `TOLLGATE_RENEW_PYTHON` set, an environment that is installed writes its list anew.
///
/// # Panics
/// If the installation fails; the message says what to install.
pub fn python_packages(scratch: &str, name: &str, packages: &[&str]) -> PathBuf {
    let list = format!("{REPOSITORY}/tests/python/{name}.txt");
    let renews = std::env::var_os("TOLLGATE_RENEW_PYTHON").is_some();
    let pinned = match renews {
        true => String::new(),
        false => std::fs::read_to_string(&list).unwrap_or_else(|error| panic!("{list}: {error}")),
    };
    once(
        scratch,
        name,
        &format!("{}\n{pinned}", packages.join(" ")),
        |dir| {
            let advice = "This test needs Python 3 with venv: install the packages python3 and python3-venv.";
            step("python3", &["-m", "venv", &dir.display().to_string()], advice);
            let advice =
                "This test installs packages once with pip, from the package index that pip is set to.";
            let python = dir.join("bin/python");
            let options: &[&str] = if renews { &[] } else { &["--constraint", &list] };
            let install = ["-m", "pip", "install", "--quiet"];
            step(&python, &[&install[..], options, packages].concat(), advice);
            if renews {
                let installed = step(&python, &["-m", "pip", "freeze"], advice);
                std::fs::write(&list, installed).expect("the list is written");
            }
        },
    )
}

/// The folder in whose `node_modules` the `packages` are. `scratch` is the caller's `CARGO_TARGET_TMPDIR`.
///
/// # Panics
/// If the installation fails; the message says what to install.
pub fn node_package(scratch: &str, name: &str, packages: &[&str]) -> PathBuf {
    once(scratch, name, &packages.join(" "), |dir| {
        let advice = "This test needs Node 18 or newer and npm: install the packages nodejs and npm. \
                      npm installs the packages once, from the registry that it is set to.";
        let prefix = dir.display().to_string();
        let options = ["install", "--no-audit", "--no-fund", "--prefix", &prefix];
        step("npm", &[&options[..], packages].concat(), advice);
    })
}
