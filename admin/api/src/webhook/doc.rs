//! Documentation of webhooks.

use super::deliveries::DeliveryView;
use super::redeliver::Redelivery;
use super::request::{DESCRIPTION_MAX, NAMES_MAX};
use super::{TestDelivery, WebhookAnswer, WebhookView};
use endpoint::doc::field::{is, lines, list as list_of, pattern, string, words};
use endpoint::doc::{Body, Doc, Section};
use endpoint::{Code, Done};
use openapi::Json;
use store::webhook::Status;
use webhooks::sign::SECRET_CHARS;

pub(crate) fn section() -> Section {
    let about =
        "Who is told of what happens: signed POSTs to your own address. Each mode has its own webhooks.";
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
    let docs = docs.map(|doc| doc.refuses(&[Code::PlanFeature]));
    Section::new("Webhooks", about, docs.into())
        .param("id", is("WebhookId"), "The webhook.")
        .param("deliveryId", is("DeliveryId"), "The delivery.")
}

fn url() -> Json {
    pattern("^[Hh][Tt][Tt][Pp][Ss]?://.+$").eg("https://hooks.example/tollgate")
}

fn events() -> Json {
    list_of(is("WebhookEvent"), NAMES_MAX)
        .with("minItems", 1_u64)
        .eg(Json::from(vec!["agent.frozen", "policy.violation"]))
}

fn secret() -> Json {
    string()
        .with("minLength", *SECRET_CHARS.start())
        .with("maxLength", *SECRET_CHARS.end())
        .eg("a-secret-of-your-own")
}

fn description() -> Json {
    lines(DESCRIPTION_MAX).eg("Pager")
}

fn create() -> Doc {
    let body = Body::new("NewWebhook")
        .must(
            "url",
            url(),
            "http or https, without credentials, to a public address.",
        )
        .must("events", events(), "What it is told.")
        .must(
            "secret",
            secret(),
            "What deliveries are signed with. Never shown again.",
        )
        .may("description", description(), "What it is for.");
    Doc::new("POST /webhooks", "createWebhook", "Register a webhook")
        .takes(body)
        .gives::<WebhookAnswer<'_>>(201, "The webhook.")
        .refuses(&[Code::WebhookLimit])
}

fn list() -> Doc {
    Doc::new("GET /webhooks", "listWebhooks", "List webhooks")
        .lists::<WebhookView<'_>>("webhooks", "A page of webhooks.")
}

fn get() -> Doc {
    Doc::new("GET /webhooks/{id}", "getWebhook", "Show a webhook")
        .gives::<WebhookAnswer<'_>>(200, "The webhook.")
        .refuses(&[Code::NotFound])
}

fn update() -> Doc {
    let status = words([Status::Active, Status::Disabled].map(Status::as_str));
    let body = Body::new("WebhookChanges")
        .given("url", url(), "A new address.")
        .given("events", events(), "All that it is told from now on.")
        .given(
            "secret",
            secret(),
            "A new secret; the old one signs as well for a while.",
        )
        .may("description", description(), "Null clears it.")
        .given("status", status, "`disabled` ones are sent nothing.")
        .some();
    Doc::new("PATCH /webhooks/{id}", "updateWebhook", "Change a webhook")
        .says("Give at least one field. Fields that are left out stay as they are.")
        .takes(body)
        .gives::<WebhookAnswer<'_>>(200, "The webhook as it now is.")
        .refuses(&[Code::NotFound])
}

fn delete() -> Doc {
    Doc::new("DELETE /webhooks/{id}", "deleteWebhook", "Delete a webhook")
        .gives::<Done>(200, "It is deleted.")
        .refuses(&[Code::NotFound])
}

fn test() -> Doc {
    Doc::new(
        "POST /webhooks/{id}/test",
        "testWebhook",
        "Send a test event to a webhook",
    )
    .gives::<TestDelivery>(200, "The delivery that was made.")
    .refuses(&[Code::NotFound, Code::Conflict])
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
    .refuses(&[Code::NotFound])
}

fn again() -> Doc {
    Doc::new(
        "POST /webhooks/{id}/deliveries/{deliveryId}/redeliver",
        "redeliver",
        "Deliver something again",
    )
    .says("For a receiver that was away: the delivery gets new attempts, with the same id. Also one that waits for a later event.")
    .gives::<Redelivery<'_>>(200, "It waits for an attempt.")
    .refuses(&[Code::NotFound, Code::Conflict])
}
