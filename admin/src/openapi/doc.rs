//! What stands beside a handler: what its operation is for, what it takes, gives and refuses.

use super::field::{self, Field};
use crate::problem::Code;
use crate::routes::IDEMPOTENCY_FIELDS;
use openapi::example::NOT_IN_EXAMPLES;
use openapi::{Components, Json};
use utoipa::ToSchema;

/// The operations on one resource.
#[derive(Debug)]
pub(crate) struct Section {
    /// What they are listed under.
    pub(super) tag: &'static str,
    /// What the resource is.
    pub(super) about: &'static str,
    /// The parameters in their paths.
    pub(super) params: Vec<Field>,
    pub(super) docs: Vec<Doc>,
}

/// One operation.
#[derive(Debug)]
pub(crate) struct Doc {
    /// Method and path, as in the route table; those of the user API stand under `/user`.
    pub(super) route: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) says: &'static str,
    pub(super) params: Vec<Field>,
    pub(super) query: Vec<Field>,
    pub(super) takes: Option<Body>,
    pub(super) is_once: bool,
    pub(super) gives: Vec<Given>,
    pub(super) refuses: Vec<Code>,
    /// Fields that some of its error answers have beside `error` and `code`.
    pub(super) adds: Vec<Field>,
    /// Whether its refusals name an intent, once the body was read (decision D75).
    pub(super) names_intent: bool,
    pub(super) headers: Vec<Field>,
}

/// What a body is made of.
#[derive(Debug)]
pub(crate) struct Body {
    /// The name of its schema.
    pub(super) name: &'static str,
    pub(super) fields: Vec<Field>,
    /// Whether it must have at least one field.
    pub(super) is_some: bool,
    /// Whether it can have other fields as well.
    pub(super) is_open: bool,
}

/// An answer that is no error of [`Code`].
#[derive(Debug)]
pub(super) struct Given {
    pub(super) status: u16,
    pub(super) says: &'static str,
    pub(super) shape: Shape,
    /// Headers that it has beside those of all answers.
    pub(super) headers: Vec<Field>,
    /// Fields that a page can have beside those of all pages.
    pub(super) fields: Vec<Field>,
}

/// What an answer is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// JSON of this schema.
    Json(fn(&mut Components) -> Json),
    /// A page of records of this schema, under their name.
    Page(&'static str, fn(&mut Components) -> Json),
    /// JSON of this schema, as a file to be saved.
    Document(fn(&mut Components) -> Json),
    /// A file to be saved, of this type, with an example.
    File(&'static str, &'static str),
    /// Lines that come while the work goes on, of this type, with an example.
    Lines(&'static str, &'static str),
}

impl Section {
    pub(crate) fn of(tag: &'static str, about: &'static str, docs: Vec<Doc>) -> Self {
        Self {
            tag,
            about,
            params: Vec::new(),
            docs,
        }
    }

    /// A parameter of its paths.
    pub(crate) fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }
}

impl Doc {
    pub(crate) fn of(route: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self {
            route,
            id,
            summary,
            says: "",
            params: Vec::new(),
            query: Vec::new(),
            takes: None,
            is_once: false,
            gives: Vec::new(),
            refuses: Vec::new(),
            adds: Vec::new(),
            names_intent: false,
            headers: Vec::new(),
        }
    }

    /// More than the summary can say.
    pub(crate) fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// A parameter of the path that is another than the section's of the same name.
    pub(crate) fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }

    /// A parameter of the query.
    pub(crate) fn query(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.query.push(Field::given(name, schema, says));
        self
    }

    /// A header that it reads.
    pub(crate) fn header(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.headers.push(Field::given(name, schema, says));
        self
    }

    /// It takes `limit` and `offset`.
    pub(crate) fn paged(mut self) -> Self {
        self.query.extend(field::page());
        self
    }

    /// It takes a body.
    pub(crate) fn takes(mut self, body: Body) -> Self {
        self.takes = Some(body);
        self
    }

    /// It is done at most once for each idempotency key (decision D26). Stands behind [`Doc::takes`].
    pub(crate) fn once(mut self) -> Self {
        self.is_once = true;
        self.refuses.push(Code::IdempotencyKeyReused);
        if let Some(body) = &mut self.takes {
            let says = "An idempotency key, where no `Idempotency-Key` header can be sent.";
            body.fields.extend(
                IDEMPOTENCY_FIELDS
                    .map(|name| Field::may(name, field::idempotency_key(), says).not_in_examples()),
            );
        }
        self
    }

    /// It answers with `T`.
    pub(crate) fn gives<T: ToSchema>(self, status: u16, says: &'static str) -> Self {
        self.shape(status, says, Shape::Json(Components::of::<T>))
    }

    /// It answers with a page of `T`.
    pub(crate) fn lists<T: ToSchema>(self, plural: &'static str, says: &'static str) -> Self {
        self.shape(200, says, Shape::Page(plural, Components::of::<T>))
            .paged()
    }

    /// It answers with a file.
    pub(crate) fn file(self, kind: &'static str, says: &'static str, example: &'static str) -> Self {
        self.shape(200, says, Shape::File(kind, example))
    }

    /// It answers with `T` as a file.
    pub(crate) fn document<T: ToSchema>(self, says: &'static str) -> Self {
        self.shape(200, says, Shape::Document(Components::of::<T>))
    }

    /// It answers with lines while it works.
    pub(crate) fn lines(self, kind: &'static str, says: &'static str, example: &'static str) -> Self {
        self.shape(200, says, Shape::Lines(kind, example))
    }

    fn shape(mut self, status: u16, says: &'static str, shape: Shape) -> Self {
        self.gives.push(Given {
            status,
            says,
            shape,
            headers: Vec::new(),
            fields: Vec::new(),
        });
        self
    }

    /// A header of the answer that was named last.
    pub(crate) fn with(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.headers.push(Field::must(name, schema, says));
        }
        self
    }

    /// A field that the page that was named last can have as well.
    pub(crate) fn can_have(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.fields.push(Field::given(name, schema, says));
        }
        self
    }

    /// What it refuses, beside what follows from its row of the route table.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses.extend(codes);
        self
    }

    /// Its refusals name the intent that the call has or would have had (decision D75).
    pub(crate) const fn names_intent(mut self) -> Self {
        self.names_intent = true;
        self
    }

    /// A field that some of its error answers have as well.
    pub(crate) fn adds(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.adds.push(Field::given(name, schema, says));
        self
    }
}

impl Body {
    pub(crate) fn of(name: &'static str) -> Self {
        Self {
            name,
            fields: Vec::new(),
            is_some: false,
            is_open: false,
        }
    }

    /// A field that has to be there.
    pub(crate) fn must(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::must(name, schema, says));
        self
    }

    /// A field that can be left out or `null`.
    pub(crate) fn may(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::may(name, schema, says));
        self
    }

    /// A field that can be left out, but not `null`.
    pub(crate) fn given(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::given(name, schema, says));
        self
    }

    /// A field that can be left out, as it is in the example.
    pub(crate) fn hidden(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields
            .push(Field::given(name, schema.with(NOT_IN_EXAMPLES, true), says));
        self
    }

    /// It must have at least one of its fields.
    pub(crate) fn some(mut self) -> Self {
        self.is_some = true;
        self
    }

    /// It can have any other field.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }
}
