//! The documentation of operations, which stands beside their handlers and from which the OpenAPI document is made.

pub mod field;

pub use openapi::types as is;

use crate::call::IDEMPOTENCY_FIELDS;
use crate::problem::Code;
use field::Field;
use openapi::components::NOT_IN_EXAMPLES;
use openapi::{Components, Json};
use utoipa::ToSchema;

/// The schema with `null` beside it.
pub fn nullable(schema: Json) -> Json {
    openapi::components::or_null(schema)
}

/// The operations on one resource.
#[derive(Debug)]
pub struct Section {
    /// What they are listed under.
    pub tag: &'static str,
    /// Description of the resource.
    pub about: &'static str,
    /// The parameters in their paths.
    pub params: Vec<Field>,
    /// Its operations.
    pub docs: Vec<Doc>,
}

/// One operation.
#[derive(Debug)]
pub struct Doc {
    /// Method and path, as in the route table; those of the user API stand under `/user`.
    pub route: &'static str,
    /// `operationId`: unique in the document.
    pub id: &'static str,
    /// Its summary, in a few words.
    pub summary: &'static str,
    /// More than the summary can say; empty where there is nothing.
    pub says: &'static str,
    /// Parameters of its path that differ from those of its section.
    pub params: Vec<Field>,
    /// Parameters of its query.
    pub query: Vec<Field>,
    /// The body that it takes.
    pub takes: Option<Body>,
    /// Whether it is done at most once for each idempotency key.
    pub is_once: bool,
    /// Its answers that are no errors.
    pub gives: Vec<AnswerDoc>,
    /// Errors beside those that follow from its row.
    pub refuses: Vec<Code>,
    /// Fields that some of its error answers have beside `error` and `code`.
    pub adds: Vec<Field>,
    /// Whether its refusals name an intent, once the body was read (decision D75).
    pub names_intent: bool,
    /// Headers that it reads.
    pub headers: Vec<Field>,
}

/// A request body.
#[derive(Debug)]
pub struct Body {
    /// The name of its schema.
    pub name: &'static str,
    /// Its fields, in the order of the document.
    pub fields: Vec<Field>,
    /// Whether it must have at least one field.
    pub is_some: bool,
    /// Whether it can have other fields as well.
    pub is_open: bool,
}

/// An answer that is no error of [`Code`].
#[derive(Debug)]
pub struct AnswerDoc {
    /// The HTTP status.
    pub status: u16,
    /// When it is given.
    pub says: &'static str,
    /// Its content.
    pub shape: Shape,
    /// Headers that it has beside those of all answers.
    pub headers: Vec<Field>,
    /// Fields that a page can have beside those of all pages.
    pub fields: Vec<Field>,
    /// Its example, where the one that follows from its schema is an answer of another status.
    pub example: Option<Json>,
}

/// The content of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
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
    /// A section `tag` of the document, with its operations.
    pub fn of(tag: &'static str, about: &'static str, docs: Vec<Doc>) -> Self {
        Self {
            tag,
            about,
            params: Vec::new(),
            docs,
        }
    }

    /// A parameter of its paths.
    pub fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }
}

impl Doc {
    /// The document of the operation `route`.
    pub fn of(route: &'static str, id: &'static str, summary: &'static str) -> Self {
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
    pub fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// A parameter of the path that is another than the section's of the same name.
    pub fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }

    /// A parameter of the query.
    pub fn query(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.query.push(Field::given(name, schema, says));
        self
    }

    /// A header that it reads.
    pub fn header(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.headers.push(Field::given(name, schema, says));
        self
    }

    /// It takes `limit` and `offset`.
    pub fn paged(mut self) -> Self {
        self.query.extend(field::page());
        self
    }

    /// It takes a body.
    pub fn takes(mut self, body: Body) -> Self {
        self.takes = Some(body);
        self
    }

    /// It is done at most once for each idempotency key (decision D26). Stands behind [`Doc::takes`].
    pub fn once(mut self) -> Self {
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
    pub fn gives<T: ToSchema>(self, status: u16, says: &'static str) -> Self {
        self.shape(status, says, Shape::Json(Components::schema::<T>))
    }

    /// It answers with a page of `T`.
    pub fn lists<T: ToSchema>(self, plural: &'static str, says: &'static str) -> Self {
        self.shape(200, says, Shape::Page(plural, Components::schema::<T>))
            .paged()
    }

    /// It answers with a file.
    pub fn file(self, kind: &'static str, says: &'static str, example: &'static str) -> Self {
        self.shape(200, says, Shape::File(kind, example))
    }

    /// It answers with `T` as a file.
    pub fn document<T: ToSchema>(self, says: &'static str) -> Self {
        self.shape(200, says, Shape::Document(Components::schema::<T>))
    }

    /// It answers with lines while it works.
    pub fn lines(self, kind: &'static str, says: &'static str, example: &'static str) -> Self {
        self.shape(200, says, Shape::Lines(kind, example))
    }

    fn shape(mut self, status: u16, says: &'static str, shape: Shape) -> Self {
        self.gives.push(AnswerDoc {
            status,
            says,
            shape,
            headers: Vec::new(),
            fields: Vec::new(),
            example: None,
        });
        self
    }

    /// The example of the answer that was named last.
    pub fn eg(mut self, example: Json) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.example = Some(example);
        }
        self
    }

    /// A header of the answer that was named last.
    pub fn with(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.headers.push(Field::must(name, schema, says));
        }
        self
    }

    /// A field that the page that was named last can have as well.
    pub fn can_have(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.fields.push(Field::given(name, schema, says));
        }
        self
    }

    /// Errors that it answers beside those that follow from its row of the route table.
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses.extend(codes);
        self
    }

    /// Its refusals name the intent that the call has or would have had (decision D75).
    pub const fn names_intent(mut self) -> Self {
        self.names_intent = true;
        self
    }

    /// A field that some of its error answers have as well.
    pub fn adds(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.adds.push(Field::given(name, schema, says));
        self
    }
}

impl Body {
    /// A body without fields yet; `name` is that of its schema.
    pub fn of(name: &'static str) -> Self {
        Self {
            name,
            fields: Vec::new(),
            is_some: false,
            is_open: false,
        }
    }

    /// A field that has to be there.
    pub fn must(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::must(name, schema, says));
        self
    }

    /// A field that can be left out or `null`.
    pub fn may(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::may(name, schema, says));
        self
    }

    /// A field that can be left out, but not `null`.
    pub fn given(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::given(name, schema, says));
        self
    }

    /// A field that can be left out, as it is in the example.
    pub fn hidden(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields
            .push(Field::given(name, schema.with(NOT_IN_EXAMPLES, true), says));
        self
    }

    /// It must have at least one of its fields.
    pub fn some(mut self) -> Self {
        self.is_some = true;
        self
    }

    /// It can have any other field.
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }
}
