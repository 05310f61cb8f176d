//! OpenAPI documentation of provider keys.

use super::{KEY_MAX, PROVIDER_MAX, ProviderKeyAnswer, ProviderKeyView};
use endpoint::doc::field::{agent_id, new_agent_id, pattern};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "The keys of upstream providers that approved calls are sent with. They are sealed at once; at most the last \
                 four characters are ever shown.";
    Section::new("Provider keys", about, vec![store(), list()]).param("id", agent_id(), "The agent.")
}

fn store() -> Doc {
    let provider = pattern(&format!("^[A-Za-z0-9._-]{{1,{PROVIDER_MAX}}}$")).example("openai");
    let key = pattern("^[!-~]{7,}$")
        .with("maxLength", KEY_MAX)
        .example("sk-example-only-a1B2");
    let body = BodyDoc::new("NewProviderKey")
        .required(
            "provider",
            provider,
            "The provider, or the name of an upstream; upper and lower case are the same.",
        )
        .required("apiKey", key, "The provider's own key. It starts with `sk-`, or as the upstream of that name is configured. Never shown again.");
    Doc::new("POST /agents/{id}/provider-keys", "storeProviderKey", "Store the key of a provider")
        .description("Replaces the agent's key for that provider; the next proxied call uses it. Tollgate does not check with the provider that the key is valid.")
        .param("id", new_agent_id(), "The agent.")
        .request_body(body)
        .response::<ProviderKeyAnswer<'_>>(201, "Public fields of the key.")
        .errors(&[Code::InvalidProviderKey, Code::Conflict])
}

fn list() -> Doc {
    Doc::new(
        "GET /agents/{id}/provider-keys",
        "listProviderKeys",
        "List the provider keys of an agent",
    )
    .lists::<ProviderKeyView<'_>>("providerKeys", "A page of the keys' public fields.")
    .errors(&[Code::NotFound])
}
