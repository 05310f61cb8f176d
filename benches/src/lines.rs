//! Audit lines in the form in which the scripts write them: three denied calls for seven approved ones.

use domain::id::IdKind;
use std::error::Error;

/// Number of agents that the lines name.
pub const AGENTS: u64 = 50;

/// Returns the rest of a line after number and time, for decision `n` of `account` at `at` (ms).
pub fn line(account: &str, n: u64, at: u64) -> Result<String, Box<dyn Error>> {
    let id = IdKind::Allow.mint(at)?;
    let (key, agent) = (IdKind::VirtualKey.mint(at)?, n % AGENTS);
    let memo = format!(
        "{account} support-bot-{agent} run-{} {key} 9f8e7d6c5b4a gpt-4o-mini",
        n / 20
    );
    let checks = format!(
        "1:10:,{}:120:,{n}:5000000000:,{n}:10000000000:1200000,{n}:250000000000:,{agent}:10:,{n}:500000000000:",
        n % 120
    );
    Ok(match n % 10 {
        0..7 => format!(
            "A settled {} {id} H 750000 20775 202611 1 {checks} {memo}",
            n % 1_000_000
        ),
        _ => format!("D daily_limit {id} 750000 {checks} {memo}"),
    })
}
