//! Child processes that cannot outlive the test: ended by their own pid on drop, and by the kernel should the test
//! process itself be killed.

use crate::net::blocking_until;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

/// Longest wait for a process that was killed.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// Sets the signal that a child gets when its parent thread ends (util-linux, present on every Debian).
const SETPRIV: &str = "/usr/bin/setpriv";

/// Writes a script to `path` that a test starts in place of a program, and returns the path. Another process writes it:
/// a file that this one has open while any of its threads forks cannot be executed until the child runs its program.
///
/// # Panics
/// If it cannot be written.
pub fn executable_script(path: &Path, text: &str) -> String {
    let writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn();
    let mut writer = writer.expect("a shell");
    let mut input = writer.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("a script");
    drop(input);
    assert!(writer.wait().expect("it ends").success(), "{}", path.display());
    path.display().to_string()
}

struct Job {
    command: Command,
    reply: mpsc::Sender<io::Result<Child>>,
}

/// All children are started by one thread that lives as long as the process: the kernel's "parent death" is the death
/// of the thread that started the child, and a test's thread ends with the test.
static SPAWNER: LazyLock<Mutex<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (sender, jobs) = mpsc::channel::<Job>();
    let body = move || {
        for mut job in jobs {
            let _ = job.reply.send(job.command.spawn());
        }
    };
    let thread = std::thread::Builder::new().name("harness-spawner".to_owned());
    thread.spawn(body).expect("the spawner's thread");
    Mutex::new(sender)
});

/// A command that runs `program` and ends with this process.
pub(crate) fn command(program: &Path) -> Command {
    if Path::new(SETPRIV).exists() {
        let mut command = Command::new(SETPRIV);
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

/// A running child whose output goes to a file.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with an empty standard input and its output appended to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("the log file");
        let copy = file.try_clone().expect("the log file");
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let shown = format!("{command:?}");
        let (reply, answer) = mpsc::channel();
        let spawner = SPAWNER.lock().clone();
        spawner.send(Job { command, reply }).expect("the spawner runs");
        let child = answer.recv().expect("the spawner answers");
        let child = child.unwrap_or_else(|error| panic!("{shown}: {error}"));
        Self {
            child,
            log: log.to_owned(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, once it has ended.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("waiting for a child")
    }

    /// Sends a signal, such as `TERM`, to this process, unless it has ended.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.exited().is_none() {
            let script = format!("kill -{name} {}", self.pid());
            let sent = Command::new("sh")
                .args(["-c", &script])
                .stderr(Stdio::null())
                .status();
            assert!(sent.is_ok(), "{script}");
        }
    }

    #[track_caller]
    pub(crate) fn wait(&mut self, within: Duration) -> ExitStatus {
        let what = format!("the end of process {}", self.pid());
        blocking_until(&what, within, || self.exited())
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.wait(KILL_WAIT);
    }

    /// Everything it has printed.
    pub(crate) fn logs(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let before = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let state = before.map_or_else(|| "running".to_owned(), |status| status.to_string());
            let tail: Vec<String> = self.logs().lines().rev().take(40).map(str::to_owned).collect();
            let tail: Vec<&str> = tail.iter().rev().map(String::as_str).collect();
            let log = self.log.display();
            let text = format!("--- {state}; last lines of {log}:\n{}\n", tail.join("\n"));
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}
