//! The official SDKs, installed once below the build's target folder and used from there.

use harness::{node_package, python_package};
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

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(name)
}

impl Sdk {
    /// The Python SDK, in `target/sdk-python`.
    pub fn python() -> Self {
        let dir = python_package(env!("CARGO_TARGET_TMPDIR"), "sdk-python", PYTHON_SDK);
        Self {
            program: dir.join("bin/python"),
            args: vec![script("calls.py")],
        }
    }

    /// The Node SDK, in `target/sdk-node`.
    pub fn node() -> Self {
        let dir = node_package(env!("CARGO_TARGET_TMPDIR"), "sdk-node", &[NODE_SDK]);
        Self {
            program: "node".into(),
            args: vec![script("calls.mjs"), dir],
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
