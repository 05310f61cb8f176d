//! Handing the listening sockets to a new process (SIGQUIT), so that no connection is refused and none is lost.
//!
//! The sockets travel over `proxy.upgrade_socket`, by Pingora's means. Beside it lies a *note*, a file that the new process
//! keeps locked from before it asks for the sockets until it serves, and in which it then says so. So the old process
//! can tell whether anybody waits, and goes on serving when the new one ends, or cannot use the store. Who loses patience
//! says so in the note as well. Both only add to it, and its first word holds: so one of the two serves, and not both.

use pingora::server::ListenFds;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a new process may take until it can decide calls; then it ends, and the old one goes on.
pub const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long the old process waits for the word of the new one: longer than the new one takes to give up.
const WORD_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at the note.
const LOOK: Duration = Duration::from_millis(20);
/// How often a note that is locked is tried again.
const LOOKERS: usize = 10;
/// The longest path of a unix socket on Linux, without the final zero.
const SOCKET_PATH_MAX: usize = 107;
/// What the note says once the new process serves.
const SERVES: &[u8] = b"serves\n";
/// What it says once the old process has given the new one up.
const GIVEN_UP: &[u8] = b"given up\n";
/// Every permission of everybody else.
const ANY_BY_OTHERS: u32 = 0o077;
/// Read and write by the owner alone.
const OWNER_ONLY: u32 = 0o600;
/// The same for a directory.
const OWNER_ONLY_DIR: u32 = 0o700;

/// Why the sockets were not handed over; the process that has them goes on serving.
#[derive(Debug, thiserror::Error)]
pub enum NotGiven {
    /// There is no new process.
    #[error("no new process waits for the sockets; start it with --upgrade first")]
    NobodyWaits,
    /// The sockets have not been opened yet.
    #[error("this process does not listen yet")]
    NotListening,
    /// The place is not safe.
    #[error("proxy.upgrade_socket {0}")]
    Unsafe(String),
    /// The sockets could not be sent.
    #[error("the sockets could not be sent: {0}")]
    Sending(String),
    /// The new process is gone.
    #[error("the new process ended before it served")]
    Ended,
    /// The new process says nothing.
    #[error("the new process did not serve within {WORD_WITHIN:?}")]
    TooSlow,
}

/// The new process, from its start until it serves.
#[derive(Debug)]
pub struct Successor {
    note: File,
    path: PathBuf,
}

impl Successor {
    /// Announces that this process is about to wait for the sockets.
    ///
    /// # Errors
    /// One line: the place cannot be used, or another process is taking over already.
    pub fn announce(socket: &Path) -> Result<Self, String> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", socket.display());
        if let Some(dir) = socket.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            let mut made = DirBuilder::new();
            let made = made.recursive(true).mode(OWNER_ONLY_DIR).create(dir);
            made.map_err(|error| named(&error))?;
        }
        vet_place(socket)?;
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(OWNER_ONLY);
        let path = note_of(socket);
        let note = options.open(&path).map_err(|error| named(&error))?;
        if !locked(&note) {
            return Err(named(&"another process is taking over already"));
        }
        note.set_len(0).map_err(|error| named(&error))?;
        Ok(Self { note, path })
    }

    /// Gives the word that this process serves, upon which the old one stops taking connections.
    ///
    /// # Errors
    /// One line: the old process goes on serving, and this one must not.
    pub fn serves(mut self) -> Result<(), String> {
        match is_first(&mut self.note, SERVES, &self.path) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the running process waits no longer".to_owned()),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }
}

/// Sends the sockets to the process that waits for them, and waits until it serves. Blocks.
///
/// # Errors
/// [`NotGiven`]: this process still has its sockets, and has to go on.
pub fn give(fds: &ListenFds, socket: &Path) -> Result<(), NotGiven> {
    give_within(fds, socket, WORD_WITHIN)
}

fn give_within(fds: &ListenFds, socket: &Path, within: Duration) -> Result<(), NotGiven> {
    let path = note_of(socket);
    let opened = OpenOptions::new().read(true).append(true).open(&path);
    let mut note = opened.map_err(|_| NotGiven::NobodyWaits)?;
    if note.try_lock_shared().is_ok() {
        return Err(NotGiven::NobodyWaits);
    }
    vet_place(socket).map_err(NotGiven::Unsafe)?;
    let at = socket.display().to_string();
    let sent = fds.lock().send_to_sock(at.as_str());
    sent.map_err(|error| NotGiven::Sending(error.to_string()))?;
    let deadline = Instant::now() + within;
    loop {
        let is_free = note.try_lock_shared().is_ok();
        if std::fs::read(&path).is_ok_and(|words| words.starts_with(SERVES)) {
            return Ok(());
        }
        if is_free {
            return Err(NotGiven::Ended);
        }
        if Instant::now() > deadline {
            // A note that cannot be written leaves it as it was before: the new one may still come to serve beside this one.
            return match is_first(&mut note, GIVEN_UP, &path) {
                Ok(false) => Ok(()),
                Ok(true) | Err(_) => Err(NotGiven::TooSlow),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// Adds a word to the note; whether it is the first one there.
fn is_first(note: &mut File, word: &[u8], path: &Path) -> std::io::Result<bool> {
    note.write_all(word)?;
    Ok(std::fs::read(path)?.starts_with(word))
}

/// Locks the note. Whoever looks whether somebody waits has it locked for an instant, so one refusal says nothing.
fn locked(note: &File) -> bool {
    (0..LOOKERS).any(|_| {
        let is_locked = note.try_lock().is_ok();
        if !is_locked {
            std::thread::sleep(LOOK);
        }
        is_locked
    })
}

fn note_of(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".note");
    path.into()
}

/// Who can write to the directory could put a socket of their own there, and be given ours; who can enter it could connect to
/// the socket, which is open to everybody, and give us theirs.
fn vet_place(socket: &Path) -> Result<(), String> {
    if socket.as_os_str().len() > SOCKET_PATH_MAX {
        let text = socket.display();
        return Err(format!(
            "{text}: a socket's path has at most {SOCKET_PATH_MAX} bytes"
        ));
    }
    let dir = match socket.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let named = |what: &dyn std::fmt::Display| format!("{}: {what}", dir.display());
    let about = std::fs::metadata(dir).map_err(|error| named(&error))?;
    let mode = about.mode() & 0o777;
    if mode & ANY_BY_OTHERS != 0 {
        return Err(named(&format_args!(
            "others may use this directory (mode {mode:03o}), and so the sockets; it must have mode 700"
        )));
    }
    if own_user() != Some(about.uid()) {
        return Err(named(
            &"this directory belongs to somebody else, who could take the sockets",
        ));
    }
    Ok(())
}

/// The user whose rights this process has, as the kernel tells it: on Linux, which alone hands sockets over.
fn own_user() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // Real, effective, saved, of the file system.
    users.split_whitespace().nth(1)?.parse().ok()
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
    fn one_process_at_a_time_takes_over_and_is_seen_to_wait() {
        let dir = fresh("takes-over");
        let socket = dir.join("upgrade.sock");
        let fds: ListenFds = Arc::new(Fds::new().into());
        assert!(matches!(give(&fds, &socket), Err(NotGiven::NobodyWaits)));
        let first = Successor::announce(&socket).unwrap();
        let mode = std::fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "made for its owner alone");
        let second = Successor::announce(&socket).unwrap_err();
        assert!(second.contains("already"), "{second}");
        first.serves().unwrap();
        assert!(
            matches!(give(&fds, &socket), Err(NotGiven::NobodyWaits)),
            "who serves waits no more"
        );
        // Somebody looks whether anybody waits, just when the next one begins to.
        let looker = File::open(note_of(&socket)).unwrap();
        looker.lock_shared().unwrap();
        let looks = std::thread::spawn(move || {
            std::thread::sleep(2 * LOOK);
            drop(looker);
        });
        let _next = Successor::announce(&socket).unwrap();
        looks.join().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn who_was_given_up_does_not_serve_and_who_serves_is_not_given_up() {
        let dir = fresh("given-up");
        let socket = dir.join("upgrade.sock");
        let fds: ListenFds = Arc::new(Fds::new().into());
        let soon = Duration::from_millis(50);
        let slow = Successor::announce(&socket).unwrap();
        let _takes = UnixListener::bind(&socket).unwrap();
        assert!(matches!(give_within(&fds, &socket, soon), Err(NotGiven::TooSlow)));
        let refused = slow.serves().unwrap_err();
        assert!(refused.contains("waits no longer"), "{refused}");
        // The word comes after the last look and before patience ends.
        let next = Successor::announce(&socket).unwrap();
        let held = next.note.try_clone().unwrap();
        next.serves().unwrap();
        let mut note = OpenOptions::new().append(true).open(note_of(&socket)).unwrap();
        assert!(!is_first(&mut note, GIVEN_UP, &note_of(&socket)).unwrap());
        assert!(give_within(&fds, &socket, soon).is_ok());
        drop(held);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_place_where_others_could_take_the_sockets_is_refused() {
        let dir = fresh("open-place");
        std::fs::create_dir_all(&dir).unwrap();
        for mode in [0o777, 0o750, 0o701] {
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = Successor::announce(&dir.join("upgrade.sock")).unwrap_err();
            assert!(refused.contains(&format!("mode {mode:o}")), "{refused}");
        }
        assert_eq!(own_user(), Some(std::fs::metadata(&dir).unwrap().uid()));
        let long = Successor::announce(&dir.join("x".repeat(SOCKET_PATH_MAX))).unwrap_err();
        assert!(long.contains("107 bytes"), "{long}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
