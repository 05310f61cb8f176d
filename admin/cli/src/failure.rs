//! Failure of a command, as one line and an exit code.

use super::output;
use server::ServeError;
use settings::{BadSettings, StoreSettings};
use std::path::Path;
use std::process::ExitCode;
use store::sanity::UntrustedStore;
use store::{Store, StoreError};
use telemetry::error_chain;

/// Exit code of a refusal: the command is valid, but the current state does not permit it.
pub(super) const REFUSED: u8 = 1;
/// Exit code of a check that could not check everything and found no fault in the rest.
pub(super) const INCONCLUSIVE: u8 = 3;
/// Exit code of wrong usage or configuration.
pub(super) const USAGE: u8 = 2;

/// Code of a failure of the archive.
const ARCHIVE: &str = "ARCHIVE";
/// Code of data that only a later release can read.
const LATER_RELEASE: &str = "LATER_RELEASE";

/// A command that failed.
#[derive(Debug)]
pub(super) struct CommandFailure {
    exit: u8,
    code: &'static str,
    message: String,
    /// Failed or missing answer of the store: the message gets the store's address.
    no_store: bool,
}

impl CommandFailure {
    const fn new(exit: u8, code: &'static str, message: String) -> Self {
        Self {
            exit,
            code,
            message,
            no_store: false,
        }
    }

    /// Creates the failure for a value or a configuration that makes no sense.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, "USAGE", message.into())
    }

    /// Creates a refusal because of the current state; `code` as in the management API.
    pub(super) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(REFUSED, code, message.into())
    }

    /// Creates the failure of a reader that closed standard output early; no message is printed.
    pub(super) const fn reader_left() -> Self {
        Self::new(REFUSED, "OUTPUT", String::new())
    }

    /// Returns the same failure with an additional message.
    pub(super) fn and(self, message: &str) -> Self {
        Self {
            message: format!("{}; and {message}", self.message),
            ..self
        }
    }

    /// Returns the same failure; if the store did not reply, with its address and the setting of the address, and where
    /// the settings come from.
    pub(super) fn with_address(self, settings: &StoreSettings, config: Option<&Path>) -> Self {
        let address = Store::shown_address(settings).filter(|_| self.no_store);
        let Some(address) = address else {
            return self;
        };
        let setting = match settings.url_file.as_os_str().is_empty() {
            true => "store.url, TOLLGATE_STORE__URL",
            false => "store.url_file, TOLLGATE_STORE__URL_FILE",
        };
        Self {
            message: format!(
                "{}; the store's address is {address} ({setting}; settings: {})",
                self.message,
                settings::source(config)
            ),
            ..self
        }
    }

    /// Creates the failure for an unknown account.
    pub(super) fn no_account(id: &str) -> Self {
        let message = format!("there is no account {id}: `tollgate-admin account list` lists all");
        Self::refused("NOT_FOUND", message)
    }

    /// Returns the failure of a check: if the store or the archive did not answer, it is not known whether there is a
    /// fault, which exit code 1 would say.
    pub(super) fn of_check(self) -> Self {
        match self.code {
            "STORE" | ARCHIVE | LATER_RELEASE | "STORE_CLOCK" => Self {
                exit: INCONCLUSIVE,
                ..self
            },
            _ => self,
        }
    }

    /// Creates the failure of an archive that cannot be read.
    pub(super) fn no_archive(message: impl Into<String>) -> Self {
        Self::refused(ARCHIVE, message)
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the message on standard error, and with `--json` also a document on standard output.
    pub(super) fn print(&self, json: bool) -> ExitCode {
        if json {
            self.print_document();
        }
        if !self.message.is_empty() {
            output::write_stderr(&self.message);
        }
        ExitCode::from(self.exit)
    }

    /// Writes the document to standard output.
    pub(super) fn print_document(&self) {
        let document = serde_json::json!({ "ok": false, "error": self.message, "code": self.code });
        // The line on standard error and the exit code say the same.
        let _unwritable = output::write_stdout(&document.to_string());
    }
}

impl From<BadSettings> for CommandFailure {
    fn from(error: BadSettings) -> Self {
        Self::new(USAGE, "BAD_CONFIGURATION", error.to_string())
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        let is_of_script = error.broken_script().is_some();
        let hint = match &error {
            // A script that met malformed data midway has made a part of its change.
            StoreError::MalformedData { .. } if !is_of_script => "",
            StoreError::NoAnswer(_) | StoreError::MalformedData { .. } => {
                "; the change may or may not have been made: check before you repeat the command"
            }
            StoreError::NotDurable { ran: true, .. } => {
                "; a crash may undo the change: repeat the command with the same reference to find out"
            }
            _ => "",
        };
        let code = match &error {
            StoreError::NotDurable { ran: true, .. } => "NOT_CONFIRMED",
            StoreError::NotDurable { ran: false, .. } => "NOT_DURABLE",
            StoreError::LostWrites { .. } => "LOST_WRITES",
            StoreError::ClockDiffers(_) => "STORE_CLOCK",
            StoreError::MalformedData { .. } => "MALFORMED_DATA",
            StoreError::Archive(_) | StoreError::ArchiveUnavailable(_) => ARCHIVE,
            StoreError::LaterRelease(_) => LATER_RELEASE,
            _ => "STORE",
        };
        Self {
            no_store: error.is_server_failure(),
            ..Self::refused(code, format!("{}{hint}", error_chain(&error)))
        }
    }
}

impl From<UntrustedStore> for CommandFailure {
    fn from(error: UntrustedStore) -> Self {
        match &error {
            UntrustedStore::Store(StoreError::BadUrl(_)) => Self::usage(error.to_string()),
            UntrustedStore::Store(source) => Self {
                no_store: source.is_server_failure(),
                ..Self::refused("STORE", error_chain(&error))
            },
            UntrustedStore::NoEpoch => Self::refused("STORE_NOT_INITIALISED", error.to_string()),
            UntrustedStore::Restored(_) => Self::refused("STORE_RESTORED", error.to_string()),
            UntrustedStore::ClockDiffers(_) | UntrustedStore::NoClock(_) => {
                Self::refused("STORE_CLOCK", error.to_string())
            }
            UntrustedStore::RejectedWrites(_) => Self::refused("STORE_LOST_WRITES", error.to_string()),
            UntrustedStore::LacksRights { .. } => Self::refused("STORE_LACKS_RIGHTS", error.to_string()),
            _ => Self::refused("STORE_UNFIT", error.to_string()),
        }
    }
}

impl From<ServeError> for CommandFailure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Settings(_) | ServeError::Store(_) => Self::usage(error.to_string()),
            ServeError::Bind { .. } | ServeError::SetUp(_) => Self::refused("SERVE", error.to_string()),
        }
    }
}

impl From<entropy::NoEntropy> for CommandFailure {
    fn from(error: entropy::NoEntropy) -> Self {
        Self::refused("NO_ENTROPY", error.to_string())
    }
}
