//! A store whose machine can lose power: `fsync.c` records the length that is on the disk, and a power cut removes the
//! rest of the append-only file.

use harness::Redis;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A store that writes an append-only file.
pub struct Powered {
    pub redis: Redis,
    notes: TempDir,
}

/// Builds the library that is preloaded into the store.
fn shim(into: &Path) -> PathBuf {
    let (source, library) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/fsync.c"),
        into.join("fsync.so"),
    );
    let mut build = Command::new("cc");
    build
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl");
    let output = build.output().expect("cc, of the package build-essential");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    library
}

impl Powered {
    /// Starts one with this `appendfsync`.
    pub fn start(appendfsync: &str) -> Self {
        let notes = tempfile::tempdir().expect("a directory");
        let library = shim(notes.path());
        let options = ["--appendonly", "yes", "--appendfsync", appendfsync];
        let env = [
            ("LD_PRELOAD", library.display().to_string()),
            ("FSYNC_NOTES", notes.path().display().to_string()),
        ];
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Self {
            redis: Redis::start_under(&options, &env),
            notes,
        }
    }

    /// From now on nothing reaches the disk.
    pub fn hold_disk(&self) {
        File::create(self.notes.path().join("hold")).expect("a note");
    }

    /// From now on the disk answers with an error.
    pub fn break_disk(&self) {
        File::create(self.notes.path().join("fail")).expect("a note");
    }

    /// The disk works again.
    pub fn mend_disk(&self) {
        std::fs::remove_file(self.notes.path().join("fail")).expect("a note");
    }

    fn release_disk(&self) {
        drop(std::fs::remove_file(self.notes.path().join("hold")));
    }

    /// Kills the process. The kernel keeps its writes.
    pub fn crash(&self) {
        self.redis.kill9();
        self.release_disk();
        self.redis.restart();
    }

    /// Cuts the machine's power, and returns the number of lost bytes, those that were not on the disk.
    pub fn lose_power(&self) -> u64 {
        self.redis.kill9();
        let mut gone = 0;
        for file in incremental_files(self.redis.dir()) {
            let name = file.file_name().expect("a name");
            let noted = std::fs::read_to_string(self.notes.path().join(name)).unwrap_or_default();
            let on_disk = noted.parse().unwrap_or(0);
            let file = OpenOptions::new()
                .write(true)
                .open(&file)
                .expect("the append-only file");
            let written = file.metadata().expect("its length").len();
            file.set_len(on_disk.min(written)).expect("a shorter file");
            gone += written.saturating_sub(on_disk);
        }
        self.release_disk();
        self.redis.restart();
        gone
    }
}

/// The files that commands are appended to; their base file was written as a whole.
fn incremental_files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("appendonlydir")).expect("the append-only directory");
    let files = files.map(|file| file.expect("a file").path());
    files
        .filter(|file| file.to_string_lossy().ends_with(".incr.aof"))
        .collect()
}
