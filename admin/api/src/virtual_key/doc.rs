//! OpenAPI documentation of virtual keys.

use super::{NAME_MAX, VirtualKeyIssued, VirtualKeyView};
use endpoint::doc::field::{agent_id, is, line, new_agent_id};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{Code, Success};

pub(crate) fn section() -> Section {
    let about = "The keys with which agents call the proxy. They are valid only there, and only their SHA-256 is stored.";
    Section::new("Virtual keys", about, vec![create(), list(), revoke()])
        .param("id", agent_id(), "The agent.")
        .param("keyId", is("VirtualKeyId"), "The virtual key.")
}

fn create() -> Doc {
    let body = BodyDoc::new("NewVirtualKey").optional_or_null(
        "name",
        line(NAME_MAX).example("laptop"),
        "Display name.",
    );
    Doc::new(
        "POST /agents/{id}/virtual-keys",
        "createVirtualKey",
        "Make a virtual key",
    )
    .description(
        "Only this answer contains the secret. The plan's limit counts the active keys of the whole account.",
    )
    .param("id", new_agent_id(), "The agent.")
    .request_body(body)
    .response::<VirtualKeyIssued<'_>>(201, "The key with its secret.")
    .errors(&[Code::PlanVirtualKeyLimit])
}

fn list() -> Doc {
    Doc::new(
        "GET /agents/{id}/virtual-keys",
        "listVirtualKeys",
        "List the virtual keys of an agent",
    )
    .lists::<VirtualKeyView<'_>>(
        "virtualKeys",
        "A page of keys, the newest first; revoked ones too, never secrets.",
    )
    .errors(&[Code::NotFound])
}

fn revoke() -> Doc {
    Doc::new(
        "DELETE /agents/{id}/virtual-keys/{keyId}",
        "revokeVirtualKey",
        "Revoke a virtual key",
    )
    .description("The next call with it gets 401.")
    .response::<Success>(200, "It is revoked.")
    .errors(&[Code::NotFound])
}
