//! The agents and keys of a run: virtual keys of a file, or agents that are created for the run and removed afterwards.

mod provisioner;

pub use provisioner::{LeftOver, Provisioner, STAND_IN};

use super::kind::RequestKind;
use crate::error::LoadTestError;
use crypto::virtual_key::WellFormed;
use provisioner::CreatedItem;
use secrecy::SecretString;
use store::lookup::VirtualKeyOwner;

/// Maximum number of keys of a run.
pub const KEYS_MAX: usize = 10_000;

/// An agent, as far as the owner of its key is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadAgent {
    /// Account id; empty if unknown.
    pub account: String,
    /// Agent id; for an unknown agent, the number of its key in the file.
    pub id: String,
}

/// A key to call with.
#[derive(Debug)]
struct Member {
    kind: RequestKind,
    /// An index into the agents.
    agent: usize,
    key: SecretString,
}

/// All agents and keys that calls are made with.
#[derive(Debug, Default)]
pub struct Fixtures {
    agents: Vec<LoadAgent>,
    members: Vec<Member>,
    made: Vec<CreatedItem>,
}

impl Fixtures {
    /// Parses the keys of a file: one per line, after the name of a kind unless it is for approved calls.
    ///
    /// # Errors
    /// [`LoadTestError::Usage`] with the line, never the key.
    pub fn from_file(text: &str, store_knows: &[Option<VirtualKeyOwner>]) -> Result<Self, LoadTestError> {
        let mut fixtures = Self::default();
        for (number, (kind, key)) in lines(text)?.into_iter().enumerate() {
            let owner = store_knows.get(number).and_then(Option::as_ref);
            let agent = match owner {
                Some(owner) => LoadAgent {
                    account: owner.account().to_owned(),
                    id: owner.agent().to_owned(),
                },
                None => LoadAgent {
                    account: String::new(),
                    id: format!("key {}", number + 1),
                },
            };
            fixtures.add(kind, agent, key.to_owned().into());
        }
        if fixtures.of_kind(RequestKind::Approved).is_empty() {
            let message = "--keys-file holds no key for approved calls";
            return Err(LoadTestError::Usage(message.to_owned()));
        }
        // A malformed body is sent with a valid key.
        let agent = fixtures.members[0].agent;
        let (_, key) = fixtures.of_kind(RequestKind::Approved).swap_remove(0);
        fixtures.members.push(Member {
            kind: RequestKind::Malformed,
            agent,
            key,
        });
        Ok(fixtures)
    }

    fn add(&mut self, kind: RequestKind, agent: LoadAgent, key: SecretString) {
        let known = self.agents.iter().position(|other| *other == agent);
        let agent = known.unwrap_or_else(|| {
            self.agents.push(agent);
            self.agents.len() - 1
        });
        self.members.push(Member { kind, agent, key });
    }

    /// Returns the agents in the order of their indexes in [`Self::of_kind`].
    pub fn agents(&self) -> &[LoadAgent] {
        &self.agents
    }

    /// Returns the keys of a kind, each with the index of its agent.
    pub fn of_kind(&self, kind: RequestKind) -> Vec<(usize, SecretString)> {
        let members = self.members.iter().filter(|member| member.kind == kind);
        members.map(|member| (member.agent, member.key.clone())).collect()
    }
}

/// Parses the lines of a key file.
///
/// # Errors
/// [`LoadTestError::Usage`] with the line.
pub fn lines(text: &str) -> Result<Vec<(RequestKind, &str)>, LoadTestError> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: &str| LoadTestError::Usage(format!("--keys-file, line {}: {what}", number + 1));
        let (kind, key) = match line.split_once(char::is_whitespace) {
            None => (RequestKind::Approved, line),
            Some((word, key)) => {
                let kind = RequestKind::parse(word).filter(|kind| *kind != RequestKind::Malformed);
                let what = "before a key may stand approved, frozen, revoked or over-cap";
                (kind.ok_or_else(|| bad(what))?, key.trim())
            }
        };
        if WellFormed::parse(key.as_bytes()).is_none() {
            return Err(bad("that is no virtual key: vk_live_ and 64 hex digits"));
        }
        found.push((kind, key));
        if found.len() > KEYS_MAX {
            return Err(bad("more than 10,000 keys"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "vk_live_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_key_file_names_kinds() {
        let text = format!("# staging\n{KEY}\n\nfrozen {KEY}\n  over-cap\t{KEY}  \n");
        let kinds: Vec<RequestKind> = lines(&text).unwrap().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(
            kinds,
            [RequestKind::Approved, RequestKind::Frozen, RequestKind::OverCap]
        );
        let fixtures = Fixtures::from_file(&text, &[]).unwrap();
        assert_eq!(
            (
                fixtures.agents().len(),
                fixtures.of_kind(RequestKind::Malformed).len()
            ),
            (3, 1)
        );
    }

    #[test]
    fn an_invalid_key_is_reported_by_its_line_and_not_shown() {
        for (text, said) in [
            ("\nsk-secret", "line 2"),
            ("happy vk_live_1", "before a key"),
            ("malformed vk_live_1", "before a key"),
        ] {
            let error = lines(text).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
        let none = Fixtures::from_file(&format!("frozen {KEY}"), &[])
            .unwrap_err()
            .to_string();
        assert!(none.contains("approved"), "{none}");
    }
}
