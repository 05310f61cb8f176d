//! OpenAPI documentation of API keys.

use super::{ALLOW_IPS_MAX, ApiKeyIssued, ApiKeyView, NAME_MAX};
use domain::permission::Permission;
use endpoint::doc::field::{is, line, list as list_of, string, words};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{Code, Success};
use openapi::Json;

pub(crate) fn section() -> Section {
    let about = "The keys of this API, managed by people only. Only their SHA-256 is stored.";
    Section::new("API keys", about, vec![create(), list(), revoke()]).param("id", is("ApiKeyId"), "The key.")
}

fn create() -> Doc {
    let permissions = list_of(is("PermissionName"), Permission::ALL.len()).with("minItems", 1_u64);
    let addresses = list_of(string(), ALLOW_IPS_MAX).example(Json::from(vec!["10.0.0.0/8"]));
    let time = string()
        .with("format", "date-time")
        .example("2099-01-31T00:00:00Z");
    let body = BodyDoc::new("NewApiKey")
        .optional_or_null("name", line(NAME_MAX).example("CI"), "Display name.")
        .optional_or_null(
            "mode",
            words(["live", "test"]).with("x-default", "live"),
            "The mode of the records that it works on.",
        )
        .optional_or_null(
            "permissions",
            permissions.example(Json::from(vec!["read", "write"])),
            "Permissions; `read` and `write` by default.",
        )
        .optional_or_null(
            "allowIps",
            addresses,
            "Addresses and CIDR ranges that it can be used from; any by default.",
        )
        .optional_or_null("expiresAt", time, "When it ends; never by default.")
        .optional_or_null(
            "prefix",
            words(["svc", "sk_service"]).with("x-default", "svc"),
            "First characters of its secret.",
        );
    Doc::new("POST /api-keys", "createApiKey", "Make an API key")
        .request_body(body)
        .response::<ApiKeyIssued<'_>>(200, "The key with its secret.")
        .errors(&[Code::Conflict])
}

fn list() -> Doc {
    Doc::new("GET /api-keys", "listApiKeys", "List API keys")
        .query("mode", is("ModeName"), "Those of this mode.")
        .lists::<ApiKeyView<'_>>("apiKeys", "A page of keys, revoked ones too, never secrets.")
}

fn revoke() -> Doc {
    Doc::new("DELETE /api-keys/{id}", "revokeApiKey", "Revoke an API key")
        .description("Binds the next call.")
        .response::<Success>(200, "It is revoked.")
        .errors(&[Code::NotFound])
}
