//! The documentation of operations, written next to their handlers. The OpenAPI document is generated from it.

pub mod field;

pub use openapi::types as is;

use crate::call::IDEMPOTENCY_FIELDS;
use crate::problem::Code;
use field::Field;
use openapi::components::NOT_IN_EXAMPLES;
use openapi::{Components, Json};
use utoipa::ToSchema;

/// Returns the schema with `null` as an alternative.
pub fn nullable(schema: Json) -> Json {
    openapi::components::or_null(schema)
}

/// The operations on one resource.
#[derive(Debug)]
pub struct Section {
    /// Tag under which they are listed.
    pub tag: &'static str,
    /// Description of the resource.
    pub about: &'static str,
    /// The parameters in their paths.
    pub params: Vec<Field>,
    /// Operations of the resource.
    pub docs: Vec<Doc>,
}

/// One operation.
#[derive(Debug)]
pub struct Doc {
    /// Method and path, as in the route table; those of the user API are below `/user`.
    pub route: &'static str,
    /// `operationId`: unique in the document.
    pub id: &'static str,
    /// Its summary, in a few words.
    pub summary: &'static str,
    /// Description in addition to the summary; may be empty.
    pub says: &'static str,
    /// Path parameters that differ from those of its section.
    pub params: Vec<Field>,
    /// Query parameters.
    pub query: Vec<Field>,
    /// Request body.
    pub takes: Option<Body>,
    /// Whether it is executed at most once for each idempotency key.
    pub is_once: bool,
    /// Answers other than errors.
    pub gives: Vec<AnswerDoc>,
    /// Errors in addition to those that follow from its row.
    pub refuses: Vec<Code>,
    /// Fields of some of its error answers in addition to `error` and `code`.
    pub adds: Vec<Field>,
    /// Whether its refusals name an intent, once the body was read (decision D75).
    pub names_intent: bool,
    /// Request headers that it reads.
    pub headers: Vec<Field>,
}

/// A request body.
#[derive(Debug)]
pub struct Body {
    /// Name of the schema.
    pub name: &'static str,
    /// Fields, in the order of the document.
    pub fields: Vec<Field>,
    /// Whether it must have at least one field.
    pub is_some: bool,
    /// Whether it can have additional fields.
    pub is_open: bool,
}

/// An answer other than an error of [`Code`].
#[derive(Debug)]
pub struct AnswerDoc {
    /// The HTTP status.
    pub status: u16,
    /// When it is sent.
    pub says: &'static str,
    /// Content of the answer.
    pub shape: Shape,
    /// Headers in addition to those of all answers.
    pub headers: Vec<Field>,
    /// Fields of the page in addition to those of all pages.
    pub fields: Vec<Field>,
    /// Example, if the one derived from the schema belongs to another status.
    pub example: Option<Json>,
}

/// The content of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// JSON of this schema.
    Json(fn(&mut Components) -> Json),
    /// A page of records of this schema, under their name.
    Page(&'static str, fn(&mut Components) -> Json),
    /// JSON with this schema, as a file to be saved.
    Document(fn(&mut Components) -> Json),
    /// A file to be saved, of this type, with an example.
    File(&'static str, &'static str),
    /// Lines that are streamed while the operation runs, with their content type and an example.
    Lines(&'static str, &'static str),
}

impl Section {
    /// Creates a section `tag` of the document, with its operations.
    pub fn new(tag: &'static str, about: &'static str, docs: Vec<Doc>) -> Self {
        Self {
            tag,
            about,
            params: Vec::new(),
            docs,
        }
    }

    /// Adds a parameter of its paths.
    pub fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }
}

impl Doc {
    /// Returns the document of the operation `route`.
    pub fn new(route: &'static str, id: &'static str, summary: &'static str) -> Self {
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

    /// Sets the description.
    pub fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    /// Adds a path parameter that differs from the section's parameter with the same name.
    pub fn param(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.params.push(Field::must(name, schema, says));
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.query.push(Field::given(name, schema, says));
        self
    }

    /// Adds a request header.
    pub fn header(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.headers.push(Field::given(name, schema, says));
        self
    }

    /// Adds `limit` and `offset`.
    pub fn paged(mut self) -> Self {
        self.query.extend(field::page());
        self
    }

    /// Sets the request body.
    pub fn takes(mut self, body: Body) -> Self {
        self.takes = Some(body);
        self
    }

    /// Marks it as executed at most once for each idempotency key (decision D26). To be called after [`Doc::takes`].
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

    /// Adds the answer `T`.
    pub fn gives<T: ToSchema>(self, status: u16, says: &'static str) -> Self {
        self.shape(status, says, Shape::Json(Components::schema::<T>))
    }

    /// Adds an answer with a page of `T`.
    pub fn lists<T: ToSchema>(self, plural: &'static str, says: &'static str) -> Self {
        self.shape(200, says, Shape::Page(plural, Components::schema::<T>))
            .paged()
    }

    /// Adds an answer with a file.
    pub fn file(self, kind: &'static str, says: &'static str, example: &'static str) -> Self {
        self.shape(200, says, Shape::File(kind, example))
    }

    /// Adds an answer with `T` as a file.
    pub fn document<T: ToSchema>(self, says: &'static str) -> Self {
        self.shape(200, says, Shape::Document(Components::schema::<T>))
    }

    /// Adds an answer with lines that are streamed.
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

    /// Sets the example of the answer that was added last.
    pub fn eg(mut self, example: Json) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.example = Some(example);
        }
        self
    }

    /// Adds a header to the answer that was added last.
    pub fn with(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.headers.push(Field::must(name, schema, says));
        }
        self
    }

    /// Adds an optional field to the last page answer.
    pub fn can_have(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        if let Some(given) = self.gives.last_mut() {
            given.fields.push(Field::given(name, schema, says));
        }
        self
    }

    /// Adds errors to those that follow from its row of the route table.
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses.extend(codes);
        self
    }

    /// Marks that its refusals name the intent that the call has or would have had (decision D75).
    pub const fn names_intent(mut self) -> Self {
        self.names_intent = true;
        self
    }

    /// Adds a field of some of its error answers.
    pub fn adds(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.adds.push(Field::given(name, schema, says));
        self
    }
}

impl Body {
    /// Creates a body without fields; `name` is the name of its schema.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            fields: Vec::new(),
            is_some: false,
            is_open: false,
        }
    }

    /// Adds a required field.
    pub fn must(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::must(name, schema, says));
        self
    }

    /// Adds an optional field, which may be `null`.
    pub fn may(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::may(name, schema, says));
        self
    }

    /// Adds an optional field, which must not be `null`.
    pub fn given(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields.push(Field::given(name, schema, says));
        self
    }

    /// Adds an optional field that is omitted from the example.
    pub fn hidden(mut self, name: &'static str, schema: Json, says: &'static str) -> Self {
        self.fields
            .push(Field::given(name, schema.with(NOT_IN_EXAMPLES, true), says));
        self
    }

    /// Omits these fields from the example.
    pub fn omitting(mut self, names: &[&str]) -> Self {
        let fields = std::mem::take(&mut self.fields).into_iter();
        self.fields = fields
            .map(|field| match names.contains(&field.name) {
                true => field.not_in_examples(),
                false => field,
            })
            .collect();
        self
    }

    /// Requires at least one of its fields.
    pub fn some(mut self) -> Self {
        self.is_some = true;
        self
    }

    /// Allows any additional field.
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }
}
