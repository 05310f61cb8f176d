//! `GET /v1/models` (decision D39): the models that have a price, in OpenAI's shape.

use super::Reply;
use serde::Serialize;
use shared::domain::price::PriceTable;

#[derive(Serialize)]
struct Body<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
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
