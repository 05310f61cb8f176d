//! The memory of a real edge after calls with many keys: its caches are bounded.

use crate::{GOAL, Outcome};
use futures::{StreamExt, TryStreamExt, stream};
use gate_bench_rig::memory;
use harness::{
    Answer, Caller, CapPolicy, Edge, EdgeOptions, Redis, Seed, Upstream, chat_body, eventually, http_client,
};
use std::path::Path;
use std::time::Duration;

/// Numbers of keys that call in each step, each key of its own agent. The last is more than the edge caches.
const STEPS: [u64; 3] = [10, 10_000, 150_000];
/// Fewest calls of a step: few keys call often.
const CALLS: u64 = 20_000;

/// Longest wait for the last settlement.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

/// Returns a table of the memory after each step.
pub async fn table(binary: &Path, percent: u64, depth: usize) -> Outcome<String> {
    let redis = Redis::start();
    let seed = Seed::new(&redis.store()).await;
    let upstream = Upstream::start(|_request| Answer::chat(9, 12));
    let account = seed.account("enterprise").await;
    let free = CapPolicy {
        enabled: true,
        ..CapPolicy::default()
    };
    let binary = binary.display().to_string();
    let options = EdgeOptions::new(&binary, redis.url(), upstream.base_url());
    let edge = Edge::start(
        options
            .env("TOLLGATE_PROXY__THREADS", "1")
            .env("RUST_LOG", "warn"),
    );
    let client = http_client();
    let mut weights = vec![(0, resident(edge.pid())?)];
    let (mut agents, mut secrets) = (Vec::new(), Vec::new());
    for step in STEPS {
        let keys = (step * percent / 100).max(10);
        while (secrets.len() as u64) < keys {
            let agent = account.agent(&format!("bot-{}", secrets.len()));
            agent.cap(free).await;
            agent.provider_key("sk-bench-provider-key").await;
            secrets.push(agent.virtual_key().await);
            agents.push(agent);
        }
        let calls = usize::try_from(keys.max(CALLS * percent / 100))?;
        stream::iter(secrets.iter().cycle().take(calls))
            .map(|key| {
                let caller = Caller::new(&edge.url(), key).with_client(client.clone());
                async move {
                    let reply = caller.chat(chat_body("gpt-4o-mini", "hello")).await;
                    (reply.status == 200)
                        .then_some(())
                        .ok_or_else(|| format!("{reply:?}"))
                }
            })
            .buffer_unordered(depth)
            .try_collect::<()>()
            .await?;
        weights.push((keys, resident(edge.pid())?));
    }
    let any = agents.first().ok_or("no agent")?;
    eventually("the last settlement", SETTLED_WITHIN, async || {
        (any.open_holds().await == 0).then_some(())
    })
    .await;
    Ok(verdicts(&weights))
}

/// Returns a table of the keys that have called so far and the memory, in absolute terms and relative to the fewest
/// keys.
fn verdicts(weights: &[(u64, f64)]) -> String {
    let mut table =
        "| keys that have called | resident memory, MB | times that with the fewest | goal |\n|---:|---:|---:|---|\n".to_owned();
    let fewest = weights.iter().find(|(keys, _)| *keys > 0);
    for (keys, weight) in weights {
        let times = fewest.filter(|_| *keys > 0).map(|(_, least)| weight / least);
        let (times, verdict) = match times {
            None => ("–".to_owned(), "–"),
            Some(times) if times <= GOAL => (format!("{times:.2}"), "met"),
            Some(times) => (format!("{times:.2}"), "not met"),
        };
        table += &format!("| {keys} | {weight:.1} | {times} | {verdict} |\n");
    }
    table + &format!("\nThe goal is at most {GOAL} times the memory with the fewest keys.\n")
}

/// Resident memory of a process, in MB of 10^6 bytes.
fn resident(pid: u32) -> Outcome<f64> {
    Ok(memory::sum(&[pid], "VmRSS:")? as f64 * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_held_against_the_goal() {
        let table = verdicts(&[(0, 15.1), (10, 22.1), (10_000, 25.3), (150_000, 59.4)]);
        let rows: Vec<&str> = table.lines().skip(2).take(4).collect();
        assert_eq!(
            rows,
            [
                "| 0 | 15.1 | – | – |",
                "| 10 | 22.1 | 1.00 | met |",
                "| 10000 | 25.3 | 1.14 | met |",
                "| 150000 | 59.4 | 2.69 | not met |",
            ]
        );
    }
}
