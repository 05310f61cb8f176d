//! Tests of the retry queue: what is queued, written and taken over.

use super::journal::tests::{
    SMALL_FILE_BYTES, fresh, item, run_with_small_files, settlement, small_file_folder,
};
use super::writing::JOURNAL_LINES_PER_ITEM;
use super::*;
use crate::fixture::SOON;
use std::io::Write as _;

#[test]
fn items_that_could_not_be_written_are_written_once_there_is_room() {
    let Some(dir) = small_file_folder() else {
        let dir = fresh("behind");
        let test = "retry_queue::tests::items_that_could_not_be_written_are_written_once_there_is_room";
        run_with_small_files(test, &dir);
        let left = RetryQueue::open(&dir, SMALL_FILE_BYTES).unwrap();
        let left: Vec<RetryItem> = left.queue().items().cloned().collect();
        assert_eq!(left, [item("allow_last")], "for the next process");
        return std::fs::remove_dir_all(dir).unwrap();
    };
    let retry_queue = RetryQueue::open(&dir, SMALL_FILE_BYTES).unwrap();
    let mut pushed = 0;
    while retry_queue.unwritten() == 0 {
        pushed += 1;
        push(&retry_queue, item(&format!("allow_{pushed}")));
    }
    push(&retry_queue, item("allow_last"));
    let lost = retry_queue.catch_up();
    assert!(lost.contains(&item("allow_last")) && lost.len() == 2, "{lost:?}");
    assert_eq!(
        (retry_queue.len(), retry_queue.journal_lines()),
        (pushed + 1, pushed - 1)
    );
    // The store accepts all items except the last, so that a new file has room for the rest.
    let accepted = retry_queue.queue().batch(pushed, |_| true).0;
    for (position, _) in accepted {
        retry_queue.queue().remove(position);
    }
    assert_eq!(retry_queue.catch_up(), []);
    assert_eq!(written(&retry_queue), [item("allow_last")]);
    retry_queue.close();
}

/// Items of a process that ended are in its file until the own file has them, and in both no longer than necessary.
#[test]
fn kept_journals_are_removed_once_their_items_are_written() {
    let dir = fresh("kept");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    let mut left = Journal::open(&dir).unwrap();
    left.append([&item("allow_1")]).unwrap();
    drop(left);
    {
        let mut foreign = retry_queue.foreign_journals.lock();
        let found = foreign.as_mut().unwrap().read(9).unwrap();
        foreign.as_mut().unwrap().keep(found);
    }
    retry_queue.unjournaled().in_kept_files(&[item("allow_1")]);
    retry_queue.queue().push(item("allow_1"));
    let files = || std::fs::read_dir(&dir).unwrap().count();
    retry_queue.remove_kept_files();
    assert_eq!(files(), 2, "the own journal lacks it");
    assert_eq!(retry_queue.catch_up(), []);
    retry_queue.remove_kept_files();
    assert_eq!(files(), 1);
    assert_eq!(written(&retry_queue), [item("allow_1")]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn items_that_do_not_fit_on_the_disk_stay_in_the_old_journal() {
    let ids = || (0..SMALL_FILE_BYTES / 10).map(|at| item(&format!("allow_{at}")));
    let Some(dir) = small_file_folder() else {
        let dir = fresh("full");
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&ids().collect::<Vec<_>>()).unwrap();
        drop(journal);
        let test = "retry_queue::tests::items_that_do_not_fit_on_the_disk_stay_in_the_old_journal";
        run_with_small_files(test, &dir);
        let left = RetryQueue::open(&dir, SMALL_FILE_BYTES).unwrap();
        assert_eq!(
            left.len(),
            ids().count(),
            "the process that took it over ended early"
        );
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        return std::fs::remove_dir_all(dir).unwrap();
    };
    let retry_queue = RetryQueue::open(&dir, SMALL_FILE_BYTES).unwrap();
    assert_eq!(
        (
            retry_queue.len(),
            retry_queue.journal_lines(),
            retry_queue.dropped()
        ),
        (ids().count(), 0, 0)
    );
    let mut beside = ForeignJournals::beside(&dir.join("none"));
    assert_eq!(
        beside.read(SMALL_FILE_BYTES).unwrap().items().count(),
        0,
        "it is held"
    );
}

/// Queues an item and writes it.
fn push(retry_queue: &RetryQueue, item: RetryItem) {
    retry_queue.push(item);
    retry_queue.write(false);
}

/// Returns the items that other processes would take over if this process were killed now.
fn written(retry_queue: &RetryQueue) -> Vec<RetryItem> {
    let path = retry_queue.journal().path().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Several times the limit is queued and delivered.
#[test]
fn waiting_items_are_in_the_journal_which_stays_short() {
    const LIMIT: usize = 3;
    let dir = fresh("long");
    let retry_queue = RetryQueue::open(&dir, LIMIT).unwrap();
    let mut longest = 0;
    for at in 0..5 * LIMIT {
        if retry_queue.len() == LIMIT {
            let first = retry_queue.queue().batch(1, |_| true).0;
            retry_queue.queue().remove(first[0].0);
        }
        push(&retry_queue, item(&format!("allow_{at}")));
        let waits: Vec<RetryItem> = retry_queue.queue().items().cloned().collect();
        let written = written(&retry_queue);
        assert!(written.ends_with(&waits), "{at}: {written:?}");
        assert_eq!(retry_queue.journal_lines(), written.len());
        longest = longest.max(written.len());
    }
    assert_eq!(longest, JOURNAL_LINES_PER_ITEM * LIMIT);
    let waits: Vec<RetryItem> = retry_queue.queue().items().cloned().collect();
    // The process's lock on the file ends.
    drop(retry_queue);
    let next = RetryQueue::open(&dir, 9).unwrap();
    let taken_over: Vec<RetryItem> = next.queue().items().cloned().collect();
    assert!(taken_over.ends_with(&waits), "{taken_over:?}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_process_that_ends_leaves_a_journal_only_if_items_wait_and_takes_over_none() {
    let dir = fresh("closed");
    let files = || std::fs::read_dir(&dir).unwrap().count();
    let retry_queue = RetryQueue::open(&dir, 3).unwrap();
    push(&retry_queue, item("allow_1"));
    assert!(!retry_queue.is_empty());
    retry_queue.close();
    assert_eq!(files(), 1, "for the next process");
    drop(retry_queue);
    let next = RetryQueue::open(&dir, 3).unwrap();
    assert_eq!((next.len(), files()), (1, 1));
    let first = next.queue().batch(1, |_| true).0;
    next.queue().remove(first[0].0);
    assert!(next.is_empty());
    next.close();
    assert_eq!(files(), 0);
    let mut left = Journal::open(&dir).unwrap();
    left.append([&item("allow_2")]).unwrap();
    drop(left);
    next.take_over().unwrap();
    assert_eq!((next.len(), files()), (0, 1), "left for another");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_item_that_does_not_fit_is_counted_and_not_written() {
    let dir = fresh("too-many");
    let retry_queue = RetryQueue::open(&dir, 2).unwrap();
    for id in ["allow_1", "allow_2", "allow_3"] {
        push(&retry_queue, item(id));
    }
    assert_eq!(
        (
            retry_queue.len(),
            retry_queue.dropped(),
            retry_queue.journal_lines()
        ),
        (2, 1, 2)
    );
    assert_eq!(written(&retry_queue), [item("allow_1"), item("allow_2")]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn only_deliverable_items_prevent_a_take_over() {
    let dir = fresh("elsewhere");
    let retry_queue = RetryQueue::open(&dir, 3).unwrap();
    push(&retry_queue, item("allow_1"));
    let leave = |ids: &[&str]| {
        let mut left = Journal::open(&dir).unwrap();
        left.append(&ids.iter().map(|id| item(id)).collect::<Vec<_>>())
            .unwrap();
    };
    leave(&["allow_2"]);
    retry_queue.take_over().unwrap();
    assert_eq!(retry_queue.len(), 1, "its store does not reply");
    retry_queue.elsewhere.store(1, Ordering::Relaxed);
    retry_queue.take_over().unwrap();
    assert_eq!((retry_queue.len(), retry_queue.elsewhere()), (2, 1));
    assert_eq!(written(&retry_queue), [item("allow_1"), item("allow_2")]);
    retry_queue.elsewhere.store(2, Ordering::Relaxed);
    leave(&["allow_3", "allow_4"]);
    retry_queue.take_over().unwrap();
    assert_eq!(
        (retry_queue.len(), retry_queue.dropped()),
        (3, 0),
        "no more than fits"
    );
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "the rest stays");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Leaves a journal with these items and this text after them, as an ended process does.
fn leave(dir: &Path, items: &[RetryItem], text: &[u8]) -> PathBuf {
    let mut journal = Journal::open(dir).unwrap();
    journal.append(items).unwrap();
    let path = journal.path().to_owned();
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(text).unwrap();
    path
}

/// Opens a queue with these items, all of another ledger, so that they do not prevent a take-over.
fn with_elsewhere(dir: &Path, limit: usize, ids: &[&str]) -> RetryQueue {
    let retry_queue = RetryQueue::open(dir, limit).unwrap();
    for id in ids {
        push(&retry_queue, item(id));
    }
    retry_queue.elsewhere.store(ids.len(), Ordering::Relaxed);
    retry_queue
}

/// Returns the queued items, and makes all of them items of another ledger.
fn all_elsewhere(retry_queue: &RetryQueue) -> Vec<RetryItem> {
    let items: Vec<RetryItem> = retry_queue.queue().items().cloned().collect();
    retry_queue.elsewhere.store(items.len(), Ordering::Relaxed);
    items
}

fn is_unlocked(path: &Path) -> bool {
    std::fs::File::open(path).unwrap().try_lock().is_ok()
}

#[test]
fn a_full_queue_leaves_journals_untouched_for_others() {
    let dir = fresh("no-room");
    let retry_queue = with_elsewhere(&dir, 2, &["allow_1", "allow_2"]);
    let left = leave(&dir, &[settlement("allow_3")], b"");
    let before = std::fs::read(&left).unwrap();
    retry_queue.take_over().unwrap();
    assert!(left.exists(), "its settlement is lost");
    assert_eq!(std::fs::read(&left).unwrap(), before);
    assert!(is_unlocked(&left));
    assert_eq!((retry_queue.len(), retry_queue.dropped()), (2, 0));
    let other = RetryQueue::open(&dir, 9).unwrap();
    assert_eq!(all_elsewhere(&other), [settlement("allow_3")]);
    std::fs::remove_dir_all(dir).unwrap();
}

/// A journal can be longer than the queue: it has lines of delivered items, and its process may have had a larger
/// limit.
#[test]
fn a_long_journal_is_taken_over_in_parts_settlements_first() {
    let dir = fresh("parts");
    let retry_queue = with_elsewhere(&dir, 3, &["allow_1"]);
    let voids = [item("allow_2"), item("allow_3"), item("allow_4")];
    let settlements = [
        settlement("allow_5"),
        settlement("allow_6"),
        settlement("allow_7"),
    ];
    let mixed = [&voids[..2], &settlements[..2]].concat();
    let left = leave(&dir, &mixed, b"");
    let only_settlement = leave(&dir, &settlements[2..], b"");
    let take_over = || {
        retry_queue.take_over().unwrap();
        let taken = all_elsewhere(&retry_queue);
        let files = std::fs::read_dir(&dir).unwrap().count();
        // The store accepts them.
        let batch = retry_queue.queue().batch(9, |_| true).0;
        batch.iter().for_each(|(at, _)| retry_queue.queue().remove(*at));
        retry_queue.elsewhere.store(0, Ordering::Relaxed);
        (taken, files)
    };
    let (taken, files) = take_over();
    assert_eq!(taken.len(), 3, "{taken:?}");
    assert!(
        taken[..2].iter().all(|item| settlements.contains(item)),
        "{taken:?}"
    );
    assert!(left.exists() && is_unlocked(&left));
    assert!(files >= 2);
    let (next, files) = take_over();
    assert_eq!((next.len(), files), (3, 1), "the own journal");
    assert!(
        settlements.contains(&next[0]) && next[1..] == voids[..2],
        "{next:?}"
    );
    assert!(taken.iter().all(|item| !next.contains(item)), "each once");
    assert!(!left.exists() && !only_settlement.exists());
    assert_eq!((take_over(), retry_queue.dropped()), ((vec![], 1), 0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn lines_of_a_newer_version_stay_for_it() {
    const NEWER: &[u8] = b"{\"do\":\"newer\",\"name\":[]}\n";
    let dir = fresh("newer");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    let left = leave(&dir, &[settlement("allow_1")], NEWER);
    let mut file = std::fs::OpenOptions::new().append(true).open(&left).unwrap();
    let void = serde_json::to_string(&item("allow_2")).unwrap();
    file.write_all(format!("{void}\n{{\"do\":\"vo").as_bytes())
        .unwrap();
    for _ in 0..2 {
        retry_queue.take_over().unwrap();
        assert_eq!(
            all_elsewhere(&retry_queue),
            [settlement("allow_1"), item("allow_2")],
            "what can be read is taken over once"
        );
        assert_eq!(std::fs::read(&left).unwrap(), NEWER, "without the torn line");
        assert!(is_unlocked(&left), "a newer version may take it over");
    }
    assert_eq!(retry_queue.dropped(), 0);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn kept_journals_outlast_a_take_over_that_finds_nothing() {
    let dir = fresh("kept-on");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    let kept = leave(&dir, &[item("allow_1")], b"");
    {
        let mut foreign = retry_queue.foreign_journals.lock();
        let found = foreign.as_mut().unwrap().read(9).unwrap();
        foreign.as_mut().unwrap().keep(found);
    }
    retry_queue.queue().push(item("allow_1"));
    retry_queue.unjournaled().in_kept_files(&[item("allow_1")]);
    all_elsewhere(&retry_queue);
    retry_queue.take_over().unwrap();
    assert!(kept.exists(), "the own journal lacks its item");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn kept_journals_outlast_the_removal_of_the_own_one() {
    let dir = fresh("kept-alone");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    let prevented = prevent_rewriting(&retry_queue);
    push(&retry_queue, item("allow_1"));
    let kept = leave(&dir, &[item("allow_2")], b"");
    all_elsewhere(&retry_queue);
    std::fs::remove_file(retry_queue.journal().path()).unwrap();
    retry_queue.take_over().unwrap();
    retry_queue.remove_kept_files();
    assert!(kept.exists(), "no own journal has its item");
    let lost = retry_queue.catch_up();
    assert_eq!(lost, [item("allow_1")], "allow_2 is in the kept one");
    assert_eq!((retry_queue.unwritten(), retry_queue.journal_lines()), (1, 0));
    std::fs::remove_dir(prevented).unwrap();
    assert_eq!(retry_queue.catch_up(), []);
    assert_eq!(written(&retry_queue), [item("allow_1"), item("allow_2")]);
    retry_queue.remove_kept_files();
    assert!(!kept.exists());
    std::fs::remove_dir_all(dir).unwrap();
}

/// Power may fail right after the take-over.
#[test]
fn a_journal_is_removed_only_once_the_disk_has_its_items() {
    let dir = fresh("unsynced");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    // A pipe can be written, but not be synced.
    let _reader = write_to_pipe(&retry_queue);
    let left = leave(&dir, &[settlement("allow_1"), item("allow_2")], b"");
    retry_queue.take_over().unwrap();
    assert_eq!(retry_queue.len(), 2);
    assert!(left.exists() && !is_unlocked(&left), "nobody else takes it over");
    retry_queue.remove_kept_files();
    assert!(left.exists());
    assert_eq!(retry_queue.catch_up(), []);
    assert_eq!(written(&retry_queue), [settlement("allow_1"), item("allow_2")]);
    retry_queue.remove_kept_files();
    assert!(!left.exists());
    std::fs::remove_dir_all(dir).unwrap();
}

/// Replaces the journal's file by a pipe, whose other end is returned.
fn write_to_pipe(retry_queue: &RetryQueue) -> std::io::PipeReader {
    let (reader, writer) = std::io::pipe().unwrap();
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    retry_queue.journal().write_to(file);
    reader
}

/// Prevents that the journal is rewritten as long as the returned directory is there.
fn prevent_rewriting(retry_queue: &RetryQueue) -> PathBuf {
    let path = retry_queue.journal().path().to_string_lossy().into_owned();
    let opening = PathBuf::from(path.replace("pending.jsonl", "opening"));
    std::fs::create_dir(&opening).unwrap();
    opening
}

/// On a full disk, each attempt is as long as the queue.
#[test]
fn after_a_failed_write_only_a_retry_tries_again() {
    let dir = fresh("failed");
    let retry_queue = RetryQueue::open(&dir, 9).unwrap();
    drop(write_to_pipe(&retry_queue));
    let prevented = prevent_rewriting(&retry_queue);
    push(&retry_queue, item("allow_1"));
    assert_eq!(retry_queue.catch_up(), [item("allow_1")]);
    std::fs::remove_dir(prevented).unwrap();
    push(&retry_queue, item("allow_2"));
    assert_eq!((retry_queue.unwritten(), retry_queue.len()), (2, 2));
    assert_eq!(retry_queue.catch_up(), []);
    push(&retry_queue, item("allow_3"));
    assert_eq!(retry_queue.unwritten(), 0);
    let mut written = written(&retry_queue);
    assert_eq!(written.pop(), Some(item("allow_3")));
    assert_eq!(written, [item("allow_1"), item("allow_2")]);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_long_journal_that_cannot_be_rewritten_is_appended_to_until_a_retry() {
    let dir = fresh("outgrown");
    let retry_queue = RetryQueue::open(&dir, 1).unwrap();
    let prevented = prevent_rewriting(&retry_queue);
    let replace = |id: &str| {
        let first = retry_queue.queue().batch(1, |_| true).0;
        first.iter().for_each(|(at, _)| retry_queue.queue().remove(*at));
        push(&retry_queue, item(id));
        retry_queue.journal_lines()
    };
    assert_eq!(["allow_1", "allow_2", "allow_3"].map(replace), [1, 2, 3]);
    std::fs::remove_dir(prevented).unwrap();
    assert_eq!(replace("allow_4"), 4);
    assert_eq!(retry_queue.catch_up(), []);
    assert_eq!(written(&retry_queue), [item("allow_4")]);
    std::fs::remove_dir_all(dir).unwrap();
}

/// The pipe is full, so that a write hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_holds_up_no_call() {
    let dir = fresh("hangs");
    let retry_queue = Arc::new(RetryQueue::open(&dir, 9).unwrap());
    let disk = write_to_pipe(&retry_queue);
    let fill = [0; 1 << 16];
    retry_queue.journal().file().unwrap().write_all(&fill).unwrap();
    tokio::spawn(Arc::clone(&retry_queue).follow_new());
    let queue = Arc::clone(&retry_queue);
    let queued = tokio::spawn(async move {
        for number in 1..=3 {
            queue.enqueue(settlement(&format!("allow_{number}"))).await;
        }
    });
    let queued = timeout(SOON, queued).await.expect("no call waits for the disk");
    queued.unwrap();
    assert_eq!((retry_queue.len(), retry_queue.unwritten()), (3, 3));
    assert_eq!(retry_queue.journal_lines(), 0);
    // The disk works again.
    std::thread::spawn(move || std::io::copy(&mut { disk }, &mut std::io::sink()));
    let written = async {
        while retry_queue.journal_lines() < 3 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, written).await.unwrap();
    assert_eq!(retry_queue.unwritten(), 0);
    std::fs::remove_dir_all(dir).unwrap();
}

#[tokio::test]
async fn an_item_is_in_the_journal_before_its_call_goes_on() {
    let dir = fresh("before");
    let retry_queue = Arc::new(RetryQueue::open(&dir, 9).unwrap());
    tokio::spawn(Arc::clone(&retry_queue).follow_new());
    for number in 1..=3 {
        retry_queue.enqueue(settlement(&format!("allow_{number}"))).await;
        assert_eq!(written(&retry_queue).len(), number);
    }
    retry_queue.enqueue(item("allow_4")).await;
    assert_eq!((written(&retry_queue).len(), retry_queue.journal_lines()), (4, 4));
    std::fs::remove_dir_all(dir).unwrap();
}
