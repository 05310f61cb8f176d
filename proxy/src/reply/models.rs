//! `GET /v1/models` (decision D39): the models that have a price, in OpenAI's shape.

use super::Reply;
use serde::Serialize;
use shared::domain::price::PriceTable;
use utoipa::ToSchema;

/// The models that have a price.
#[derive(Serialize, ToSchema)]
#[schema(as = Models)]
pub(crate) struct Body<'a> {
    #[schema(example = "list")]
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Model)]
struct Model<'a> {
    #[schema(example = "gpt-4o-mini")]
    id: &'a str,
    #[schema(example = "model")]
    object: &'static str,
    /// 0: a price table does not say when a model was made.
    #[schema(example = 0)]
    created: u64,
    #[schema(example = "openai")]
    owned_by: &'a str,
}

/// The list. `created` is not part of a price table, so it is 0.
pub fn reply(prices: &PriceTable, provider: &str) -> Reply {
    let model = |id| Model {
        id,
        object: "model",
        created: 0,
        owned_by: provider,
    };
    let data = prices.models().map(model).collect();
    Reply::json(200, &Body { object: "list", data })
}
