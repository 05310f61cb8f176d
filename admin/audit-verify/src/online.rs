//! Verification of a trail in place: archived and live entries, their number in the account's record, and the last
//! checkpoint.

use super::end::{Compared, KnownEnd, UNSIGNED, young};
use super::lists::Lists;
use super::manifests::Manifests;
use crate::broken::Broken;
use crate::verdict::Verdict;
use crate::verifier::ChainVerifier;
use archive::Archive;
use history::trail::Trail;
use std::ops::RangeInclusive;
use std::time::Duration;
use store::audit::chain::Chain;
use store::keys::Realm;
use store::server_clock;
use store::{Store, StoreError};

/// Verifies the whole trail, and compares its end with the account's record and the known ends. `every` is the pause of
/// the worker that signs checkpoints; `progress` gets the number of verified entries, and of all.
///
/// # Errors
/// [`StoreError`] if the store or the archive does not reply, or a later release wrote a line: nothing is said of the
/// trail then. Malformed data in the store is a verdict, and so is an archived object that is missing or has changed.
pub async fn online(
    store: &Store,
    archive: &Archive,
    realm: &Realm,
    known: Vec<KnownEnd>,
    every: Duration,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<Verdict, StoreError> {
    let chain = Chain::new(store, realm.clone());
    let young = young(server_clock::now_ms(store).await?, every);
    let mut verifier = ChainVerifier::starting_after(0);
    match verify((archive, &chain), &mut verifier, known, &young, progress).await {
        Err(StoreError::MalformedData { source, .. }) => {
            let key = chain.malformed_key().await?;
            let key = key.map_or_else(|| "a list of the trail".to_owned(), |key| format!("`{key}`"));
            let mut verdict = Verdict::new(&verifier);
            let problem = format!("{key} in the store is malformed, so nothing could be verified: {source}.");
            verdict.broken = Some(Broken { seq: None, problem });
            Ok(verdict)
        }
        verdict => verdict,
    }
}

async fn verify(
    (archive, chain): (&Archive, &Chain<'_>),
    verifier: &mut ChainVerifier,
    known: Vec<KnownEnd>,
    young: &RangeInclusive<u64>,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Verdict, StoreError> {
    let realm = chain.realm();
    let trail = Trail::new(chain.store(), archive, realm.clone());
    // All these lines are sealed next, so the verifier must reach the last one.
    let goal = chain.count().await?.lines;
    progress(0, goal);
    let unsealed = match trail.seal_until(goal).await {
        Ok(end) if end.seq < goal && chain.ends_with_later_release().await? => {
            return Err(StoreError::LaterRelease(format!("audit entry {}", end.seq + 1)));
        }
        Ok(_) => None,
        Err(StoreError::UnexpectedReply(why)) => Some(why),
        Err(error) => return Err(error),
    };
    // A checkpoint of an earlier state also has the end at the time of signing, which the trail must still reach.
    let known: Vec<KnownEnd> = known
        .into_iter()
        .flat_map(|one| [one.at_signing(), Some(one)])
        .flatten()
        .collect();
    for one in &known {
        one.mark(verifier);
    }
    let mut lists = Lists::default();
    let mut manifests = Manifests::read(archive, chain, realm).await?;
    let beside = (&mut lists, &mut manifests);
    let mut broken = along(&trail, verifier, beside, goal, unsealed, &mut progress).await?;
    if broken.is_none() {
        broken = counted(chain).await?;
    }
    let mut compared = Compared::new(verifier, known, false);
    let mut verdict = Verdict::new(verifier);
    verdict.broken = broken.or(compared.broken.take());
    if verdict.broken.is_none() {
        let listed = lists.compare(chain, verifier.end()).await?;
        verdict.broken = listed.broken;
        verdict.warnings.extend(listed.warning.map(str::to_owned));
        verdict.broken = verdict.broken.or(manifests.broken);
    }
    // Only a signature proves the end: an attacker who writes to the store can truncate the trail and lower the count.
    verdict.end_proven = compared.is_end_proven(verifier, young);
    verdict.proven_to = compared.signed;
    verdict.warnings.extend(compared.uncovered(verifier, young));
    verdict.checkpoint = compared.best;
    if verdict.checkpoint.is_none() {
        verdict.warnings.push(UNSIGNED.to_owned());
    }
    Ok(verdict)
}

/// Walks to entry `goal`, or to the first fault.
async fn along(
    trail: &Trail<'_>,
    verifier: &mut ChainVerifier,
    (lists, manifests): (&mut Lists, &mut Manifests<'_>),
    goal: u64,
    unsealed: Option<String>,
    progress: &mut (impl FnMut(u64, u64) + Send),
) -> Result<Option<Broken>, StoreError> {
    while verifier.end() < goal {
        let next = verifier.end() + 1;
        let entries = match trail.read(next).await {
            Ok(entries) => entries,
            Err(StoreError::UnexpectedReply(why)) => {
                return Ok(Some(Broken::at(next, format!("its record is malformed: {why}."))));
            }
            Err(StoreError::Archive(why)) => {
                let problem = format!("what was archived of it is missing or was changed: {why}.");
                return Ok(Some(Broken::at(next, problem)));
            }
            Err(error) => return Err(error),
        };
        if entries.is_empty() {
            let problem = unsealed.map_or_else(
                || "its line is missing in the store.".to_owned(),
                |why| format!("it cannot be sealed: {why}."),
            );
            return Ok(Some(Broken::at(next, problem)));
        }
        for entry in entries {
            if let Err(broken) = verifier.step(entry.json.as_bytes()) {
                return Ok(Some(broken));
            }
            if let Some((agent, kind)) = verifier.subject() {
                lists.add(agent, kind);
            }
        }
        manifests.up_to(verifier.end()).await?;
        progress(verifier.end().min(goal), goal);
    }
    Ok(None)
}

/// Compares the number of lines with the account's record.
async fn counted(chain: &Chain<'_>) -> Result<Option<Broken>, StoreError> {
    let count = chain.count().await?;
    if count.given > count.lines {
        let problem = format!(
            "entries {} to {} are missing at the end: the account's record counts them.",
            count.lines + 1,
            count.given
        );
        return Ok(Some(Broken::at(count.lines + 1, problem)));
    }
    if count.given < count.lines {
        let problem = format!(
            "it is beyond the end: the account's record counts only {} entries.",
            count.given
        );
        return Ok(Some(Broken::at(count.given + 1, problem)));
    }
    Ok(None)
}
