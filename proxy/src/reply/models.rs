//! `GET /v1/models` and `GET /v1/models/{model}` (decision D39): the models that have a price, in OpenAI's shape.

use super::EdgeReply;
use super::refusal::{Refusal, RefusalKind};
use crate::upstream::Upstreams;
use domain::price::PriceTable;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use utoipa::ToSchema;

/// The models that have a price.
#[derive(Serialize, ToSchema)]
#[schema(as = Models)]
pub(crate) struct ModelsBody<'a> {
    #[schema(example = "list")]
    object: &'static str,
    data: Vec<Model<'a>>,
}

/// One model that has a price.
#[derive(Serialize, ToSchema)]
#[schema(as = Model)]
pub(crate) struct Model<'a> {
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

impl<'a> Model<'a> {
    const fn new(id: &'a str, provider: &'a str) -> Self {
        Self {
            id,
            object: "model",
            created: 0,
            owned_by: provider,
        }
    }
}

/// Answers with all models.
pub fn reply(prices: &PriceTable, upstreams: &Upstreams) -> EdgeReply {
    let models = upstreams.priced(prices.models()).into_iter();
    let data = models.map(|(id, provider)| Model::new(id, provider)).collect();
    EdgeReply::json(200, &ModelsBody { object: "list", data })
}

/// Answers with one model, given its percent-encoded name: a listed model, or a snapshot or fine-tuned model that has
/// the price of a listed one.
///
/// # Errors
/// 404 `model_not_found` for any other name.
pub fn model(prices: &PriceTable, upstreams: &Upstreams, encoded: &str) -> Result<EdgeReply, Refusal> {
    let name = percent_decode_str(encoded).decode_utf8().ok();
    let upstream = |name: &str| upstreams.choose(name).identity();
    let is_listed = |name: &str| {
        upstreams.has_own_price(name) && prices.entry(&upstream(name).price_name(name)).is_some()
    };
    match name.filter(|name| is_listed(name)) {
        Some(name) => Ok(EdgeReply::json(
            200,
            &Model::new(&name, &upstream(&name).provider),
        )),
        None => Err(Refusal {
            kind: RefusalKind::ModelNotFound,
            message:
                "The model does not exist or has no price here; GET /v1/models lists those that have one."
                    .to_owned(),
            param: Some("model".to_owned()),
        }),
    }
}
