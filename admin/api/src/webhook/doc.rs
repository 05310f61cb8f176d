//! Documentation of webhooks.

use super::deliveries::DeliveryView;
use super::redeliver::Redelivery;
use super::request::{DESCRIPTION_MAX, NAMES_MAX};
use super::{TestDelivery, WebhookAnswer, WebhookView};
use endpoint::doc::field::{is, lines, list as list_of, pattern, string, words};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{Code, Success};
use openapi::Json;
use store::webhook::WebhookStatus;
use webhooks::sign::SECRET_CHARS;

pub(crate) fn section() -> Section {
    let about = "Endpoints that receive signed event notifications. Each mode has its own webhooks.";
    let docs = [
        create(),
        list(),
        get(),
        update(),
        delete(),
        test(),
        deliveries(),
        again(),
    ];
    // A plan without webhooks in the dashboard refuses sessions in all of them.
    let docs = docs.map(|doc| doc.errors(&[Code::PlanFeature]));
    Section::new("Webhooks", about, docs.into())
        .param("id", is("WebhookId"), "The webhook.")
        .param("deliveryId", is("DeliveryId"), "The delivery.")
}

fn url() -> Json {
    pattern("^[Hh][Tt][Tt][Pp][Ss]?://.+$").example("https://hooks.example/tollgate")
}

fn events() -> Json {
    list_of(is("WebhookEvent"), NAMES_MAX)
        .with("minItems", 1_u64)
        .example(Json::from(vec!["agent.frozen", "policy.violation"]))
}

fn secret() -> Json {
    string()
        .with("minLength", *SECRET_CHARS.start())
        .with("maxLength", *SECRET_CHARS.end())
        .example("a-secret-of-your-own")
}

fn description() -> Json {
    lines(DESCRIPTION_MAX).example("Pager")
}

fn create() -> Doc {
    let body = BodyDoc::new("NewWebhook")
        .required(
            "url",
            url(),
            "http or https, without credentials, to a public address.",
        )
        .required("events", events(), "Subscribed event types.")
        .required(
            "secret",
            secret(),
            "The secret that signs deliveries. It is never shown again.",
        )
        .optional_or_null("description", description(), "Purpose of the webhook.");
    Doc::new("POST /webhooks", "createWebhook", "Register a webhook")
        .request_body(body)
        .response::<WebhookAnswer<'_>>(201, "The webhook.")
        .errors(&[Code::WebhookLimit])
}

fn list() -> Doc {
    Doc::new("GET /webhooks", "listWebhooks", "List webhooks")
        .lists::<WebhookView<'_>>("webhooks", "A page of webhooks.")
}

fn get() -> Doc {
    Doc::new("GET /webhooks/{id}", "getWebhook", "Show a webhook")
        .response::<WebhookAnswer<'_>>(200, "The webhook.")
        .errors(&[Code::NotFound])
}

fn update() -> Doc {
    let status = words([WebhookStatus::Active, WebhookStatus::Disabled].map(WebhookStatus::as_str));
    let body = BodyDoc::new("WebhookChanges")
        .optional("url", url(), "A new address.")
        .optional("events", events(), "All events that it receives from now on.")
        .optional(
            "secret",
            secret(),
            "A new secret; the old one signs as well for a while.",
        )
        .optional_or_null("description", description(), "Null clears it.")
        .optional("status", status, "`disabled` ones are sent nothing.")
        .with_a_field();
    Doc::new("PATCH /webhooks/{id}", "updateWebhook", "Change a webhook")
        .description("Give at least one field. Fields that are left out stay as they are.")
        .request_body(body)
        .response::<WebhookAnswer<'_>>(200, "The webhook as it now is.")
        .errors(&[Code::NotFound])
}

fn delete() -> Doc {
    Doc::new("DELETE /webhooks/{id}", "deleteWebhook", "Delete a webhook")
        .response::<Success>(200, "It is deleted.")
        .errors(&[Code::NotFound])
}

fn test() -> Doc {
    Doc::new(
        "POST /webhooks/{id}/test",
        "testWebhook",
        "Send a test event to a webhook",
    )
    .response::<TestDelivery>(200, "The delivery that was made.")
    .errors(&[Code::NotFound, Code::Conflict])
}

fn deliveries() -> Doc {
    Doc::new(
        "GET /webhooks/{id}/deliveries",
        "listDeliveries",
        "List the deliveries of a webhook",
    )
    .query("status", is("DeliveryState"), "Those of this status.")
    .lists::<DeliveryView<'_>>(
        "deliveries",
        "A page of deliveries with every attempt, the newest first.",
    )
    .errors(&[Code::NotFound])
}

fn again() -> Doc {
    Doc::new(
        "POST /webhooks/{id}/deliveries/{deliveryId}/redeliver",
        "redeliver",
        "Deliver something again",
    )
    .description("For a receiver that was away: the delivery gets new attempts, with the same id. Also one that waits for a later event.")
    .response::<Redelivery<'_>>(200, "It waits for an attempt.")
    .errors(&[Code::NotFound, Code::Conflict])
}
