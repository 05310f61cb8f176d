//! `GET /names`: the display names of API keys, virtual keys, policies, users and agents by their ids.

mod doc;

pub(crate) use doc::section;

use crate::state::{ApiState, Call};
use domain::id::IdKind;
use domain::mode::Mode;
use domain::names::{AGENT_ID_MAX, is_agent_id};
use endpoint::{Answer, Problem, Reply, operations};
use serde::Serialize;
use store::keys::USER;
use store::names;
use utoipa::ToSchema;

operations! {
    /// Operations on names.
    ROUTES: ApiState, Management;

    GET "/names", key(Read, Viewer), Both, PerMinute, list, Query;
}

/// Maximum number of ids in one request.
const IDS_MAX: usize = 100;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Names)]
struct DisplayNames<'a> {
    success: bool,
    /// In the order of `ids`, without those that do not exist or have no name.
    names: Vec<NameView<'a>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NamedId)]
struct NameView<'a> {
    #[schema(example = "key_01KAH3V9J80123456789ABCDEF")]
    id: &'a str,
    /// `api_key`, `virtual_key`, `policy`, `user` or `agent`.
    #[schema(example = "api_key")]
    kind: &'static str,
    /// The name; of a user the e-mail address.
    #[schema(example = "CI")]
    name: &'a str,
}

/// `GET /names`
pub async fn list(call: Call) -> Answer {
    let query = call.query(&["ids"])?;
    let ids = match query.get("ids") {
        Some(text) => ids(text)?,
        None => Vec::new(),
    };
    let (store, realm) = (&call.state.store, call.realm());
    let of = |kind: Named| ids.iter().copied().filter(move |id| Named::from_id(id) == kind);
    let mut names = names::read_agent_names(store, &realm, of(Named::Agent)).await?;
    if realm.mode() == Mode::Live {
        names.extend(names::read_virtual_key_names(store, realm.keys(), of(Named::VirtualKey)).await?);
    }
    names.extend(names::read_api_key_names(store, &realm, of(Named::ApiKey)).await?);
    names.extend(names::read_policy_names(store, &realm, of(Named::Policy)).await?);
    names.extend(names::read_user_names(store, realm.keys(), of(Named::User)).await?);
    let views = ids.iter().filter_map(|id| {
        let name = names.get(*id)?;
        let kind = Named::from_id(id).as_str();
        Some(NameView { id, kind, name })
    });
    Reply::ok(&DisplayNames {
        success: true,
        names: views.collect(),
    })
}

/// Kind of the object that an id names, judged by the id's form alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    ApiKey,
    VirtualKey,
    Policy,
    User,
    /// Any other id may belong to an agent.
    Agent,
}

impl Named {
    fn from_id(id: &str) -> Self {
        let kinds = [
            (IdKind::ApiKey, Self::ApiKey),
            (IdKind::VirtualKey, Self::VirtualKey),
            (IdKind::Policy, Self::Policy),
            (IdKind::User, Self::User),
        ];
        let found = kinds.iter().find(|(kind, _)| kind.has_form(id));
        found.map_or(Self::Agent, |(_, named)| *named)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::VirtualKey => "virtual_key",
            Self::Policy => "policy",
            Self::User => "user",
            Self::Agent => "agent",
        }
    }
}

/// Parses the ids, without duplicates.
fn ids(text: &str) -> Result<Vec<&str>, Problem> {
    let mut ids: Vec<&str> = Vec::new();
    for id in text.split(',') {
        if !is_agent_id(id) && id != USER {
            return Err(Problem::validation(format!(
                "ids must be 1 to {IDS_MAX} ids separated by commas, each of 1 to {AGENT_ID_MAX} characters of \
                 A-Z a-z 0-9 . _ : -."
            )));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.len() {
        1..=IDS_MAX => Ok(ids),
        _ => Err(Problem::validation(format!("ids must be at most {IDS_MAX} ids."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_once_each_and_up_to_their_bound() {
        assert_eq!(ids("a,b,a").unwrap(), ["a", "b"]);
        let many = |count: usize| {
            (0..count)
                .map(|n| format!("bot-{n}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(ids(&many(IDS_MAX)).unwrap().len(), IDS_MAX);
        for refused in [many(IDS_MAX + 1).as_str(), "", "a,", "a,,b", "a b"] {
            assert!(ids(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn an_id_is_known_by_its_form_and_every_other_one_may_be_an_agents() {
        const ULID: &str = "01KAH3V9J80123456789ABCDEF";
        for (prefix, named) in [
            ("key_", Named::ApiKey),
            ("vk_", Named::VirtualKey),
            ("pol_", Named::Policy),
            ("usr_", Named::User),
            ("agent_", Named::Agent),
        ] {
            assert_eq!(Named::from_id(&format!("{prefix}{ULID}")), named);
        }
        for agent in ["research-bot", "key_1", "usr_", "operator"] {
            assert_eq!(Named::from_id(agent), Named::Agent);
        }
    }
}
