//! Tests of journals that other processes left: which are read, how much of them, and files that cannot be used.

use super::super::journal::Journal;
use super::super::journal::tests::{fresh, item};
use super::*;
use std::time::Duration;

/// Creates a journal with these items, as an ended process leaves it.
fn leave(dir: &Path, ids: &[&str]) -> PathBuf {
    let mut journal = Journal::open(dir).unwrap();
    let items: Vec<RetryItem> = ids.iter().map(|id| item(id)).collect();
    journal.append(&items).unwrap();
    journal.path().to_owned()
}

#[test]
fn only_unlocked_journals_are_read_and_no_more_than_fits() {
    let dir = fresh("others");
    let own = Journal::open(&dir).unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    let mut alive = Journal::open(&dir).unwrap();
    alive.append(&[item("allow_1"), item("allow_2")]).unwrap();
    assert_eq!(foreign.read(10).unwrap().take_items(), [], "its process lives");
    drop(alive);
    let mut found = foreign.read(1).unwrap();
    assert_eq!(found.take_items(), [item("allow_1")], "bounded");
    assert_eq!(
        ForeignJournals::beside(own.path()).read(10).unwrap().take_items(),
        [],
        "nobody else reads it meanwhile"
    );
    drop(found);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "nothing beside it");
    let mut found = foreign.read(10).unwrap();
    assert_eq!(found.take_items(), [item("allow_1"), item("allow_2")]);
    foreign.remove(found);
    assert_eq!(foreign.read(10).unwrap().take_items(), [], "once");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Another process delivers and removes a journal between the listing and the lock.
#[test]
fn a_journal_that_is_gone_is_nobodys() {
    let dir = fresh("gone");
    assert!(lock(&dir.join("a.pending.jsonl")).unwrap().is_none());
}

#[test]
fn an_unreadable_file_does_not_block_others() {
    let dir = fresh("unreadable");
    let own = Journal::open(&dir).unwrap();
    std::fs::create_dir(dir.join("a.pending.jsonl")).unwrap();
    let cut = leave(&dir, &["allow_1"]);
    let mut file = std::fs::OpenOptions::new().append(true).open(cut).unwrap();
    file.write_all(b"\xff\xfe\n{\"do\":\"vo").unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    for _ in 0..2 {
        assert_eq!(foreign.read(10).unwrap().take_items(), [item("allow_1")]);
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_that_cannot_be_removed_is_taken_over_once() {
    let dir = fresh("unremovable");
    let own = Journal::open(&dir).unwrap();
    let stays = leave(&dir, &["allow_1"]);
    let goes = leave(&dir, &["allow_2"]);
    let mut foreign = ForeignJournals::beside(own.path());
    let found = foreign.read(10).unwrap();
    assert_eq!(found.items().count(), 2);
    // A directory has the name of a journal.
    let kept = dir.join("kept");
    std::fs::rename(&stays, &kept).unwrap();
    std::fs::create_dir(&stays).unwrap();
    foreign.remove(found);
    assert!(!goes.exists() && foreign.unremoved.len() == 1);
    std::fs::remove_dir(&stays).unwrap();
    std::fs::rename(&kept, &stays).unwrap();
    assert_eq!(foreign.read(10).unwrap().take_items(), [], "it is held");
    foreign.remove_kept();
    assert!(!stays.exists() && foreign.unremoved.is_empty());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn each_fault_of_a_file_is_reported_once() {
    let dir = fresh("faults");
    let own = Journal::open(&dir).unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    let path = dir.join("a.pending.jsonl");
    let unknown = |foreign: &mut ForeignJournals| {
        assert_eq!(foreign.read(10).unwrap().take_items(), []);
        foreign.faulty.get(&path).copied()
    };
    std::fs::write(&path, b"newer\n").unwrap();
    let first = unknown(&mut foreign);
    assert!(
        matches!(first, Some(JournalFault::Unknown { bytes: 6, .. })),
        "{first:?}"
    );
    assert!(!foreign.is_new(&path, first.unwrap()));
    assert_eq!(unknown(&mut foreign), first);
    std::fs::write(&path, b"newer\nnewest\n").unwrap();
    assert_ne!(unknown(&mut foreign), first, "it is another file");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(unknown(&mut foreign), None, "forgotten");
    std::fs::remove_dir_all(dir).unwrap();
}

/// A directory is where the rest would be.
#[test]
fn a_file_whose_rest_cannot_be_written_stays() {
    let dir = fresh("no-rest");
    let own = Journal::open(&dir).unwrap();
    let long = leave(&dir, &["allow_1", "allow_2"]);
    let mut rest = long.clone().into_os_string();
    rest.push(".rest");
    std::fs::create_dir(&rest).unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    for _ in 0..2 {
        assert_eq!(foreign.read(1).unwrap().take_items(), []);
        assert_eq!(foreign.faulty.get(&long), Some(&JournalFault::Unwritable));
        assert!(lock(&long).unwrap().is_some());
    }
    let mut found = foreign.read(2).unwrap();
    assert_eq!(found.take_items().len(), 2, "without a rest");
    foreign.remove(found);
    assert!(!long.exists());
    std::fs::remove_dir_all(dir).unwrap();
}

/// A line beyond the bound is not read, and stays as it is in the rest of the file. Without an end it is torn.
#[test]
fn a_line_is_read_up_to_its_bound() {
    let dir = fresh("long_lines");
    let own = Journal::open(&dir).unwrap();
    let path = leave(&dir, &[]);
    let padded = |id: &str, bytes: u64| {
        let text = serde_json::to_string(&item(id)).unwrap();
        let spaces = usize::try_from(bytes).unwrap() - 1 - text.len();
        format!("{}{text}\n", " ".repeat(spaces))
    };
    let long = padded("allow_long", LINE_BYTES_MAX + 1);
    let unended = padded("allow_unended", 3 * LINE_BYTES_MAX);
    let lines = [
        padded("allow_1", LINE_BYTES_MAX),
        long.clone(),
        padded("allow_2", 1000),
        unended.trim_end().to_owned(),
    ];
    std::fs::write(&path, lines.concat()).unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    let mut found = foreign.read(10).unwrap();
    assert_eq!(found.take_items(), [item("allow_1"), item("allow_2")]);
    foreign.remove(found);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), long);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Their processes were killed while they wrote them.
#[test]
fn files_that_never_became_journals_are_removed_once_they_are_old_and_unlocked() {
    let dir = fresh("never-opened");
    let own = Journal::open(&dir).unwrap();
    let mut foreign = ForeignJournals::beside(own.path());
    let unopened = |name: &str, age: Duration| {
        let path = dir.join(name);
        let file = File::create(&path).unwrap();
        let created = file.metadata().unwrap().modified().unwrap();
        file.set_modified(created - age).unwrap();
        (path, file)
    };
    let old = UNOPENED_FOR + Duration::from_secs(1);
    let young = UNOPENED_FOR - Duration::from_secs(30);
    let (killed, _) = unopened("req_1.opening", old);
    let (locked, lock) = unopened("req_2.opening", old);
    lock.lock().unwrap();
    let (starting, _) = unopened("req_3.opening", young);
    let (unrelated, _) = unopened("req_4.else", old);
    assert_eq!(foreign.read(1).unwrap().take_items(), []);
    assert!(!killed.exists());
    assert!(locked.exists() && starting.exists() && unrelated.exists());
    drop(lock);
    assert_eq!(foreign.read(1).unwrap().take_items(), []);
    assert!(!locked.exists());
    std::fs::remove_dir_all(dir).unwrap();
}
