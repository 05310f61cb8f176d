//! `/agents/{id}/provider-keys`: the upstream keys that agents' calls are sent with (specification "Provider keys").

mod doc;

pub(crate) use doc::section;

use super::agent;
use crate::state::{ApiState, Call};
use clock::now_ms;
use crypto::seal::SealedFor;
use domain::id::IdKind;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, PAGING, Problem, Reply, operations};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use settings::upstreams::{NAME_MAX, is_provider_name};
use store::agent::ProviderKeyRecord;
use store::page::Order;
use store::provider_key::{NewProviderKey, PROVIDERS_MAX, ProviderKeyStored};
use utoipa::ToSchema;

operations! {
    /// Operations on provider keys.
    ROUTES: ApiState, Management;

    POST "/agents/{id}/provider-keys", key(Write, Admin), LiveOnly, PerMinute, store, Budgeted;
    GET  "/agents/{id}/provider-keys", key(Read, Viewer), LiveOnly, PerMinute, list, Query;
}

/// Longest provider name.
const PROVIDER_MAX: usize = NAME_MAX;
/// Shortest key for an upstream without a key prefix, so that most of the key is never shown.
const KEY_MIN: usize = 8;
/// Prefix in the specification, which applies to `openai` and to every provider that is not a named upstream.
const SPECIFIED_PREFIX: &str = "sk-";
/// Prefixes of Tollgate's own credentials: virtual keys and API keys.
const OWN_PREFIXES: [&str; 3] = ["vk_", "svc_", "sk_service_"];
/// Most characters of a key that are shown later.
const LAST: usize = 4;
/// Longest key.
const KEY_MAX: usize = 512;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProviderKey)]
struct ProviderKeyView<'a> {
    #[schema(value_type = is::ProviderKeyId)]
    key_id: &'a str,
    #[schema(example = "openai")]
    provider: &'a str,
    /// The last four characters of the key: fewer of a key with less than eight behind its prefix. The rest is never
    /// shown.
    #[schema(example = "a1B2")]
    last4: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProviderKeyAnswer)]
struct ProviderKeyAnswer<'a> {
    success: bool,
    provider_key: ProviderKeyView<'a>,
    /// Present only if no upstream has this name: no call is sent with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, extensions(("x-not-in-examples" = json!(true))))]
    warning: Option<String>,
}

impl<'a> ProviderKeyView<'a> {
    fn new(key: &'a ProviderKeyRecord) -> Self {
        Self {
            key_id: &key.key_id,
            provider: &key.provider,
            last4: &key.last4,
            created_at: iso_from_ms(key.created_at_ms),
        }
    }
}

/// `POST /agents/{id}/provider-keys`
pub async fn store(call: Call) -> Answer {
    let agent = call.new_agent()?;
    let body = call.body()?.only(&["provider", "apiKey"])?;
    let provider = provider(body.string("provider")?.required("provider")?)?;
    let key: SecretString = body.string("apiKey")?.required("apiKey")?.into();
    let prefix = call.state.edge.providers.key_prefix(&provider);
    check_key(key.expose_secret(), &provider, prefix)?;
    let key_id = IdKind::ProviderKey.mint(now_ms())?;
    let owner = SealedFor {
        account: &call.caller.account,
        agent,
        provider: &provider,
        key_id: &key_id,
    };
    let sealed = call.admission.health.seal(&owner, &key)?;
    let last4 = shown(key.expose_secret(), prefix);
    let new = NewProviderKey {
        agent,
        provider: &provider,
        key_id: &key_id,
        sealed: &sealed,
        last4,
    };
    match new.store(&call.state.store, &call.scope()).await? {
        ProviderKeyStored::Done { created_at_ms } => Reply::created(&ProviderKeyAnswer {
            success: true,
            provider_key: ProviderKeyView {
                key_id: &key_id,
                provider: &provider,
                last4,
                created_at: iso_from_ms(created_at_ms),
            },
            warning: unused(&provider, call.state.edge.providers.names()),
        }),
        ProviderKeyStored::TooMany => {
            let message = format!("An agent can have keys for {PROVIDERS_MAX} providers.");
            Err(Problem::new(Code::Conflict, message))
        }
    }
}

/// `GET /agents/{id}/provider-keys`
pub async fn list(call: Call) -> Answer {
    let paging = call.paging(&call.query(&PAGING)?, "providerKeys")?;
    let agent = agent::require(&call, call.agent()?).await?;
    let part = paging
        .page()
        .of_all(agent.provider_keys, Order::Ascending, |key| {
            (key.created_at_ms, &key.key_id)
        })?;
    Reply::ok(&paging.listing(&part, ProviderKeyView::new))
}

/// Returns the provider's name in lower case.
fn provider(name: String) -> Result<String, Problem> {
    let name = name.to_ascii_lowercase();
    if is_provider_name(&name) {
        return Ok(name);
    }
    let message = format!("provider must be 1 to {PROVIDER_MAX} characters of a-z 0-9 . _ -.");
    Err(Problem::validation(message))
}

/// Returns the warning about a name that no upstream has. The key is accepted, since it may be stored before its
/// upstream is configured.
fn unused<'a>(provider: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    if names.contains(&provider) {
        return None;
    }
    let names = names.join(", ");
    Some(format!(
        "No upstream uses keys of `{provider}`, so no call is sent with this one. Those that do: {names}."
    ))
}

/// Refuses a text that cannot be a key of this provider. The answer does not repeat it.
fn check_key(text: &str, provider: &str, prefix: &str) -> Result<(), Problem> {
    if is_provider_key(text, prefix) {
        return Ok(());
    }
    Err(match prefix {
        SPECIFIED_PREFIX => Code::InvalidProviderKey.into(),
        prefix => {
            let start = match prefix {
                "" => format!("at least {KEY_MIN} characters"),
                prefix => format!("`{prefix}` at its start"),
            };
            let message = format!(
                "A key for {provider} has {start}, at most {KEY_MAX} printable characters, and is none of Tollgate's own."
            );
            Problem::new(Code::InvalidProviderKey, message)
        }
    })
}

/// Returns the end of a key that [`is_provider_key`], to show: at most [`LAST`] characters, and at most half of those
/// behind the prefix, since the specification accepts keys that are as short as `sk-test`.
fn shown<'a>(text: &'a str, prefix: &str) -> &'a str {
    let secret = text.strip_prefix(prefix).unwrap_or(text);
    &secret[secret.len() - LAST.min(secret.len() / 2)..]
}

/// Returns whether this can be an upstream's key. It becomes a header, so it must be printable ASCII without spaces,
/// and long enough that the last characters are not the whole part after the prefix. Tollgate's own credentials are
/// refused, whatever the prefix.
fn is_provider_key(text: &str, prefix: &str) -> bool {
    let shortest = match prefix {
        "" => KEY_MIN,
        prefix => prefix.len() + LAST,
    };
    text.starts_with(prefix)
        && (shortest..=KEY_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !OWN_PREFIXES.iter().any(|own| text.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_no_call_uses_gets_a_warning() {
        let names = || ["openai", "azure"].into_iter();
        assert_eq!(unused("openai", names()), None);
        assert_eq!(unused("azure", names()), None);
        assert_eq!(
            unused("anthropic", names()).as_deref(),
            Some(
                "No upstream uses keys of `anthropic`, so no call is sent with this one. Those that do: openai, azure."
            )
        );
    }

    #[test]
    fn only_upstream_keys_are_taken() {
        let is_taken = |key: &str| is_provider_key(key, SPECIFIED_PREFIX);
        assert!(is_taken("sk-test") && is_taken(&format!("sk-{}", "x".repeat(509))));
        for bad in [
            "",
            "sk-",
            "sk-abc",
            "SK-abcdefgh",
            " sk-abcdefgh",
            "sk-abc defgh",
            "sk-abcdefgh\n",
            "sk-abcdéfgh",
            "sk_service_live_00",
            "vk_live_0000",
            "xsk-abcdefgh",
            &format!("sk-{}", "x".repeat(510)),
        ] {
            assert!(!is_taken(bad), "{bad:?}");
        }
    }

    #[test]
    fn at_most_half_of_a_key_is_shown() {
        for (key, prefix, end) in [
            ("sk-test", SPECIFIED_PREFIX, "st"),
            ("sk-abcdefg", SPECIFIED_PREFIX, "efg"),
            ("sk-abcdefgh", SPECIFIED_PREFIX, "efgh"),
            ("sk-abcdefghi", SPECIFIED_PREFIX, "fghi"),
            ("gsk_abcd", "gsk_", "cd"),
            ("01234567", "", "4567"),
        ] {
            assert!(is_provider_key(key, prefix), "{key}");
            assert_eq!(shown(key, prefix), end, "{key}");
        }
    }

    #[test]
    fn the_prefix_is_that_of_the_upstream() {
        for (key, prefix) in [
            ("gsk_abcd", "gsk_"),
            ("01234567", ""),
            ("no-key-needed", ""),
            (&"x".repeat(KEY_MAX), ""),
        ] {
            assert!(is_provider_key(key, prefix), "{key} {prefix}");
        }
        for (key, prefix) in [
            ("gsk_abc", "gsk_"),
            ("sk-abcdefgh", "gsk_"),
            ("0123456", ""),
            ("0123 4567", ""),
            ("vk_live_0000", ""),
            ("svc_live_00000000", ""),
            ("sk_service_live_00", ""),
            ("vk_live_0000", "vk_"),
            (&"x".repeat(KEY_MAX + 1), ""),
        ] {
            assert!(!is_provider_key(key, prefix), "{key} {prefix}");
        }
        let message = |prefix| check_key("x", "azure", prefix).unwrap_err().message().to_owned();
        assert!(message("gsk_").contains("`gsk_`") && message("").contains("azure"));
        assert_eq!(
            message(SPECIFIED_PREFIX),
            Problem::from(Code::InvalidProviderKey).message()
        );
        assert!(message(SPECIFIED_PREFIX).contains(&format!("at most {KEY_MAX} characters")));
    }

    #[test]
    fn provider_names_are_plain() {
        assert_eq!(provider("OpenAI".to_owned()).unwrap(), "openai");
        for bad in ["", "open ai", "a/b", "é", "a:b", &"x".repeat(PROVIDER_MAX + 1)] {
            let error = provider(bad.to_owned()).unwrap_err();
            assert!(error.message().starts_with("provider must"), "{bad:?}");
        }
    }
}
