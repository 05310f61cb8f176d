//! Runs the script of a journey and answers its requests, until it ends or makes no progress.

use crate::chromium;
use crate::fixture::Fixture;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Longest time of a step, with a browser for each of the tests that run beside it. The script gives up then, and
/// reports its position.
const STEP_TIME: Duration = Duration::from_secs(180);
/// Longest time without a line from the script, which writes one after each step. Longer than a step by the time of the
/// report.
const SILENCE: Duration = STEP_TIME.saturating_add(Duration::from_secs(30));
/// Variable that names a folder for screenshots of all pages. Without it there are only those of failures, in
/// `target/browser-screenshots`: each takes as long as everything else that is done to a page.
const SCREENSHOTS: &str = "TOLLGATE_SCREENSHOTS";

/// A process that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fixture {
    /// Plays the journey `journeys/<name>.mjs`.
    ///
    /// # Panics
    /// When it fails, with its output.
    #[track_caller]
    pub fn play(&self, name: &str) {
        let home = tempfile::tempdir().expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/browser/journeys/{name}.mjs"));
        let mut command = Command::new("node");
        command
            .arg(script)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            // The browser keeps its profile and its caches there.
            .env("HOME", home.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap_or_else(|error| panic!("node: {error}")));
        let mut input = running.0.stdin.take().expect("a pipe");
        write_line(&mut input, &self.plan(name));
        let (said, whole) = self.converse(&mut running, input);
        let ended = whole && running.0.wait().expect("the script ends").success();
        let why = if whole { "failed" } else { "took too long" };
        assert!(ended, "The journey {name} {why}.\n{said}");
        println!("The journey {name}:\n{said}");
    }

    /// The first line that a script receives.
    fn plan(&self, name: &str) -> Value {
        json!({
            "name": name,
            "base": self.base,
            "edge": self.edge.url(),
            "packages": chromium::packages(),
            "chromium": chromium::program(),
            "screenshots": screenshots(),
            "picturesOfAll": std::env::var_os(SCREENSHOTS).is_some(),
            "stepMs": u64::try_from(STEP_TIME.as_millis()).expect("a short time"),
        })
    }

    /// Answers requests until the script ends. Returns its output, and true if the output is complete.
    fn converse(&self, running: &mut Running, mut input: ChildStdin) -> (String, bool) {
        let (lines, received) = mpsc::channel();
        let out = BufReader::new(running.0.stdout.take().expect("a pipe"));
        let err = BufReader::new(running.0.stderr.take().expect("a pipe"));
        let copy = lines.clone();
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| lines.send(line))
        });
        std::thread::spawn(move || {
            err.lines()
                .map_while(Result::ok)
                .try_for_each(|line| copy.send(line))
        });
        let mut said = String::new();
        loop {
            match received.recv_timeout(SILENCE) {
                Ok(line) => match question(&line) {
                    Some(question) => {
                        let ask = question["ask"].as_str().unwrap_or_default();
                        write_line(&mut input, &self.answer(ask, &question["with"]));
                    }
                    None => drop(writeln!(said, "{line}")),
                },
                Err(RecvTimeoutError::Disconnected) => return (said, true),
                Err(RecvTimeoutError::Timeout) => return (said, false),
            }
        }
    }
}

/// The folder of screenshots.
fn screenshots() -> PathBuf {
    let dir = std::env::var_os(SCREENSHOTS).map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("browser-screenshots"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&dir).expect("a folder for screenshots");
    dir
}

/// Parses a line that is a request; other lines are text for people.
fn question(line: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    value.get("ask").is_some().then_some(value)
}

/// Writes one line to the script. A failure is ignored, since a script that has ended reports its own end.
fn write_line(input: &mut ChildStdin, value: &Value) {
    let _ = writeln!(input, "{value}");
}

/// The files of all journeys, sorted.
pub fn journeys() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/journeys");
    let names = std::fs::read_dir(dir).expect("the journeys");
    let mut names: Vec<String> = names
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort_unstable();
    names
}
