//! Writes many records of one kind, in the form in which the product writes them, into the first account of a fixture.

use crate::Outcome;
use crate::actor::Actor;
use crate::calls::ESTIMATE;
use crate::fixture::Fixture;
use clock::now_ms;
use domain::id::IdKind;
use domain::period::Period;
use gate_bench::lines::line;
use redis::Pipeline;
use store::call::authorize::RUN_LIFE_MS;
use store::call::hold::{HoldName, memo};
use store::keys;
use store::lookup::VirtualKeyOwner;

/// Commands in one round trip.
const AT_ONCE: u64 = 2_000;
/// Records that calls are spread over.
const CALLERS: u64 = 1_000;
/// Checks of a decision, of the usual length.
const CHECKS: &str = "7:4000000000000000:,5:4000000000000000:,432100:4000000000000000:,432100:4000000000000000:750000,\
                      432100:4000000000000000:,7:4000000000000000:,432100:4000000000000000:";

/// Writes `count` records in batches.
async fn write(
    fixture: &Fixture,
    count: u64,
    mut one: impl FnMut(&mut Pipeline, u64) -> Outcome<()>,
) -> Outcome<()> {
    let mut at = 0;
    while at < count {
        let mut batch = redis::pipe();
        for number in at..(at + AT_ONCE).min(count) {
            one(&mut batch, number)?;
        }
        batch.ignore_errors();
        let replies: Vec<redis::Value> = fixture.store.pipeline(&batch).await?;
        if let Some(error) = replies
            .iter()
            .find(|reply| matches!(reply, redis::Value::ServerError(_)))
        {
            return Err(format!("{error:?}").into());
        }
        at += AT_ONCE;
    }
    Ok(())
}

/// Writes virtual keys of the agents that call.
pub async fn keys(fixture: &mut Fixture, count: u64) -> Outcome<()> {
    let account = fixture.account.clone();
    let first: Vec<Actor> = fixture
        .free
        .iter()
        .filter(|actor| actor.account == account.id)
        .cloned()
        .collect();
    let now = now_ms();
    let mut callers = Vec::new();
    let every = (count / CALLERS).max(1);
    write(fixture, count, |batch, number| {
        let actor = first
            .get(usize::try_from(number)? % first.len().max(1))
            .ok_or("no actor")?;
        let id = IdKind::VirtualKey.mint(now)?;
        let owner = VirtualKeyOwner::new(&account.id, &actor.agent, &id);
        let hash = format!("{number:064x}");
        let lookup = keys::virtual_key_lookup(&hash);
        batch.cmd("SET").arg(lookup).arg(owner.as_stored());
        let place = 1_000 + number;
        batch
            .cmd("ZADD")
            .arg(account.keys.active_keys())
            .arg(place)
            .arg(&id);
        batch
            .cmd("ZADD")
            .arg(account.keys.agent_keys(&actor.agent))
            .arg(place)
            .arg(&id);
        let created = now.to_string();
        let fields = [
            ("id", id.as_str()),
            ("agent", &actor.agent),
            ("name", ""),
            ("prefix", "vk_live_0000"),
            ("hash", &hash),
            ("status", "active"),
            ("created_at", &created),
        ];
        batch.cmd("HSET").arg(account.keys.virtual_key(&id)).arg(&fields);
        if number % every == 0 {
            callers.push(Actor {
                key_id: id,
                ..actor.clone()
            });
        }
        Ok(())
    })
    .await?;
    fixture.spread(callers);
    Ok(())
}

/// Writes agents that may call.
pub async fn agents(fixture: &mut Fixture, count: u64) -> Outcome<()> {
    let account = fixture.account.clone();
    let actor = fixture.free.first().cloned().ok_or("no actor")?;
    let record = account.keys.live().agent(&actor.agent);
    let fields: Vec<(String, String)> = fixture.store.command(redis::cmd("HGETALL").arg(record)).await?;
    let period = Period::at(now_ms());
    let day = format!("d{}", period.day);
    let (month, slot) = (format!("m{}", period.month), format!("s{}", period.month));
    let every = (count / CALLERS).max(1);
    let mut callers = Vec::new();
    write(fixture, count, |batch, number| {
        let agent = format!("agent-{number}");
        let key = account.keys.live().agent(&agent);
        batch.cmd("HSET").arg(&key).arg(&fields);
        let counters = [
            (day.as_str(), "0"),
            (month.as_str(), "0"),
            ("held", "0"),
            (slot.as_str(), "1"),
        ];
        batch.cmd("HSET").arg(&key).arg(&counters);
        batch.cmd("SADD").arg(account.keys.sealed_agents()).arg(&agent);
        if number % every == 0 {
            callers.push(Actor {
                run: format!("run-of-{agent}"),
                agent,
                ..actor.clone()
            });
        }
        Ok(())
    })
    .await?;
    let slots = format!("n{}", period.month);
    let mut add = redis::cmd("HINCRBY");
    let add = add.arg(account.keys.record()).arg(slots).arg(count);
    let _: u64 = fixture.store.command(add).await?;
    fixture.spread(callers);
    Ok(())
}

pub async fn runs(fixture: &mut Fixture, count: u64) -> Outcome<()> {
    let account = fixture.account.clone();
    let actor = fixture.free.first().cloned().ok_or("no actor")?;
    let now = now_ms();
    let every = (count / CALLERS).max(1);
    let mut callers = Vec::new();
    write(fixture, count, |batch, number| {
        let run = format!("conversation-{number}");
        let key = account.keys.live().run(&actor.agent, &run);
        let last_seen = now.to_string();
        let fields = [
            ("first", last_seen.as_str()),
            ("last", &last_seen),
            ("spent", "0"),
            ("calls", "1"),
        ];
        batch.cmd("HSET").arg(&key).arg(&fields);
        batch.cmd("PEXPIRE").arg(&key).arg(RUN_LIFE_MS);
        let index = account.keys.live().runs(&actor.agent);
        batch.cmd("ZADD").arg(index).arg(now).arg(&run);
        if number % every == 0 {
            callers.push(Actor { run, ..actor.clone() });
        }
        Ok(())
    })
    .await?;
    fixture.spread(callers);
    Ok(())
}

/// Writes open holds of the first account.
pub async fn holds(fixture: &mut Fixture, count: u64) -> Outcome<()> {
    let bucket = fixture.account.keys.bucket();
    let actor = fixture.free.first().cloned().ok_or("no actor")?;
    let now = now_ms();
    let period = Period::at(now);
    let mut name = HoldName {
        account: actor.account,
        agent: actor.agent,
        run: actor.run,
        allow_id: String::new(),
    };
    write(fixture, count, |batch, number| {
        name.allow_id = IdKind::Allow.mint(now)?;
        let memo = memo(&name, &actor.key_id, "9f8e7d6c5b4a", "gpt-4o-mini");
        let text = format!(
            "H {} {} {} 1 {CHECKS} {memo}",
            ESTIMATE.get(),
            period.day,
            period.month
        );
        batch.cmd("SET").arg(bucket.hold(&name.allow_id)).arg(text);
        let deadline = now + 3_600_000 + number;
        batch
            .cmd("ZADD")
            .arg(bucket.due())
            .arg(deadline)
            .arg(&name.allow_id);
        Ok(())
    })
    .await?;
    fixture.holds += count;
    Ok(())
}

/// Writes unsealed lines of decisions.
pub async fn decisions(fixture: &mut Fixture, count: u64) -> Outcome<()> {
    let account = fixture.account.clone();
    let start = now_ms().saturating_sub(count);
    let field = "live_audit_seq";
    let before: Option<u64> = fixture
        .store
        .command(redis::cmd("HGET").arg(account.keys.record()).arg(field))
        .await?;
    let before = before.unwrap_or_default();
    write(fixture, count, |batch, number| {
        let at = start + number;
        let line = format!("{} {at} {}", before + number + 1, line(&account.id, number, at)?);
        batch.cmd("RPUSH").arg(account.keys.live().audit()).arg(line);
        Ok(())
    })
    .await?;
    let mut add = redis::cmd("HINCRBY");
    let add = add.arg(account.keys.record()).arg(field).arg(count);
    let _: u64 = fixture.store.command(add).await?;
    Ok(())
}
