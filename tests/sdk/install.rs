//! The official SDKs, installed once below the build's target folder and used from there.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The Python SDK that is proved to work.
const PYTHON_SDK: &str = "openai==3.52.0";
/// The Node SDK that is proved to work: the newest one for the Node that Debian ships.
const NODE_SDK: &str = "openai@6.30.1";

/// How to run the script of one SDK.
pub struct Sdk {
    program: PathBuf,
    args: Vec<PathBuf>,
}

/// The target folder.
fn target() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().expect("the target folder").to_owned()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(name)
}

/// Runs a step of an installation; what is missing on this machine is said in one line.
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

/// Installs into `dir` unless `what` is there already. Test processes that run at the same time wait for each other.
fn once(dir: &Path, what: &str, install: impl FnOnce()) {
    std::fs::create_dir_all(target()).expect("the target folder");
    let lock = File::create(dir.with_extension("lock")).expect("a lock file");
    lock.lock().expect("the lock");
    let done = dir.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == what) {
        return;
    }
    if dir.exists() {
        std::fs::remove_dir_all(dir).expect("an unfinished installation is removed");
    }
    install();
    std::fs::write(done, what).expect("a mark");
}

impl Sdk {
    /// The Python SDK, in `target/sdk-python`.
    pub fn python() -> Self {
        let dir = target().join("sdk-python");
        let program = dir.join("bin/python");
        once(&dir, PYTHON_SDK, || {
            let advice = "The test of the Python SDK needs Python 3 with venv: install the packages python3 and python3-venv.";
            step("python3", &["-m", "venv", &dir.display().to_string()], advice);
            let advice = "The test of the Python SDK installs it once with pip, from the package index that pip is set to.";
            step(&program, &["-m", "pip", "install", "--quiet", PYTHON_SDK], advice);
        });
        let args = vec![script("calls.py")];
        Self { program, args }
    }

    /// The Node SDK, in `target/sdk-node`.
    pub fn node() -> Self {
        let dir = target().join("sdk-node");
        once(&dir, NODE_SDK, || {
            let advice = "The test of the Node SDK needs Node 20 or newer and npm: install the packages nodejs and npm. \
                          npm installs the SDK once, from the registry that it is set to.";
            let prefix = dir.display().to_string();
            step(
                "npm",
                &[
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--prefix",
                    &prefix,
                    NODE_SDK,
                ],
                advice,
            );
        });
        let args = vec![script("calls.mjs"), dir];
        Self {
            program: "node".into(),
            args,
        }
    }

    /// Runs the script with `input`; what it prints.
    pub fn run(&self, input: &str) -> String {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let program = self.program.display();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input.as_bytes())
            .expect("the script reads its input");
        let output = child.wait_with_output().expect("the script ends");
        assert!(
            output.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}
