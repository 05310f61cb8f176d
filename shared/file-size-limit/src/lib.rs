//! The limit of file sizes (`ulimit -f`, `RLIMIT_FSIZE`): a write beyond it fails as on a full disk.

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Number of SIGXFSZ on Linux for x86-64 and arm64, and on macOS.
const SIGXFSZ: i32 = 25;

/// Handles SIGXFSZ, so that a write beyond the limit fails with `EFBIG`. The signal's default action ends the process,
/// whose journal or archive then loses what was not written. Call it before the first write.
///
/// # Errors
/// The system does not allow a signal handler.
pub fn fail_writes() -> std::io::Result<()> {
    // A handler stays for the life of the process, also without its runtime. Nobody needs to know of the signal.
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{ErrorKind, Write as _};
    use std::process::Command;

    /// Path of the file that this test writes in a process with a limit.
    const LIMITED: &str = "TOLLGATE_TEST_LIMITED_FILE";

    #[test]
    fn a_write_beyond_the_limit_fails() {
        let Some(path) = std::env::var_os(LIMITED) else {
            let path = std::env::temp_dir().join(format!("tollgate-limited-{}", std::process::id()));
            let ran = Command::new("sh")
                .args(["-c", "ulimit -f 1; exec \"$0\" --exact \"$1\" --nocapture"])
                .arg(std::env::current_exe().unwrap())
                .arg("tests::a_write_beyond_the_limit_fails")
                .env(LIMITED, &path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && said.contains("1 passed"), "{ran:?}");
            return std::fs::remove_file(path).unwrap();
        };
        fail_writes().unwrap();
        let mut file = File::create(path).unwrap();
        let error = file.write_all(&[0; 4096]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
