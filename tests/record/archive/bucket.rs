//! An S3-compatible service as archive: moto, installed once below the build's target folder.

use super::fixture::{EVERYTHING, Fixture, archive_at, location_of};
use archive::Archive;
use harness::{eventually, free_port, python_package};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::page::PageRequest;

/// The service, as a requirement of pip.
const MOTO: &str = "moto[server,s3]==5.2.4";

/// Longest wait for the service to start.
const WAIT: Duration = Duration::from_secs(60);

/// A running service; killed on drop.
struct Service {
    process: Child,
    port: u16,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Service {
    async fn start() -> Self {
        let mut service = Self {
            process: launch(0),
            port: free_port(),
        };
        service.restart().await;
        service
    }

    /// Starts the service on its port, with only an empty bucket.
    async fn restart(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = launch(self.port);
        let port = self.port;
        let up = || async { TcpStream::connect(("127.0.0.1", port)).ok() };
        eventually("moto to listen", WAIT, up).await;
        let made = harness::http_client().put(format!("{}/trail", self.url()));
        assert!(made.send().await.expect("an answer").status().is_success());
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn archive(&self) -> Archive {
        Archive::at(location_of(&[
            ("ARCHIVE", "s3://trail/gate/one"),
            ("S3_ENDPOINT", &self.url()),
            ("S3_ACCESS_KEY_ID", "key"),
            ("S3_SECRET_ACCESS_KEY", "hush-hush"),
        ]))
    }
}

fn launch(port: u16) -> Child {
    let program = python_package(env!("CARGO_TARGET_TMPDIR"), "moto", MOTO).join("bin/moto_server");
    let mut run = Command::new("/usr/bin/setpriv");
    run.args(["--pdeathsig", "KILL", "--"]).arg(program);
    run.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    run.env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "hush-hush");
    run.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    run.spawn().expect("moto starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_takes_segments_gives_them_back_and_may_fail() {
    let mut service = Service::start().await;
    let archive = service.archive();
    let place = archive.location();
    assert_eq!(place.get("x").await.unwrap(), None);
    assert_eq!(place.list("").await.unwrap(), Vec::<String>::new());
    place.put("a/b c", b"old".to_vec()).await.unwrap();
    place.put("a/b c", b"new".to_vec()).await.unwrap();
    place.put("ab", vec![7; 9 << 20]).await.unwrap();
    assert_eq!(place.get("a/b c").await.unwrap().unwrap(), "new");
    assert_eq!(place.get("ab").await.unwrap().unwrap().len(), 9 << 20);
    assert_eq!(place.list("a").await.unwrap(), ["a/b c"]);
    assert_eq!(place.list("").await.unwrap(), ["a/b c", "ab"]);

    let fixture = Fixture::new().await;
    let ids = fixture.fill(40).await;
    let live = fixture.list(EVERYTHING, 0, 100).await;
    for _ in 0..2 {
        let moving = archive.move_segment(&fixture.chain(), 40, 15).await;
        assert_eq!(moving.unwrap(), 15);
    }
    archive.forget_decisions(&fixture.chain(), 0).await.unwrap();
    let trail = |archive| history::trail::Trail::new(&fixture.store, archive, fixture.account.keys.live());
    let everything = PageRequest::at(0, 100);
    let fresh = service.archive();
    let listed = trail(&fresh).list(EVERYTHING, everything).await.unwrap();
    assert_eq!((listed.records, listed.total), live);
    assert_eq!(trail(&fresh).decision(&ids[0]).await.unwrap().len(), 1);
    assert_eq!(place.list("segments").await.unwrap().len(), 4);

    // The service is down: nothing leaves the store, and reading the archive is an error without secrets.
    service.process.kill().unwrap();
    let moving = archive.move_segment(&fixture.chain(), 40, 5).await;
    let error = moving.unwrap_err().to_string();
    assert!(
        error.starts_with("the archive cannot") && !error.contains("hush"),
        "{error}"
    );
    assert_eq!(fixture.chain().backlog().await.unwrap().live, 10);
    let gone = service.archive();
    let error = trail(&gone).list(EVERYTHING, everything).await.unwrap_err();
    assert!(error.to_string().contains("segments/"), "{error}");

    // The service is back and empty: the old segments are missing, and nothing is written beside that. Once the
    // operator has given it the archive's id, it takes new ones.
    service.restart().await;
    let error = trail(&gone).read(1).await.unwrap_err();
    assert!(error.to_string().contains("it is not there"), "{error}");
    let moving = archive.move_segment(&fixture.chain(), 40, 5).await;
    let error = moving.unwrap_err().to_string();
    let id = error.split('`').find(|part| part.starts_with("archive_"));
    let id = id.expect("the expected id").to_owned();
    assert_eq!(place.list("").await.unwrap(), Vec::<String>::new());
    place.put("archive-id", id.into_bytes()).await.unwrap();
    let moving = archive.move_segment(&fixture.chain(), 40, 5).await;
    assert_eq!(moving.unwrap(), 5);
    assert_eq!(trail(&gone).read(31).await.unwrap().len(), 5);
    drop(archive_at(fixture.root.path()));
}
