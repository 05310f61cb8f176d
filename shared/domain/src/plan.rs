//! Plans and their limits: `config/plans.toml` (decision D7). A limit that is absent is unlimited.

use super::amount;
use super::cap::CapPlan;
use super::money::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The compiled-in table, which is also the documented default file.
pub const DEFAULT_PLANS: &str = include_str!("../../../config/plans.toml");

/// Limits and features of an account. `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Active virtual keys of the account.
    pub active_virtual_keys: Option<u64>,
    /// Proxy requests per minute and key.
    pub proxy_requests_per_minute: Option<u64>,
    /// Agents that may spend in a month.
    pub cap_agents_per_month: Option<u64>,
    /// USD tracked in a month, for all agents together.
    #[serde(default, deserialize_with = "usd")]
    pub tracked_usd_per_month: Option<Nanos>,
    /// Custom agents of an account (`TIER_LIMIT`, decision D53).
    pub custom_agents: Option<u64>,
    /// Management requests per minute and API key, for operations of specification §4.1.
    pub wallet_requests_per_minute: Option<u64>,
    /// Management requests per day and API key, for operations of specification §4.2.
    pub agent_requests_per_day: Option<u64>,
    /// Management requests per minute and API key, for all other routes.
    pub management_requests_per_minute: Option<u64>,
    /// True if webhooks can be managed in the dashboard; API keys always can (specification "Events", decision D42).
    #[serde(default = "yes")]
    pub webhooks_in_dashboard: bool,
    /// True if calls may stream, if `proxy.streaming` is on.
    #[serde(default = "yes")]
    pub streaming: bool,
    /// The next plan up, if there is one.
    pub upgrade_to: Option<String>,
    /// Page on which an owner upgrades: a URL, or a path of the management server.
    pub upgrade_url: Option<String>,
}

/// The message of 400 `stream_not_supported` for a stream that the plan `name` does not [admit](Plan::admits).
pub fn no_streaming(name: &str) -> String {
    format!("The plan `{name}` has no streaming. Send the call without `stream`.")
}

impl Plan {
    /// Returns whether the plan admits a call; `is_stream` says whether the call requests a stream.
    pub const fn admits(&self, is_stream: bool) -> bool {
        !is_stream || self.streaming
    }

    /// Returns the limits that Cap checks.
    pub const fn cap(&self) -> CapPlan {
        CapPlan {
            agents: self.cap_agents_per_month,
            tracked: self.tracked_usd_per_month,
        }
    }

    /// Returns the absolute URL of the page on which an owner upgrades; a path is one of the server at `public_url`.
    pub fn absolute_upgrade_url(&self, public_url: &str) -> Option<String> {
        let url = self.upgrade_url.as_deref()?;
        let base = if url.starts_with('/') { public_url } else { "" };
        Some(format!("{base}{url}"))
    }
}

/// All plans, by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Plans(BTreeMap<String, Plan>);

impl Plans {
    /// Reads the table.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let plans: Self = toml::from_str(text)?;
        plans.check().map_err(serde::de::Error::custom)?;
        Ok(plans)
    }

    /// Refuses a table without a plan, such as a file that is cut short, and upgrades that lead nowhere.
    fn check(&self) -> Result<(), String> {
        if self.0.is_empty() {
            return Err("there is no plan".to_owned());
        }
        for (name, plan) in &self.0 {
            let next = plan.upgrade_to.as_deref();
            if let Some(next) = next.filter(|next| self.get(next).is_none()) {
                return Err(format!(
                    "`{name}.upgrade_to` is `{next}`, which is no plan of the table"
                ));
            }
            let is_address = |url: &str| {
                let begins = ["/", "https://", "http://"]
                    .iter()
                    .any(|start| url.starts_with(start));
                begins && url.bytes().all(|byte| byte.is_ascii_graphic())
            };
            if plan.upgrade_url.as_deref().is_some_and(|url| !is_address(url)) {
                return Err(format!(
                    "`{name}.upgrade_url` must be a path, or begin with https:// or http://"
                ));
            }
        }
        Ok(())
    }

    /// Returns a plan by its name. If there is none, the call is denied (decision D7).
    pub fn get(&self, name: &str) -> Option<&Plan> {
        self.0.get(name)
    }

    /// Returns the names by rank: each plan before the one that it can be upgraded to. Plans without an upgrade path
    /// come last, alphabetically.
    pub fn by_rank(&self) -> Vec<&str> {
        let steps_up = |name: &str| {
            let mut plan = self.get(name);
            let mut steps = 0;
            // Bounded, in case the upgrade paths of a table form a circle.
            while steps < self.0.len()
                && let Some(next) = plan.and_then(|plan| plan.upgrade_to.as_deref())
            {
                plan = self.get(next);
                steps += 1;
            }
            steps
        };
        let mut names: Vec<&str> = self.names().collect();
        names.sort_by_key(|name| std::cmp::Reverse(steps_up(name)));
        names
    }

    /// Returns the first plan above `name` for which `has` is true, and the plan below it, which has the upgrade URL.
    pub fn upgrade_path_to(&self, name: &str, has: impl Fn(&Plan) -> bool) -> Option<(&str, &Plan)> {
        let mut below = self.get(name)?;
        // Bounded, in case the upgrade paths of a table form a circle.
        for _ in 0..self.0.len() {
            let next = below.upgrade_to.as_deref()?;
            let plan = self.get(next)?;
            if has(plan) {
                return Some((next, below));
            }
            below = plan;
        }
        None
    }

    /// Returns those of `names` that are no plan of this table, in alphabetical order.
    pub fn absent<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut absent: Vec<&str> = names.filter(|name| self.get(name).is_none()).collect();
        absent.sort_unstable();
        absent
    }

    /// Returns the names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

const fn yes() -> bool {
    true
}

/// Parses an amount written as a decimal string, so that it is exact.
fn usd<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
    let text = String::deserialize(deserializer)?;
    amount::parse_limit(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_holds_the_tables_of_the_specification() {
        let plans = Plans::parse(DEFAULT_PLANS).unwrap();
        let row = |name: &str| {
            let plan = plans.get(name).unwrap();
            let tracked = plan.tracked_usd_per_month.map(|usd| usd.to_string());
            (
                plan.active_virtual_keys,
                plan.proxy_requests_per_minute,
                plan.cap_agents_per_month,
                tracked,
            )
        };
        assert_eq!(row("free"), (Some(1), Some(10), Some(1), Some("50".into())));
        assert_eq!(
            row("builder"),
            (Some(10), Some(120), Some(10), Some("500".into()))
        );
        assert_eq!(
            row("startup"),
            (Some(50), Some(600), Some(50), Some("5000".into()))
        );
        assert_eq!(row("enterprise"), (None, Some(3000), None, None));
        let webhooks = ["free", "builder", "startup", "enterprise"]
            .map(|name| plans.get(name).unwrap().webhooks_in_dashboard);
        assert_eq!(webhooks, [false, false, true, true]);
        let agents =
            ["free", "builder", "startup", "enterprise"].map(|name| plans.get(name).unwrap().custom_agents);
        assert_eq!(agents, [Some(5), Some(50), Some(250), None]);
    }

    #[test]
    fn a_table_without_plans_or_with_upgrades_that_lead_nowhere_is_refused() {
        for (text, error) in [
            ("", "there is no plan"),
            ("# cut short", "there is no plan"),
            ("[free]\nupgrade_to = \"pro\"", "`free.upgrade_to` is `pro`"),
            (
                "[free]\nupgrade_url = \"javascript:x\"",
                "`free.upgrade_url` must be",
            ),
            (
                "[free]\nupgrade_url = \"/plan\\r\\nx: y\"",
                "`free.upgrade_url` must be",
            ),
        ] {
            let found = Plans::parse(text).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
        Plans::parse("[free]\nupgrade_url = \"https://example.com/up\"").unwrap();
    }

    #[test]
    fn plans_are_ranked_by_the_way_up() {
        let plans = Plans::parse(DEFAULT_PLANS).unwrap();
        assert_eq!(plans.by_rank(), ["free", "builder", "startup", "enterprise"]);
        let circle = "[b]\nupgrade_to = \"a\"\n[a]\nupgrade_to = \"b\"\n[c]\n";
        assert_eq!(Plans::parse(circle).unwrap().by_rank(), ["a", "b", "c"]);
    }

    #[test]
    fn the_way_up_leads_to_a_plan_that_has_what_is_wanted() {
        let plans = Plans::parse(DEFAULT_PLANS).unwrap();
        let way = |name: &str| {
            let found = plans.upgrade_path_to(name, |plan| plan.webhooks_in_dashboard)?;
            Some((found.0, found.1.upgrade_url.as_deref()?))
        };
        assert_eq!(way("free"), Some(("startup", "/plan?to=startup")));
        assert_eq!(way("builder"), Some(("startup", "/plan?to=startup")));
        assert_eq!(way("enterprise"), None);
        let circle = "[b]\nupgrade_to = \"a\"\n[a]\nupgrade_to = \"b\"\n";
        assert_eq!(
            Plans::parse(circle).unwrap().upgrade_path_to("a", |_| false),
            None
        );
    }

    #[test]
    fn a_path_is_one_of_the_management_server() {
        let plans = "[a]\nupgrade_url = \"/plan?to=b\"\n[b]\nupgrade_url = \"https://sales\"\n[c]\n";
        let plans = Plans::parse(plans).unwrap();
        let url = |name: &str| plans.get(name).unwrap().absolute_upgrade_url("https://t");
        assert_eq!(url("a").as_deref(), Some("https://t/plan?to=b"));
        assert_eq!(url("b").as_deref(), Some("https://sales"));
        assert_eq!(url("c"), None);
    }

    #[test]
    fn an_unknown_field_is_named() {
        let error = Plans::parse("[free]\nkeys = 3\n").unwrap_err();
        assert!(error.to_string().contains("keys"), "{error}");
    }
}
