//! CPU time of processes and of the machine, as Linux counts it in `/proc`.

use std::io;

/// Clock ticks a second in `/proc`: part of Linux' interface on every architecture that we support.
const TICKS_A_SECOND: f64 = 100.0;

/// Returns the CPU time of a process so far, in seconds: user and system, all threads, ended ones included.
///
/// # Errors
/// When there is no such process.
pub fn of_process(pid: u32) -> io::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    process_ticks(&text)
        .map(|ticks| ticks / TICKS_A_SECOND)
        .ok_or_else(unreadable)
}

/// Returns the busy time of the whole machine so far, in seconds, summed over its cores.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn of_machine() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    machine_ticks(&text)
        .map(|ticks| ticks / TICKS_A_SECOND)
        .ok_or_else(unreadable)
}

fn unreadable() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a line of /proc that is not as documented",
    )
}

/// Returns the sum of fields 14 and 15 of `/proc/PID/stat`. The second field is the program's name and may hold
/// anything.
fn process_ticks(text: &str) -> Option<f64> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Returns the sum of user, nice, system, irq, softirq and steal of the first line of `/proc/stat`, without idle and
/// iowait.
fn machine_ticks(text: &str) -> Option<f64> {
    let fields = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace();
    let fields: Vec<f64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    Some(fields.first_chunk::<3>()?.iter().sum::<f64>() + fields.get(5..8)?.iter().sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_with_parentheses() {
        let line = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 9 9 20 0 1 0 5 6 7";
        assert_eq!(process_ticks(line), Some(175.0));
        assert_eq!(process_ticks("7 nothing"), None);
    }

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(
            machine_ticks("cpu  10 1 20 1000 500 3 4 2 0 0\ncpu0 1"),
            Some(40.0)
        );
        assert_eq!(machine_ticks("intr 5"), None);
    }

    #[test]
    fn this_process_takes_time() {
        let before = of_process(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while of_process(std::process::id()).unwrap() - before < 0.02 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(of_machine().unwrap() > 0.0);
    }
}
