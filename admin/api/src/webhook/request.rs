//! The body that creates or changes a webhook, validated.

use crate::state::Call;
use axum::http::header;
use domain::event::EventName;
use domain::printable::is_direction;
use endpoint::{Code, Fields, Problem, TextForm, missing};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use store::script::change::FieldChange;
use store::webhook::{WebhookStatus, events_text};
use url::Url;
use webhooks::dns::Refused;
use webhooks::sign::check_secret;

/// Longest description.
pub(super) const DESCRIPTION_MAX: usize = 500;
/// Maximum number of names in a list of events, which may have duplicates.
pub(super) const NAMES_MAX: usize = 64;

/// The given fields.
#[derive(Debug, Default)]
pub(super) struct WebhookRequest {
    pub(super) url: Option<String>,
    pub(super) events: Option<Vec<EventName>>,
    pub(super) secret: Option<SecretString>,
    /// `Some(None)` clears it.
    pub(super) description: Option<Option<String>>,
    pub(super) status: Option<WebhookStatus>,
}

/// Value of `Retry-After`, in seconds, if a name could not be looked up because no turn was free.
const RETRY_AFTER: &str = "5";

/// Refuses a URL to which nothing may be delivered. 503 if its name could not be looked up because no turn was free,
/// which is not a fault of the URL.
pub(super) async fn require_receiver(call: &Call, url: &str) -> Result<(), Problem> {
    let checked = call.state.webhooks.sender.check(&call.caller.account, url).await;
    checked.map_err(|refused| match refused {
        Refused::Url(bad) => Problem::validation(bad.to_string()),
        Refused::Busy => {
            let message = "Too many names are being resolved. Try again in a few seconds.";
            Problem::new(Code::ServiceUnavailable, message).header(header::RETRY_AFTER, RETRY_AFTER)
        }
    })
}

impl WebhookRequest {
    /// Reads a body that registers a webhook.
    pub(super) fn from_new(body: &Fields<'_>) -> Result<Self, Problem> {
        body.require_only(&["url", "events", "secret", "description"])?;
        let request = Self::parse(body)?;
        for (name, absent) in [
            ("url", request.url.is_none()),
            ("events", request.events.is_none()),
            ("secret", request.secret.is_none()),
        ] {
            if absent {
                return Err(missing(name));
            }
        }
        Ok(request)
    }

    /// Parses the body of a change.
    pub(super) fn from_change(body: &Fields<'_>) -> Result<Self, Problem> {
        body.require_only(&["url", "events", "secret", "description", "status"])?;
        let request = Self::parse(body)?;
        let nothing = request.changes().is_empty() && request.secret.is_none();
        if nothing {
            let message = "Give at least one of url, events, secret, description, status.";
            return Err(Problem::validation(message));
        }
        Ok(request)
    }

    fn parse(body: &Fields<'_>) -> Result<Self, Problem> {
        let secret = body.string("secret")?.not_null("secret")?;
        if let Some(secret) = &secret {
            check_secret(secret).map_err(|bad| Problem::validation(bad.to_string()))?;
        }
        let names = body.strings("events", NAMES_MAX)?.not_null("events")?;
        let status = body.string("status")?.not_null("status")?;
        let status = status.map(|word| {
            let bad = || Problem::validation("status must be active or disabled.");
            WebhookStatus::parse(&word).ok_or_else(bad)
        });
        Ok(Self {
            url: body.string("url")?.not_null("url")?.map(|url| readable(&url)),
            events: names.map(events).transpose()?,
            secret: secret.map(SecretString::from),
            description: body
                .text("description", TextForm::Lines, DESCRIPTION_MAX)?
                .nullable(),
            status: status.transpose()?,
        })
    }

    /// Returns whether it disables the webhook and changes nothing else.
    pub(super) fn only_disables(&self) -> bool {
        let Self {
            url,
            events,
            secret,
            description,
            status,
        } = self;
        let is_more = url.is_some() || events.is_some() || secret.is_some() || description.is_some();
        *status == Some(WebhookStatus::Disabled) && !is_more
    }

    /// Returns the changes of the record, except the secret.
    pub(super) fn changes(&self) -> Vec<FieldChange> {
        let mut changes: Vec<FieldChange> = Vec::new();
        changes.extend(self.url.clone().map(|url| ("url", Some(url))));
        let events = self.events.as_deref().map(events_text);
        changes.extend(events.map(|events| ("events", Some(events))));
        changes.extend(self.description.clone().map(|text| ("description", text)));
        let status = self.status.map(|status| status.as_str().to_owned());
        changes.extend(status.map(|status| ("status", Some(status))));
        changes
    }

    /// Returns the fields for the audit log: only the fact that there is a new secret, and only scheme, host and port
    /// of the URL. Paths and queries can contain tokens, and the log is kept forever.
    pub(super) fn shown(&self, has_new_secret: bool) -> Map<String, Value> {
        let mut shown = Map::new();
        if let Some(url) = &self.url {
            let origin = Url::parse(url).map(|url| url.origin().ascii_serialization());
            shown.insert("url".to_owned(), origin.unwrap_or_default().into());
        }
        if let Some(events) = &self.events {
            let names: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
            shown.insert("events".to_owned(), json!(names));
        }
        if let Some(description) = &self.description {
            shown.insert("description".to_owned(), json!(description));
        }
        if let Some(status) = self.status {
            shown.insert("status".to_owned(), status.as_str().into());
        }
        if has_new_secret {
            shown.insert("secretChanged".to_owned(), true.into());
        }
        shown
    }
}

/// Parses a list of events, without duplicates, in the order of the specification.
fn events(names: Vec<String>) -> Result<Vec<EventName>, Problem> {
    let mut found = Vec::new();
    for name in names {
        let event = EventName::parse(&name).ok_or_else(|| unknown(&name))?;
        if !found.contains(&event) {
            found.push(event);
        }
    }
    if found.is_empty() {
        return Err(Problem::validation("events must name at least one event."));
    }
    found.sort_unstable();
    Ok(found)
}

fn unknown(name: &str) -> Problem {
    const LONGEST: usize = 64;
    let cut: String = name.chars().take(LONGEST).collect();
    let known: Vec<&str> = EventName::ALL.iter().map(|event| event.as_str()).collect();
    let known = known.join(", ");
    Problem::validation(format!("events: {cut:?} is no event; known: {known}."))
}

/// The URL with the characters that turn the direction of text percent-encoded, as they are sent: it is shown as it is
/// stored, and must not be readable as another host.
fn readable(url: &str) -> String {
    let mut readable = String::with_capacity(url.len());
    for c in url.chars() {
        match is_direction(c) {
            true => readable.extend(
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .map(|byte| format!("%{byte:02X}")),
            ),
            false => readable.push(c),
        }
    }
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(body: &str) -> Result<WebhookRequest, String> {
        let fields = Fields::parse(body.as_bytes()).unwrap();
        WebhookRequest::from_new(&fields).map_err(|problem| problem.message().to_owned())
    }

    #[test]
    fn each_field_is_asked_for_and_named() {
        for (body, named) in [
            (r"{}", "url is required."),
            (r#"{"url":null}"#, "url must not be null."),
            (r#"{"url":"https://x"}"#, "events is required."),
            (
                r#"{"url":"https://x","events":[]}"#,
                "events must name at least one event.",
            ),
            (
                r#"{"url":"https://x","events":"a"}"#,
                "events must be a list of strings.",
            ),
            (
                r#"{"url":"https://x","events":["agent.melted"]}"#,
                "events: \"agent.melted\" is no event",
            ),
            (
                r#"{"url":"https://x","events":["webhook.test"]}"#,
                "events: \"webhook.test\" is no event",
            ),
            (
                r#"{"url":"https://x","events":["agent.frozen"]}"#,
                "secret is required.",
            ),
            (
                r#"{"url":"https://x","events":["agent.frozen"],"secret":"short"}"#,
                "secret must",
            ),
            (r#"{"status":"active"}"#, "\"status\" is not a field here"),
        ] {
            let message = new(body).unwrap_err();
            assert!(message.starts_with(named), "{body}: {message}");
        }
    }

    #[test]
    fn nothing_turns_the_direction_of_a_url() {
        for (url, stored) in [
            ("https://x/é?a=b", "https://x/é?a=b"),
            ("https://x/\u{202e}gnp", "https://x/%E2%80%AEgnp"),
            ("https://x/?\u{2066}a", "https://x/?%E2%81%A6a"),
        ] {
            assert_eq!(readable(url), stored);
            assert_eq!(Url::parse(url), Url::parse(stored), "it leads to the same");
        }
    }

    #[test]
    fn events_are_named_once_and_in_order() {
        let request = new(
            r#"{"url":"https://u:token@x:8443/token?token=t#token","secret":"0123456789abcdef",
                "events":["wallet.deposit","agent.frozen","wallet.deposit"]}"#,
        )
        .unwrap();
        let names: Vec<&str> = request
            .events
            .as_ref()
            .unwrap()
            .iter()
            .map(|event| event.as_str())
            .collect();
        assert_eq!(names, ["agent.frozen", "wallet.deposit"]);
        assert_eq!(request.shown(true)["url"], "https://x:8443");
        let shown = Value::Object(request.shown(true)).to_string();
        for text in [shown, format!("{:?}", request.secret)] {
            assert!(!text.contains("token") && !text.contains("0123456789"), "{text}");
        }
    }
}
