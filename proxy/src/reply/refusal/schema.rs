//! Schemas of the codes and types of refusals, generated from [`RefusalKind`].

use super::RefusalKind;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Schema of `error.code`.
#[derive(Debug)]
pub enum RefusalCode {}

/// Schema of `error.type`.
#[derive(Debug)]
pub enum RefusalType {}

fn words(words: impl Iterator<Item = &'static str>) -> ObjectBuilder {
    let mut all: Vec<&str> = Vec::new();
    words.for_each(|word| {
        if !all.contains(&word) {
            all.push(word);
        }
    });
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(all.into_iter().map(Value::from)))
}

impl PartialSchema for RefusalCode {
    fn schema() -> RefOr<Schema> {
        let kinds = RefusalKind::ALL
            .iter()
            .filter(|kind| !RefusalKind::OF_NO_ROUTE.contains(kind));
        words(kinds.map(|kind| kind.code())).into()
    }
}

impl ToSchema for RefusalCode {
    fn name() -> Cow<'static, str> {
        "RefusalCode".into()
    }
}

impl PartialSchema for RefusalType {
    fn schema() -> RefOr<Schema> {
        words(RefusalKind::ALL.iter().map(|kind| kind.kind())).into()
    }
}

impl ToSchema for RefusalType {
    fn name() -> Cow<'static, str> {
        "RefusalType".into()
    }
}
