//! `tollgate-admin sandbox-upstream` as a process: ready, stopped, and refused a port.

use super::*;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Ends the process if the test fails before its end.
struct Ending(Option<Child>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn launch(listen: &str) -> Ending {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate-admin"));
    command
        .args(["sandbox-upstream", "--listen", listen])
        .current_dir(std::env::temp_dir());
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ending(Some(command.spawn().unwrap()))
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_on_sigterm_though_a_call_hangs() {
    let mut child = launch("127.0.0.1:0");
    let process = child.0.as_mut().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    let kill = format!("kill -TERM {}", process.id());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let caller = Caller::new(&format!("http://{}", ready["listen"].as_str().unwrap()), KEY);
    assert_eq!(caller.chat(chat_body("gpt-4o-mini", "hello")).await.status, 200);
    let hanging = tokio::spawn({
        let caller = caller.clone();
        async move {
            caller
                .try_send(
                    "POST",
                    "/v1/chat/completions",
                    &[],
                    chat_body("sandbox-hang", "x").to_string(),
                )
                .await
        }
    });
    harness::until("the hanging call is in flight", async || {
        stats(&caller).await["in_flight"] == 1
    })
    .await;
    let began = Instant::now();
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let ended = async || child.0.as_mut().unwrap().try_wait().unwrap();
    let status = harness::eventually("its end", Duration::from_secs(10), ended).await;
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(hanging.await.unwrap().is_err());
}

/// SIGHUP to every process of an installation ends none of them.
#[tokio::test]
async fn it_outlives_sighup() {
    let mut child = launch("127.0.0.1:0");
    let process = child.0.as_mut().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    let send = |name: &str, id: u32| {
        let kill = format!("kill -{name} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    let mut next = || {
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    };
    let ready = next();
    let caller = Caller::new(&format!("http://{}", ready["listen"].as_str().unwrap()), KEY);
    for _ in 0..2 {
        send("HUP", process.id());
        assert!(next()["message"].as_str().unwrap().contains("SIGHUP"));
        assert_eq!(caller.chat(chat_body("gpt-4o-mini", "hello")).await.status, 200);
    }
    send("TERM", process.id());
    assert!(process.wait().unwrap().success());
}

#[tokio::test]
async fn a_taken_port_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = launch(&address).0.take().unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), stderr.lines().count()),
        (Some(1), 1),
        "{stderr}"
    );
    assert!(stderr.contains(&address), "{stderr}");
}
