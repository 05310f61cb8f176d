//! The data directory, or the journal in it, is removed or replaced while settlements wait (decision D36): the edge
//! writes them to a new file, or reports them as lost.

use crate::fixture::{ACTUAL, Fixture, SOON, STORE_TIMEOUT_MS, Setup};
use crate::late_settlements::{
    answered_without_a_store, journal_lines, journal_paths, journals, settled_by_another_edge,
};
use harness::until;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns a fixture with three settlements that wait, and are in the journal.
async fn waiting() -> Fixture {
    let setup = Setup::default()
        .wired()
        .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS);
    let fixture = setup.start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    let replies = answered_without_a_store(&fixture, 3).await;
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    assert_eq!(lines(&fixture.edge.dir().join("data")), 3);
    fixture
}

/// Returns the number of lines of all journals in a directory; 0 if it does not exist.
fn lines(data: &Path) -> usize {
    match data.exists() {
        true => journal_lines(data),
        false => 0,
    }
}

/// Returns the path of the only journal in a directory.
fn journal(data: &Path) -> PathBuf {
    journal_paths(data).next().expect("a journal")
}

fn remove_folder(data: &Path) {
    std::fs::remove_dir_all(data).expect("removed");
}

fn move_folder(data: &Path) {
    std::fs::rename(data, data.with_extension("moved")).expect("moved");
    std::fs::create_dir(data).expect("an empty folder in its place");
}

fn replace_journal(data: &Path) {
    let path = journal(data);
    let copy = std::fs::read(&path).expect("the journal");
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, &copy[..copy.len() / 2]).expect("another file in its place");
}

#[tokio::test]
async fn settlements_of_a_removed_directory_reach_the_next_edge() {
    for (remove, kill) in [
        (remove_folder as fn(&Path), true),
        (remove_folder, false),
        (move_folder, true),
        (replace_journal, true),
        (replace_journal, false),
    ] {
        let fixture = waiting().await;
        let data = fixture.edge.dir().join("data");
        let path = journal(&data);
        remove(&data);
        if kill {
            until("a journal at the path", async || lines(&data) == 3).await;
            fixture.edge.kill9();
        } else {
            fixture.edge.term();
            assert_eq!(fixture.edge.wait_exit(SOON), Some(0), "{}", fixture.edge.logs());
        }
        let logs = fixture.edge.logs();
        let noticed = logs
            .lines()
            .filter(|line| line.contains("is no longer at its path"));
        let noticed: Vec<&str> = noticed.collect();
        assert_eq!(noticed.len(), 1, "{logs}");
        assert!(noticed[0].contains(path.to_str().expect("a path")), "{noticed:?}");
        settled_by_another_edge(&fixture, &data).await;
    }
}

/// Later settlements go to the new file, too, and a second removal is noticed like the first.
#[tokio::test]
async fn settlements_after_a_removal_are_in_the_new_journal() {
    let fixture = waiting().await;
    let data = fixture.edge.dir().join("data");
    for _ in 0..2 {
        remove_folder(&data);
        until("a journal at the path", async || lines(&data) == 3).await;
    }
    fixture.wire().heal();
    fixture.settled_at(4 * ACTUAL).await;
    until("an empty journal", async || lines(&data) == 0).await;
    remove_folder(&data);
    until("an empty journal at the path", async || {
        data.exists() && journals(&data).len() == 1
    })
    .await;
    let replies = answered_without_a_store(&fixture, 2).await;
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    assert_eq!(lines(&data), 2);
    let noticed = fixture.edge.logs().matches("is no longer at its path").count();
    assert_eq!(noticed, 3, "{}", fixture.edge.logs());
}

/// A file in place of the directory prevents a new journal: the items are in memory alone.
#[tokio::test]
async fn without_a_place_for_a_new_journal_the_items_count_as_unwritten() {
    let fixture = waiting().await;
    let data = fixture.edge.dir().join("data");
    remove_folder(&data);
    std::fs::write(&data, b"").expect("a file");
    let unwritten = || fixture.metric("tollgate_proxy_pending_unwritten");
    until("unwritten items", async || unwritten() == 3).await;
    fixture.edge.term();
    assert_eq!(fixture.edge.wait_exit(SOON), Some(4), "{}", fixture.edge.logs());
    let logs = fixture.edge.logs();
    assert_eq!(logs.matches("lost with this process").count(), 3, "{logs}");
    assert_eq!(logs.matches("is no longer at its path").count(), 1, "{logs}");
}

/// Without an item that waits, the edge looks for the journals of others every two seconds.
#[tokio::test]
async fn a_missing_directory_is_logged_once() {
    const UNREADABLE: &str = "proxy.data_dir cannot be read";
    let fixture = Setup::default().start().await;
    let data = fixture.edge.dir().join("data");
    remove_folder(&data);
    std::fs::write(&data, b"").expect("a file");
    let logged = || fixture.edge.logs().matches(UNREADABLE).count();
    until("a line of the log", async || logged() > 0).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(logged(), 1, "{}", fixture.edge.logs());
    std::fs::remove_file(&data).expect("removed");
    until("an empty journal at the path", async || {
        data.is_dir() && journals(&data).len() == 1
    })
    .await;
    fixture.edge.term();
    assert_eq!(fixture.edge.wait_exit(SOON), Some(0), "{}", fixture.edge.logs());
}
