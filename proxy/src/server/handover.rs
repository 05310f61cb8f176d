//! Hand-over of the listening sockets to a new process (SIGQUIT), without refusing or losing a connection.
//!
//! The sockets are sent over `proxy.upgrade_socket`, with Pingora's functions. The *note* is a file next to it. The new
//! process locks the note before it requests the sockets, keeps it locked until it serves, and then records there that
//! it serves. So the old process knows whether a new one waits, and continues to serve if the new one ends or cannot
//! use the store. An old process that gives up waiting records that in the note too. Both only append, and the first
//! word counts, so exactly one of the two serves.

use nix::unistd::Uid;
use pingora::server::ListenFds;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for a new process to become ready to decide calls. After it, the process ends and the old one continues.
pub const READY_WITHIN: Duration = Duration::from_secs(10);
/// Maximum time that the old process waits for the new one to serve. Longer than [`READY_WITHIN`].
const WORD_WITHIN: Duration = Duration::from_secs(20);
/// Interval of reading the note.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const LOCK_ATTEMPTS: usize = 50;
/// Longest path of a Unix socket on Linux, without the final zero.
const SOCKET_PATH_MAX: usize = 107;
/// Word that the new process writes once it serves.
const SERVES: &[u8] = b"serves\n";
/// Word that the old process writes once it has given up.
const GAVE_UP: &[u8] = b"given up\n";
/// Permission bits of group and others.
const ANY_BY_OTHERS: u32 = 0o077;
/// File mode: only the owner may read and write.
const OWNER_ONLY: u32 = 0o600;
/// Directory mode: only the owner has access.
const OWNER_ONLY_DIR: u32 = 0o700;

/// Why the sockets were not handed over. The process that has them continues to serve.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    #[error("no new process waits for the sockets; start it with --upgrade first")]
    NoSuccessor,
    #[error("this process does not listen yet")]
    NotListening,
    /// Other users could take the sockets, or send their own.
    #[error("proxy.upgrade_socket {0}")]
    Unsafe(String),
    #[error("the sockets could not be sent: {0}")]
    Sending(String),
    #[error("the new process ended before it served")]
    Ended,
    /// [`WORD_WITHIN`] has passed.
    #[error("the new process did not serve within {WORD_WITHIN:?}")]
    TooSlow,
}

/// The new process, until it serves.
#[derive(Debug)]
pub struct Successor {
    note: File,
    path: PathBuf,
}

impl Successor {
    /// Announces that this process waits for the sockets.
    ///
    /// # Errors
    /// One line: the path cannot be used, or another process is taking over.
    pub fn announce(socket: &Path) -> Result<Self, String> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", socket.display());
        let made = DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY_DIR)
            .create(dir_of(socket));
        made.map_err(|error| named(&error))?;
        check_path(socket)?;
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(OWNER_ONLY);
        let path = note_of(socket);
        let note = options.open(&path).map_err(|error| named(&error))?;
        if !try_lock(&note) {
            return Err(named(&"another process is taking over already"));
        }
        note.set_len(0).map_err(|error| named(&error))?;
        Ok(Self { note, path })
    }

    /// Announces that this process serves. The old one then stops accepting connections.
    ///
    /// # Errors
    /// One line: the old process continues to serve, and this one must not serve.
    pub fn serves(mut self) -> Result<(), String> {
        match append_as_first(&mut self.note, SERVES, &self.path) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the running process waits no longer".to_owned()),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }
}

/// Sends the sockets to the waiting process, and waits until it serves. Blocks.
///
/// # Errors
/// [`HandoverError`]: this process still has its sockets, and must continue to serve.
pub fn hand_over(fds: &ListenFds, socket: &Path) -> Result<(), HandoverError> {
    hand_over_within(fds, socket, WORD_WITHIN)
}

fn hand_over_within(fds: &ListenFds, socket: &Path, within: Duration) -> Result<(), HandoverError> {
    let path = note_of(socket);
    let opened = OpenOptions::new().read(true).append(true).open(&path);
    let mut note = opened.map_err(|_| HandoverError::NoSuccessor)?;
    if note.try_lock_shared().is_ok() {
        return Err(HandoverError::NoSuccessor);
    }
    check_path(socket).map_err(HandoverError::Unsafe)?;
    let at = socket.display().to_string();
    let sent = fds.lock().send_to_sock(at.as_str());
    sent.map_err(|error| HandoverError::Sending(error.to_string()))?;
    let deadline = Instant::now() + within;
    loop {
        let is_free = note.try_lock_shared().is_ok();
        if std::fs::read(&path).is_ok_and(|words| words.starts_with(SERVES)) {
            return Ok(());
        }
        if is_free {
            return Err(HandoverError::Ended);
        }
        if Instant::now() > deadline {
            // If the note cannot be written, nothing prevents the new process from serving at the same time.
            return match append_as_first(&mut note, GAVE_UP, &path) {
                Ok(false) => Ok(()),
                Ok(true) | Err(_) => Err(HandoverError::TooSlow),
            };
        }
        std::thread::sleep(CHECK_EVERY);
    }
}

/// Appends a word to the note. Returns whether it is the first one.
fn append_as_first(note: &mut File, word: &[u8], path: &Path) -> std::io::Result<bool> {
    note.write_all(word)?;
    Ok(std::fs::read(path)?.starts_with(word))
}

/// Locks the note. Returns whether it did. The old process briefly locks the note to check it, so a single failure is
/// not conclusive.
fn try_lock(note: &File) -> bool {
    (0..LOCK_ATTEMPTS).any(|_| {
        let is_locked = note.try_lock().is_ok();
        if !is_locked {
            std::thread::sleep(CHECK_EVERY);
        }
        is_locked
    })
}

fn note_of(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".note");
    path.into()
}

/// Checks the path at a start, hours or months before it is needed. A directory that does not exist is made, with the
/// right mode, by the process that takes over.
///
/// # Errors
/// One-line reason for which a hand-over would fail.
pub fn check_existing(socket: &Path) -> Result<(), String> {
    match dir_of(socket).exists() {
        true => check_path(socket),
        false => Ok(()),
    }
}

fn dir_of(socket: &Path) -> &Path {
    match socket.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Refuses a path in a directory that other users can write to or enter. A user who can write could put a socket there
/// and receive ours. A user who can enter could connect to the socket, which is open to everybody, and send us other
/// sockets.
fn check_path(socket: &Path) -> Result<(), String> {
    if socket.as_os_str().len() > SOCKET_PATH_MAX {
        let text = socket.display();
        return Err(format!(
            "{text}: a socket's path has at most {SOCKET_PATH_MAX} bytes"
        ));
    }
    let dir = dir_of(socket);
    let named = |what: &dyn std::fmt::Display| format!("{}: {what}", dir.display());
    let about = std::fs::metadata(dir).map_err(|error| named(&error))?;
    let mode = about.mode() & 0o777;
    if mode & ANY_BY_OTHERS != 0 {
        return Err(named(&format_args!(
            "others may use this directory (mode {mode:03o}), and so the sockets; it must have mode 700"
        )));
    }
    if Uid::effective().as_raw() != about.uid() {
        return Err(named(
            &"this directory belongs to somebody else, who could take the sockets",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora::server::Fds;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;

    fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn one_process_at_a_time_waits_for_the_sockets() {
        let dir = fresh("takes-over");
        let socket = dir.join("upgrade.sock");
        let fds: ListenFds = Arc::new(Fds::new().into());
        assert!(matches!(
            hand_over(&fds, &socket),
            Err(HandoverError::NoSuccessor)
        ));
        let first = Successor::announce(&socket).unwrap();
        let mode = std::fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "made for its owner alone");
        let second = Successor::announce(&socket).unwrap_err();
        assert!(second.contains("already"), "{second}");
        first.serves().unwrap();
        assert!(
            matches!(hand_over(&fds, &socket), Err(HandoverError::NoSuccessor)),
            "who serves waits no more"
        );
        // The old process checks the note while the next one locks it.
        let checker = File::open(note_of(&socket)).unwrap();
        checker.lock_shared().unwrap();
        let checks = std::thread::spawn(move || {
            std::thread::sleep(2 * CHECK_EVERY);
            drop(checker);
        });
        let _next = Successor::announce(&socket).unwrap();
        checks.join().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn exactly_one_process_serves_after_a_timeout() {
        let dir = fresh("given-up");
        let socket = dir.join("upgrade.sock");
        let fds: ListenFds = Arc::new(Fds::new().into());
        let soon = Duration::from_millis(50);
        let slow = Successor::announce(&socket).unwrap();
        let _takes = UnixListener::bind(&socket).unwrap();
        assert!(matches!(
            hand_over_within(&fds, &socket, soon),
            Err(HandoverError::TooSlow)
        ));
        let refused = slow.serves().unwrap_err();
        assert!(refused.contains("waits no longer"), "{refused}");
        // The word is written after the last read of the note and before the deadline.
        let next = Successor::announce(&socket).unwrap();
        let held = next.note.try_clone().unwrap();
        next.serves().unwrap();
        let mut note = OpenOptions::new().append(true).open(note_of(&socket)).unwrap();
        assert!(!append_as_first(&mut note, GAVE_UP, &note_of(&socket)).unwrap());
        assert!(hand_over_within(&fds, &socket, soon).is_ok());
        drop(held);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_path_that_other_users_can_reach_is_refused() {
        let dir = fresh("open-place");
        std::fs::create_dir_all(&dir).unwrap();
        for mode in [0o777, 0o750, 0o701] {
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
            let socket = dir.join("upgrade.sock");
            let refused = Successor::announce(&socket).unwrap_err();
            assert!(refused.contains(&format!("mode {mode:o}")), "{refused}");
            assert_eq!(check_existing(&socket), Err(refused), "known at the start");
        }
        let long = Successor::announce(&dir.join("x".repeat(SOCKET_PATH_MAX))).unwrap_err();
        assert!(long.contains("107 bytes"), "{long}");
        assert_eq!(
            check_existing(&dir.join("later/upgrade.sock")),
            Ok(()),
            "made when it is needed"
        );
        std::fs::remove_dir_all(dir).unwrap();
    }
}
