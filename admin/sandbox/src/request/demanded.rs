//! Content that a request demands of its answer in place of the usual text: the call of a tool, or JSON in a format.
//! Chat completions nest the definition of a tool, and the choice of one, in a member named by its type; responses do
//! not. Both forms are read.

use crate::instance;
use serde_json::{Value, json};

/// Input of a custom tool. Its grammar is not followed.
const CUSTOM_INPUT: &str = "sandbox";

/// A tool that the answer calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalledTool {
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
}

/// Kind of a tool that the caller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// Its input is JSON that fits its `parameters`.
    Function,
    /// Its input is a text.
    Custom,
}

/// Content of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Demanded {
    /// The whole text, or the input of `tool`.
    pub(crate) text: String,
    pub(crate) tool: Option<CalledTool>,
}

/// Returns the content that these members of a request demand; `None` if the usual text will do. The call of a tool
/// goes before the format of a text.
pub(super) fn demanded(tools: &Value, tool_choice: &Value, format: &Value) -> Option<Demanded> {
    call(tools, tool_choice).or_else(|| {
        Some(Demanded {
            text: formatted(format)?,
            tool: None,
        })
    })
}

/// Returns the call that `tool_choice` forces: of the named tool, or of the first one where any is required.
fn call(tools: &Value, choice: &Value) -> Option<Demanded> {
    let mut offered = tools.as_array()?.iter().filter_map(definition);
    let (kind, tool) = if choice == "required" {
        offered.next()
    } else {
        let (kind, wanted) = definition(one_of_allowed(choice)?)?;
        offered.find(|(of, tool)| *of == kind && tool.get("name") == wanted.get("name"))
    }?;
    let text = match (kind, tool.get("parameters")) {
        (ToolKind::Custom, _) => CUSTOM_INPUT.to_owned(),
        (ToolKind::Function, None | Some(Value::Null)) => json!({}).to_string(),
        (ToolKind::Function, Some(schema)) => instance::of_schema(schema).to_string(),
    };
    let name = tool.get("name")?.as_str()?.to_owned();
    Some(Demanded {
        text,
        tool: Some(CalledTool { name, kind }),
    })
}

/// Returns the choice of a single tool: of several allowed ones the first, where one must be called.
fn one_of_allowed(choice: &Value) -> Option<&Value> {
    if choice.get("type")? != "allowed_tools" {
        return Some(choice);
    }
    let allowed = choice.get("allowed_tools").unwrap_or(choice);
    allowed
        .pointer("/tools/0")
        .filter(|_| allowed.get("mode") == Some(&json!("required")))
}

/// Returns the kind and the members of a tool, or of the choice of one.
fn definition(tool: &Value) -> Option<(ToolKind, &Value)> {
    let word = tool.get("type")?.as_str()?;
    let kind = match word {
        "function" => ToolKind::Function,
        "custom" => ToolKind::Custom,
        _ => return None,
    };
    Some((kind, tool.get(word).unwrap_or(tool)))
}

/// Returns JSON in the requested format; `None` for text.
fn formatted(format: &Value) -> Option<String> {
    let value = match format.get("type")?.as_str()? {
        "json_object" => json!({ "answer": "This is the Tollgate sandbox." }),
        "json_schema" => {
            let schema = format
                .pointer("/json_schema/schema")
                .or_else(|| format.get("schema"));
            instance::of_schema(schema?)
        }
        _ => return None,
    };
    Some(value.to_string())
}
