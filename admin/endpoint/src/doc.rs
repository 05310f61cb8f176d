//! The documentation of operations, written next to their handlers. The OpenAPI document is generated from it.

pub mod field;

pub use openapi::types as is;

use crate::body::IDEMPOTENCY_FIELDS;
use crate::problem::Code;
use field::Field;
use openapi::{Components, Json};
use std::borrow::Cow;
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
    pub description: &'static str,
    /// Path parameters that differ from those of its section.
    pub params: Vec<Field>,
    /// Query parameters.
    pub query: Vec<Field>,
    /// `None` for an operation that reads no body.
    pub request_body: Option<BodyDoc>,
    /// True if it is executed at most once for each idempotency key.
    pub is_idempotent: bool,
    /// Answers other than errors.
    pub responses: Vec<AnswerDoc>,
    /// Errors in addition to those that follow from its row.
    pub errors: Vec<Code>,
    /// Fields of some of its error answers in addition to `error` and `code`.
    pub error_fields: Vec<Field>,
    /// True if its refusals name an intent, once the body was read (decision D75).
    pub names_intent: bool,
    /// Request headers that it reads.
    pub headers: Vec<Field>,
}

/// A request body.
#[derive(Debug)]
pub struct BodyDoc {
    /// Name of the schema.
    pub name: &'static str,
    /// Fields, in the order of the document.
    pub fields: Vec<Field>,
    /// True if it must have at least one field.
    pub requires_a_field: bool,
    /// True if it can have additional fields.
    pub allows_other_fields: bool,
}

/// An answer other than an error of [`Code`].
#[derive(Debug)]
pub struct AnswerDoc {
    /// The HTTP status.
    pub status: u16,
    /// When it is sent.
    pub description: &'static str,
    /// Content of the answer.
    pub shape: AnswerContent,
    /// Headers in addition to those of all answers.
    pub headers: Vec<Field>,
    /// Fields of the page in addition to those of all pages.
    pub fields: Vec<Field>,
    /// Example, if the one derived from the schema belongs to another status.
    pub example: Option<Json>,
}

/// The content of an answer.
#[derive(Debug, Clone)]
pub enum AnswerContent {
    /// JSON of this schema.
    Json(fn(&mut Components) -> Json),
    /// A page of records of this schema, under their name.
    Page(&'static str, fn(&mut Components) -> Json),
    /// JSON with this schema, as a file to be saved.
    Document(fn(&mut Components) -> Json),
    /// A file to be saved, of this type, with an example.
    File(&'static str, Cow<'static, str>),
    /// Lines that are streamed while the operation runs, with their content type and an example.
    Lines(&'static str, Cow<'static, str>),
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
    pub fn param(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.params.push(Field::required(name, schema, description));
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
            description: "",
            params: Vec::new(),
            query: Vec::new(),
            request_body: None,
            is_idempotent: false,
            responses: Vec::new(),
            errors: Vec::new(),
            error_fields: Vec::new(),
            names_intent: false,
            headers: Vec::new(),
        }
    }

    /// Sets the description.
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Adds a path parameter that differs from the section's parameter with the same name.
    pub fn param(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.params.push(Field::required(name, schema, description));
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.query.push(Field::optional(name, schema, description));
        self
    }

    /// Adds a request header.
    pub fn header(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.headers.push(Field::optional(name, schema, description));
        self
    }

    /// Adds `limit` and `offset`.
    pub fn paged(mut self) -> Self {
        self.query.extend(field::page());
        self
    }

    /// Sets the request body.
    pub fn request_body(mut self, body: BodyDoc) -> Self {
        self.request_body = Some(body);
        self
    }

    /// Marks it as executed at most once for each idempotency key (decision D26). Call it after [`Doc::request_body`].
    pub fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self.errors.push(Code::IdempotencyKeyReused);
        if let Some(body) = &mut self.request_body {
            let description = "An idempotency key, where no `Idempotency-Key` header can be sent.";
            body.fields.extend(IDEMPOTENCY_FIELDS.map(|name| {
                Field::optional_or_null(name, field::idempotency_key(), description).not_in_examples()
            }));
        }
        self
    }

    /// Adds the answer `T`.
    pub fn response<T: ToSchema>(self, status: u16, description: &'static str) -> Self {
        self.shape(status, description, AnswerContent::Json(Components::schema::<T>))
    }

    /// Adds an answer with a page of `T`.
    pub fn lists<T: ToSchema>(self, plural: &'static str, description: &'static str) -> Self {
        self.shape(
            200,
            description,
            AnswerContent::Page(plural, Components::schema::<T>),
        )
        .paged()
    }

    /// Adds an answer with a file.
    pub fn file(
        self,
        kind: &'static str,
        description: &'static str,
        example: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.shape(200, description, AnswerContent::File(kind, example.into()))
    }

    /// Adds an answer with `T` as a file.
    pub fn document<T: ToSchema>(self, description: &'static str) -> Self {
        self.shape(200, description, AnswerContent::Document(Components::schema::<T>))
    }

    /// Adds an answer with lines that are streamed.
    pub fn lines(self, kind: &'static str, description: &'static str, example: &'static str) -> Self {
        self.shape(200, description, AnswerContent::Lines(kind, example.into()))
    }

    fn shape(mut self, status: u16, description: &'static str, shape: AnswerContent) -> Self {
        self.responses.push(AnswerDoc {
            status,
            description,
            shape,
            headers: Vec::new(),
            fields: Vec::new(),
            example: None,
        });
        self
    }

    /// Sets the example of the answer that was added last.
    pub fn example(mut self, example: Json) -> Self {
        if let Some(given) = self.responses.last_mut() {
            given.example = Some(example);
        }
        self
    }

    /// Adds a header to the answer that was added last.
    pub fn response_header(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        if let Some(given) = self.responses.last_mut() {
            given.headers.push(Field::required(name, schema, description));
        }
        self
    }

    /// Adds `partial` to the last page answer.
    pub fn partial(mut self, description: &'static str) -> Self {
        if let Some(given) = self.responses.last_mut() {
            given
                .fields
                .push(Field::optional("partial", field::flag(), description));
        }
        self
    }

    /// Adds errors to those that follow from its row of the route table.
    pub fn errors(mut self, codes: &[Code]) -> Self {
        self.errors.extend(codes);
        self
    }

    /// Marks that its error answers contain `intent_id` (decision D75).
    pub const fn names_intent(mut self) -> Self {
        self.names_intent = true;
        self
    }

    /// Adds a field of some of its error answers.
    pub fn error_field(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.error_fields.push(Field::optional(name, schema, description));
        self
    }
}

impl BodyDoc {
    /// Creates a body without fields; `name` is the name of its schema.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            fields: Vec::new(),
            requires_a_field: false,
            allows_other_fields: false,
        }
    }

    /// Adds a required field.
    pub fn required(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.fields.push(Field::required(name, schema, description));
        self
    }

    /// Adds an optional field, which may be `null`.
    pub fn optional_or_null(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.fields
            .push(Field::optional_or_null(name, schema, description));
        self
    }

    /// Adds an optional field, which must not be `null`.
    pub fn optional(mut self, name: &'static str, schema: Json, description: &'static str) -> Self {
        self.fields.push(Field::optional(name, schema, description));
        self
    }

    /// Omits these fields from the example.
    pub fn omit_from_example(mut self, names: &[&str]) -> Self {
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
    pub fn with_a_field(mut self) -> Self {
        self.requires_a_field = true;
        self
    }

    /// Allows any additional field.
    pub fn with_other_fields(mut self) -> Self {
        self.allows_other_fields = true;
        self
    }
}
