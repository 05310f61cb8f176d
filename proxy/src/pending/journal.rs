//! The file behind the retry queue: one JSON line an item, one file a process, locked while its process lives.
//!
//! A process takes over the files that nobody holds any more, which are those of [`others`](super::others): when it starts,
//! and later too, since after a hand-over the process that leaves something behind ends after the one that is to bring it
//! to the store has started. The file is emptied whenever the queue is.

use super::item::Item;
use domain::id::Kind;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The ending of a journal's name.
pub(super) const ENDING: &str = "pending.jsonl";
/// The ending of a file that is not locked yet, so that nobody takes it for one that was left behind.
const OPENING: &str = "opening";

/// Read and write by the owner alone: the lines say who spent what.
const OWNER_ONLY: u32 = 0o600;
/// The same for a directory that is made here.
const OWNER_ONLY_DIR: u32 = 0o700;

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// What it is called until it is locked and complete.
    opening: PathBuf,
    lines: usize,
    /// Bytes of these lines.
    len: u64,
    /// Whether half a line may stand behind them.
    is_torn: bool,
}

impl Journal {
    /// Opens this process's journal in `dir`.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        let mut made = DirBuilder::new();
        made.recursive(true).mode(OWNER_ONLY_DIR).create(dir)?;
        let name = Kind::Request
            .mint(clock::now_ms())
            .map_err(std::io::Error::other)?;
        let (opening, path) = (
            dir.join(format!("{name}.{OPENING}")),
            dir.join(format!("{name}.{ENDING}")),
        );
        Ok(Self {
            file: put(&opening, &path, &[])?,
            path,
            opening,
            lines: 0,
            len: 0,
            is_torn: false,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lines in the file; more than wait, since an item that was delivered leaves its line.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Adds items, in one write: all of them, or none.
    ///
    /// # Errors
    /// When the disk does not take them, which is reported here.
    pub fn append<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) -> std::io::Result<()> {
        let written = Lines::of(items).and_then(|lines| {
            self.cut_back()?;
            self.is_torn = true;
            self.file.write_all(&lines.text)?;
            self.is_torn = false;
            self.lines += lines.count;
            self.len += lines.len();
            Ok(())
        });
        if let Err(error) = &written {
            tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be written");
            // Where this fails too, it is tried again before the next write.
            drop(self.cut_back());
        }
        written
    }

    /// Leaves nothing behind the last whole line: the next one would be part of a half one, and lost with it.
    fn cut_back(&mut self) -> std::io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Has these items instead of what is in the file. A new file takes its place in one step, so that a process that is
    /// killed meanwhile has lost nothing.
    ///
    /// # Errors
    /// When the disk does not take it, which is reported here; then the old one stays.
    pub fn rewrite<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) -> std::io::Result<()> {
        let written = Lines::of(items).and_then(|lines| {
            // The lock of the old file ends here. Whoever waited for it finds another file by its name.
            self.file = put(&self.opening, &self.path, &lines.text)?;
            (self.lines, self.len, self.is_torn) = (lines.count, lines.len(), false);
            Ok(())
        });
        written.inspect_err(|error| {
            tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be rewritten");
        })
    }

    /// Removes the file at the end of the process.
    pub fn remove(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }

    /// Forgets everything: nothing waits any more.
    pub fn clear(&mut self) {
        match self.file.set_len(0) {
            Ok(()) => (self.lines, self.len, self.is_torn) = (0, 0, false),
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "the retry journal cannot be emptied");
            }
        }
    }
}

/// Items as they stand in the file.
struct Lines {
    text: Vec<u8>,
    count: usize,
}

impl Lines {
    fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> std::io::Result<Self> {
        let (mut text, mut count) = (Vec::new(), 0);
        for item in items {
            serde_json::to_writer(&mut text, item)?;
            text.push(b'\n');
            count += 1;
        }
        Ok(Self { text, count })
    }

    fn len(&self) -> u64 {
        self.text.len() as u64
    }
}

/// Makes a file with this text under its name, locked from the first moment that others can see it by that name.
fn put(opening: &Path, path: &Path, text: &[u8]) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .append(true)
        .mode(OWNER_ONLY)
        .open(opening)?;
    let named = file
        .lock()
        .and_then(|()| file.write_all(text))
        .and_then(|()| std::fs::rename(opening, path));
    if let Err(error) = named {
        drop(std::fs::remove_file(opening));
        return Err(error);
    }
    Ok(file)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use store::call::hold::AsOf;

    /// Tells a test that it runs where files stay small, and in which folder.
    const SMALL_FILES: &str = "TOLLGATE_TEST_SMALL_FILES";
    /// How long a file may be there.
    pub const SMALL: usize = 512;

    /// Something that waits.
    pub fn item(id: &str) -> Item {
        Item::Void {
            name: ["acct_1", "bot", "r", id].map(str::to_owned),
            epoch: None,
            as_of: AsOf::default(),
        }
    }

    /// The name of a folder that is not there.
    pub fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tollgate-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    /// Runs a test once more in a process whose disk takes no file longer than [`SMALL`], nor the part of a write beyond it;
    /// there the test gets its folder.
    pub fn where_files_stay_small(test: &str, dir: &Path) {
        let ran = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\" --nocapture",
            ])
            .arg(std::env::current_exe().unwrap())
            .arg(test)
            .env(SMALL_FILES, dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    }

    /// The folder of a test that runs where files stay small.
    pub fn folder_of_small_files() -> Option<PathBuf> {
        std::env::var_os(SMALL_FILES).map(PathBuf::from)
    }

    /// What others would read.
    fn read(journal: &Journal) -> Vec<Item> {
        let text = std::fs::read_to_string(journal.path()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_write_that_broke_off_spoils_no_other() {
        let Some(dir) = folder_of_small_files() else {
            let dir = fresh("torn");
            where_files_stay_small(
                "pending::journal::tests::a_write_that_broke_off_spoils_no_other",
                &dir,
            );
            return std::fs::remove_dir_all(dir).unwrap();
        };
        let mut journal = Journal::open(&dir).unwrap();
        journal.append([&item("allow_1")]).unwrap();
        let many: Vec<Item> = (0..SMALL / 10).map(|at| item(&format!("allow_x{at}"))).collect();
        assert!(journal.append(&many).is_err());
        journal.append([&item("allow_2")]).unwrap();
        assert_eq!(read(&journal), [item("allow_1"), item("allow_2")]);
        assert_eq!(journal.lines(), 2);
        assert!(journal.rewrite(&many).is_err());
        assert_eq!(
            read(&journal),
            [item("allow_1"), item("allow_2")],
            "the old file stays"
        );
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing beside it");
        journal.append([&item("allow_3")]).unwrap();
        assert_eq!(read(&journal).len(), 3);
    }

    #[test]
    fn a_rewritten_file_is_another_one_and_is_held_too() {
        let dir = fresh("rewritten");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&[item("allow_1"), item("allow_2")]).unwrap();
        let before = File::open(journal.path()).unwrap();
        journal.rewrite([&item("allow_2")]).unwrap();
        journal.append([&item("allow_3")]).unwrap();
        assert_eq!(read(&journal), [item("allow_2"), item("allow_3")]);
        assert_eq!(journal.lines(), 2);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        let old = std::io::read_to_string(&before).unwrap();
        assert_eq!(old.lines().count(), 2, "the old one was complete until then");
        assert!(File::open(journal.path()).unwrap().try_lock().is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn each_item_is_a_line_until_the_file_is_emptied() {
        let dir = fresh("lines");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&[item("allow_1"), item("allow_2")]).unwrap();
        journal.append([&item("allow_3")]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert_eq!((journal.lines(), text.lines().count()), (3, 3));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(journal.path())), (0o700, 0o600));
        journal.clear();
        journal.append([&item("allow_4")]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert!(journal.lines() == 1 && text.contains("allow_4") && !text.contains("allow_3"));
        journal.remove();
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
