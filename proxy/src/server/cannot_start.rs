//! Why the edge does not start, and the exit code that says whether another start may succeed.

use settings::BadSettings;
use std::io;
use std::process::ExitCode;

/// Exit code for an invalid configuration.
const BAD_CONFIGURATION: u8 = 2;
/// Exit code for a failure of the machine: the next start may succeed.
const TEMPORARY_FAILURE: u8 = 3;

/// Why the process does not start.
#[derive(Debug, thiserror::Error)]
pub enum CannotStart {
    /// The next start would fail too.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The next start may succeed.
    #[error("{0}")]
    Temporary(String),
}

impl CannotStart {
    /// Classifies an error of a path or address in the settings. One that cannot be used is an invalid setting.
    pub fn from_io(named: &str, error: &io::Error) -> Self {
        use io::ErrorKind::{AlreadyExists, InvalidInput, NotADirectory, NotFound, PermissionDenied};
        let text = format!("{named}: {error}");
        match error.kind() {
            AlreadyExists | InvalidInput | NotADirectory | NotFound | PermissionDenied => {
                Self::Settings(BadSettings(text))
            }
            _ => Self::Temporary(text),
        }
    }

    /// Prints the reason, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        eprintln!("tollgate-proxy: {self}");
        ExitCode::from(match self {
            Self::Settings(_) => BAD_CONFIGURATION,
            Self::Temporary(_) => TEMPORARY_FAILURE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::ErrorKind;

    #[test]
    fn temporary_failures_differ_from_invalid_settings() {
        for (kind, is_wrong) in [
            (ErrorKind::StorageFull, false),
            (ErrorKind::QuotaExceeded, false),
            (ErrorKind::AddrInUse, false),
            (ErrorKind::AddrNotAvailable, false),
            (ErrorKind::Other, false),
            (ErrorKind::PermissionDenied, true),
            (ErrorKind::NotADirectory, true),
            (ErrorKind::AlreadyExists, true), // a file in place of the directory
        ] {
            let cannot = CannotStart::from_io("proxy.data_dir /x", &kind.into());
            assert_eq!(matches!(cannot, CannotStart::Settings(_)), is_wrong, "{kind:?}");
            assert!(cannot.to_string().starts_with("proxy.data_dir /x: "), "{cannot}");
        }
    }
}
