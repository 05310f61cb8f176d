//! One operation: parameters, body, answers, errors, and a `curl` command.

use super::curl;
use super::document::{Document, DocumentedOperation, media};
use super::html::{anchor, code, escape, inline, prose, table};
use super::schema::{self, kind, optional};
use openapi::Json;

impl DocumentedOperation<'_> {
    /// Returns its anchor on the page.
    pub(super) fn anchor(&self) -> String {
        anchor(self.text("operationId"))
    }

    /// Returns the method and the path.
    pub(super) fn title(&self) -> String {
        let method = self.method.to_ascii_uppercase();
        let path = escape(self.path).replace('/', "/<wbr>");
        format!(
            "<span class=\"method {}\">{method}</span> <span class=\"path\">{path}</span>",
            escape(self.method)
        )
    }

    /// Renders the whole operation.
    pub(super) fn section(&self, document: &Document) -> String {
        let id = self.anchor();
        format!(
            "<section class=\"operation\" id=\"{id}\"><h3>{}</h3>\
             <p class=\"call\"><a href=\"#{id}\">{}</a></p>{}{}{}{}{}</section>",
            escape(self.text("summary")),
            self.title(),
            prose(self.text("description")),
            self.parameters(document),
            self.body(document),
            code("From a shell", &curl::command(self, document)),
            self.responses(document),
        )
    }

    fn parameters(&self, document: &Document) -> String {
        let parameters = self.json.get("parameters").map(Json::items).unwrap_or_default();
        let rows: Vec<Vec<String>> = parameters
            .iter()
            .map(|parameter| {
                let parameter = document.dereference(parameter);
                let text = |name: &str| parameter.get(name).and_then(Json::text).unwrap_or_default();
                let is_required = parameter.get("required") == Some(&Json::Bool(true));
                vec![
                    format!("<code>{}</code>{}", escape(text("name")), optional(is_required)),
                    escape(text("in")),
                    parameter.get("schema").map(kind).unwrap_or_default(),
                    inline(text("description")),
                ]
            })
            .collect();
        titled(
            "Parameters",
            &table("Parameters", &["Name", "In", "Type", "Meaning"], &rows),
        )
    }

    fn body(&self, document: &Document) -> String {
        let Some(media) = self.json.get("requestBody").and_then(media) else {
            return String::new();
        };
        let schema = media.get("schema").map(|schema| document.dereference(schema));
        let fields = schema
            .map(|schema| schema::fields("Body", schema))
            .unwrap_or_default();
        titled("Body", &fields)
    }

    fn responses(&self, document: &Document) -> String {
        let responses = self.json.fields_of("responses");
        let (good, bad): (Vec<_>, Vec<_>) = responses.iter().partition(|(status, _)| status.starts_with('2'));
        let good: Vec<String> = good
            .iter()
            .map(|(status, response)| self.answer(document, status, response))
            .collect();
        let rows: Vec<Vec<String>> = bad
            .iter()
            .map(|(status, response)| {
                let response = document.dereference(response);
                let says = response
                    .get("description")
                    .and_then(Json::text)
                    .unwrap_or_default();
                vec![format!("<code>{}</code>", escape(status)), prose(says)]
            })
            .collect();
        let errors = table("Errors", &["Status", "When"], &rows);
        let errors = match errors.is_empty() {
            true => errors,
            false => format!("<details><summary>Errors</summary>{errors}</details>"),
        };
        good.concat() + &errors
    }

    fn answer(&self, document: &Document, status: &str, response: &Json) -> String {
        let response = document.dereference(response);
        let says = response
            .get("description")
            .and_then(Json::text)
            .unwrap_or_default();
        let contents = response.fields_of("content");
        let contents = contents.iter().map(|(kind_name, media)| {
            let schema = media.get("schema").map(kind).unwrap_or_default();
            let example = media.get("example").map(|example| match example {
                Json::Text(text) => text.clone(),
                other => other.pretty(),
            });
            let label = format!("{status} {kind_name}");
            format!(
                "<p>{schema}</p>{}",
                example.map(|example| code(&label, &example)).unwrap_or_default()
            )
        });
        format!(
            "<h4>Answer {}</h4>{}{}",
            escape(status),
            prose(says),
            contents.collect::<String>()
        )
    }
}

fn titled(title: &str, content: &str) -> String {
    match content.is_empty() {
        true => String::new(),
        false => format!("<h4>{title}</h4>{content}"),
    }
}
