//! Memory of processes, as Linux reports it in `/proc/PID/status`.

use std::io;

/// Returns a line of the status, such as `VmRSS:`, summed over the processes, in KiB.
///
/// # Errors
/// When there is no such process, or no such line.
pub fn sum(pids: &[u32], line: &str) -> io::Result<u64> {
    let mut total = 0;
    for pid in pids {
        let file = format!("/proc/{pid}/status");
        let text = std::fs::read_to_string(&file)?;
        total += kib(&text, line).ok_or_else(|| io::Error::other(format!("{file}: no {line}")))?;
    }
    Ok(total)
}

/// Resets the kernel's peak of the resident size to the present size.
///
/// # Errors
/// When there is no such process, or it belongs to another user.
pub fn forget_peak(pids: &[u32]) -> io::Result<()> {
    pids.iter()
        .try_for_each(|pid| std::fs::write(format!("/proc/{pid}/clear_refs"), "5"))
}

fn kib(status: &str, line: &str) -> Option<u64> {
    let value = status.lines().find_map(|text| text.strip_prefix(line))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_status() {
        let status = "Name:\tx\nVmHWM:\t   20492 kB\nVmRSS:\t   10000 kB\n";
        assert_eq!(
            (kib(status, "VmHWM:"), kib(status, "VmRSS:")),
            (Some(20_492), Some(10_000))
        );
        assert_eq!(
            (kib(status, "VmSwap:"), kib("VmRSS: many", "VmRSS:")),
            (None, None)
        );
    }

    #[test]
    fn a_peak_is_forgotten() {
        let me = [std::process::id()];
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        drop(std::hint::black_box(block));
        let peak = sum(&me, "VmHWM:").unwrap();
        forget_peak(&me).unwrap();
        assert!(sum(&me, "VmHWM:").unwrap() + (32 << 10) < peak, "{peak} KiB");
        assert!(sum(&[u32::MAX], "VmRSS:").is_err());
    }
}
