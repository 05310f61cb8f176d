//! One-shot commands of the operator CLI.

use crate::options::common_env;
use crate::process::command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs one-shot commands of `tollgate-admin`.
#[derive(Debug, Clone)]
pub struct Cli {
    binary: PathBuf,
    env: BTreeMap<String, String>,
}

/// Output and exit code of a command.
#[derive(Debug, Clone)]
pub struct CliOutput {
    /// The exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Cli {
    /// Commands of `binary` (`env!("CARGO_BIN_EXE_tollgate-admin")` in a test) on the store at `redis_url`.
    pub fn new(binary: &str, redis_url: impl AsRef<str>) -> Self {
        Self {
            binary: binary.into(),
            env: common_env(redis_url.as_ref()),
        }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Runs a command with nothing on its standard input.
    pub fn run(&self, args: &[&str]) -> CliOutput {
        self.run_with_stdin(args, "")
    }

    /// Runs a command with this text on its standard input.
    pub fn run_with_stdin(&self, args: &[&str], stdin: &str) -> CliOutput {
        ended(&mut self.command(args), stdin)
    }

    /// Returns a command without starting it, so that a test can set arguments, variables or redirections.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut run = command(&self.binary);
        run.args(args).env_clear().envs(&self.env);
        run
    }

    /// Runs a bash script in which `$ADMIN` is the path of the program.
    pub fn script(&self, script: &str) -> CliOutput {
        let mut run = command(Path::new("/bin/bash"));
        run.args(["-c", script]).env_clear().envs(&self.env);
        ended(run.env("ADMIN", &self.binary), "")
    }

    /// Runs a command with `--json`, asserts exit code 0, and returns the JSON document.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.json_exit(args, 0)
    }

    /// Like [`Self::json`], for a command that exits with `code`.
    #[track_caller]
    pub fn json_exit(&self, args: &[&str], code: i32) -> Value {
        self.run(&[args, &["--json"]].concat()).document(code)
    }
}

impl CliOutput {
    /// Asserts the exit code, and returns the JSON document.
    #[track_caller]
    pub fn document(&self, code: i32) -> Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The arguments of a command line without quotes: `words("account list --json")`.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs a command to its end, in a temporary directory of its own.
fn ended(run: &mut Command, stdin: &str) -> CliOutput {
    let dir = tempfile::tempdir().expect("a directory");
    run.current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = run.spawn().expect("the program starts");
    // A command that does not read its input may have exited already.
    let _ = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(stdin.as_bytes()));
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    CliOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
