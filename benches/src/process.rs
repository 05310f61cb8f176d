//! Child processes of the bench. They end when their value is dropped or the bench exits.

use gate_bench::output::output;
use std::error::Error;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a process to listen, or to end after a signal.
const WAIT: Duration = Duration::from_secs(20);
/// Interval between two polls.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program and waits until it listens on `listen`.
    pub(crate) fn start(program: &str, args: &[String], listen: SocketAddr) -> Result<Self, Box<dyn Error>> {
        // TERM, not KILL: a master process must end its workers.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--", program]).args(args);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut running = Self(child.map_err(|error| format!("{program}: {error}"))?);
        let end = Instant::now() + WAIT;
        while TcpStream::connect(listen).is_err() {
            if let Some(status) = running.0.try_wait()? {
                return Err(format!("{program} ended with {status}").into());
            }
            if Instant::now() > end {
                return Err(format!("{program} does not listen on {listen}").into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(running)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(output("kill", &["-TERM", &self.pid().to_string()]));
        let end = Instant::now() + WAIT;
        while Instant::now() < end {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A program that runs beside the measurement; it is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundProcess(Child);

impl BackgroundProcess {
    pub(crate) fn start(program: &str, args: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program]).args(args);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self(child.map_err(|error| format!("{program}: {error}"))?))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the child processes of `pid`.
pub(crate) fn children(pid: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let pids = text.split_ascii_whitespace().map(str::parse);
    Ok(pids.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_or_does_not_exist_is_an_error() {
        let nobody = harness::ClosedPort::take();
        let ended = Running::start("false", &[], nobody.address())
            .unwrap_err()
            .to_string();
        assert!(ended.contains("ended with"), "{ended}");
    }

    #[test]
    fn children_are_found_and_ended() {
        let listen = SocketAddr::from(([127, 0, 0, 1], harness::free_port()));
        let script = format!(
            "import socket, time; s = socket.create_server(('127.0.0.1', {})); time.sleep(60)",
            listen.port()
        );
        let running = Running::start("python3", &["-c".to_owned(), script], listen).unwrap();
        let pid = running.pid();
        assert!(children(std::process::id()).is_ok());
        drop(running);
        assert!(children(pid).is_err(), "{pid} still runs");
    }
}
