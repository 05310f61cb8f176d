//! The clients, installed once below the build's target folder and used from there.

use harness::{node_package, python_package, python_packages};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The Python SDK that is proved to work.
pub const PYTHON_SDK: &str = "openai==3.52.0";
/// The Node SDK that is proved to work: the newest one for the Node that Debian ships.
pub const NODE_SDK: &str = "openai@6.30.1";

/// The Python frameworks that are proved to work, in one environment.
pub const PYTHON_FRAMEWORKS: [&str; 6] = [
    "openai==3.57.0",
    "langchain-core==1.8.3",
    "langchain-openai==1.7.4",
    "openai-agents==0.24.0",
    "litellm==1.110.2",
    "pydantic-ai-slim==2.68.0",
];
/// The release of LlamaIndex that is proved to work. It needs an earlier SDK of OpenAI than the other frameworks.
pub const LLAMAINDEX: [&str; 4] = [
    "openai==2.54.0",
    "llama-index-core==0.14.25",
    "llama-index-llms-openai==0.8.3",
    "llama-index-embeddings-openai==0.7.0",
];
/// The Node framework that is proved to work: the newest one for the Node that Debian ships.
pub const NODE_FRAMEWORKS: [&str; 2] = ["ai@6.0.325", "@ai-sdk/openai@3.0.141"];
/// The Codex command line that is proved to work; its package has the program for each platform.
pub const CODEX: &str = "@openai/codex@0.169.0";

/// Command that runs the script of one client.
pub struct Sdk {
    program: PathBuf,
    args: Vec<PathBuf>,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(name)
}

impl Sdk {
    /// A script for the Python SDK, which is in `target/sdk-python`.
    pub fn python(name: &str) -> Self {
        Self::of_python(
            &python_package(env!("CARGO_TARGET_TMPDIR"), "sdk-python", PYTHON_SDK),
            name,
        )
    }

    /// A script for the Node SDK, which is in `target/sdk-node`.
    pub fn node(name: &str) -> Self {
        Self::of_node(
            node_package(env!("CARGO_TARGET_TMPDIR"), "sdk-node", &[NODE_SDK]),
            name,
        )
    }

    /// The script for the Python frameworks, which are in `target/frameworks-python`.
    pub fn python_frameworks() -> Self {
        let scratch = env!("CARGO_TARGET_TMPDIR");
        Self::of_python(
            &python_packages(scratch, "frameworks-python", &PYTHON_FRAMEWORKS),
            "frameworks.py",
        )
    }

    /// The interpreter with the Python SDK.
    pub fn python_program() -> PathBuf {
        python_package(env!("CARGO_TARGET_TMPDIR"), "sdk-python", PYTHON_SDK).join("bin/python")
    }

    /// The interpreter with the Python frameworks.
    pub fn frameworks_python_program() -> PathBuf {
        let scratch = env!("CARGO_TARGET_TMPDIR");
        python_packages(scratch, "frameworks-python", &PYTHON_FRAMEWORKS).join("bin/python")
    }

    /// A script for LlamaIndex, which is in `target/llamaindex-python`.
    pub fn llamaindex(name: &str) -> Self {
        let scratch = env!("CARGO_TARGET_TMPDIR");
        Self::of_python(&python_packages(scratch, "llamaindex-python", &LLAMAINDEX), name)
    }

    /// A script for the Node framework, which is in `target/frameworks-node`.
    pub fn node_frameworks(name: &str) -> Self {
        let scratch = env!("CARGO_TARGET_TMPDIR");
        Self::of_node(node_package(scratch, "frameworks-node", &NODE_FRAMEWORKS), name)
    }

    /// A script for Codex, which is in `target/codex`.
    pub fn codex(name: &str) -> Self {
        Self::of_node(node_package(env!("CARGO_TARGET_TMPDIR"), "codex", &[CODEX]), name)
    }

    fn of_python(installed: &Path, name: &str) -> Self {
        Self {
            program: installed.join("bin/python"),
            args: vec![script(name)],
        }
    }

    fn of_node(installed: PathBuf, name: &str) -> Self {
        Self {
            program: "node".into(),
            args: vec![script(name), installed],
        }
    }

    /// Runs the script with `input`. Returns its output.
    pub fn run(&self, input: &str) -> String {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            // Otherwise Python writes compiled modules beside the scripts.
            .env("PYTHONDONTWRITEBYTECODE", "1");
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
