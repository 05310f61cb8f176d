//! Tests of the bounds in docs/explanation/estimates.md for definitions of tools and functions, `response_format` and
//! tool calls.
//!
//! OpenAI does not document how it counts them. Tools and functions are counted as in its cookbook ("How to count
//! tokens with tiktoken", gpt-4o), the schema of a `response_format` as its JSON, and a tool call as its name and
//! arguments in the frame of a message.

use super::*;
use std::fmt::Write as _;

/// Tokens by the cookbook: for each definition, before its parameters, for each parameter, for an `enum` and each of
/// its elements, and at the end of all definitions.
const OF_TOOL: i64 = 7;
const OF_PARAMETERS: i64 = 3;
const OF_PARAMETER: i64 = 3;
const OF_ENUM: i64 = -3;
const OF_ELEMENT: i64 = 3;
const AT_THE_END: i64 = 12;

/// Tokens that the documentation allows beyond the estimate: for each definition, for each element of an `enum`, and
/// for each tool call.
const BEYOND_A_TOOL: i64 = 10;
const BEYOND_AN_ELEMENT: i64 = 4;
const BEYOND_A_CALL: i64 = 3;

/// A parameter: its name, type and description, and its `enum`.
type Parameter = (String, &'static str, String, Vec<String>);
/// A definition: its name, description and parameters.
type Definition = (String, String, Vec<Parameter>);

fn tokens(text: &str) -> i64 {
    i64::try_from(o200k_base_singleton().encode_ordinary(text).len()).unwrap()
}

fn name() -> impl Strategy<Value = String> {
    let words = vec![
        "get", "weather", "city", "order", "status", "search", "unit", "user", "date", "list",
    ];
    prop::collection::vec(select(words), 1..4).prop_map(|words| words.join("_"))
}

/// Generates a sentence or an empty text.
fn description() -> impl Strategy<Value = String> {
    let sentences = COVERED[0]
        .split_inclusive(". ")
        .map(str::trim)
        .collect::<Vec<_>>();
    prop_oneof![Just(String::new()), select(sentences).prop_map(str::to_owned)]
}

fn definition() -> impl Strategy<Value = Definition> {
    let kinds = vec!["string", "integer", "number", "boolean"];
    let parameter = (
        name(),
        select(kinds),
        description(),
        prop::collection::vec(name(), 0..6),
    );
    (name(), description(), prop::collection::vec(parameter, 0..6))
}

/// Returns the definition as OpenAI documents it, without empty fields.
fn function((name, description, parameters): &Definition) -> Value {
    let properties = parameters.iter().map(|(name, kind, description, list)| {
        let mut schema = json!({ "type": kind });
        if !description.is_empty() {
            schema["description"] = json!(description);
        }
        if !list.is_empty() {
            schema["enum"] = json!(list);
        }
        (name.clone(), schema)
    });
    let properties: serde_json::Map<String, Value> = properties.collect();
    let mut function = json!({ "name": name, "parameters": { "type": "object", "properties": properties } });
    if !description.is_empty() {
        function["description"] = json!(description);
    }
    function
}

/// Returns the cookbook's count for definitions.
fn counted_definitions(functions: &[Value]) -> i64 {
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_default()
            .trim_end_matches('.')
            .to_owned()
    };
    let of_parameter = |(name, schema): (&String, &Value)| {
        let list = schema["enum"].as_array().map_or(0, |list| {
            let elements = list
                .iter()
                .map(|element| OF_ELEMENT + tokens(element.as_str().unwrap()));
            OF_ENUM + elements.sum::<i64>()
        });
        let line = format!(
            "{name}:{}:{}",
            text(&schema["type"]),
            text(&schema["description"])
        );
        OF_PARAMETER + list + tokens(&line)
    };
    let of_function = |function: &Value| {
        let properties = function["parameters"]["properties"].as_object().unwrap();
        let head = format!("{}:{}", text(&function["name"]), text(&function["description"]));
        let parameters = if properties.is_empty() { 0 } else { OF_PARAMETERS };
        OF_TOOL + tokens(&head) + parameters + properties.iter().map(of_parameter).sum::<i64>()
    };
    functions.iter().map(of_function).sum::<i64>() + AT_THE_END
}

/// Returns the number of `enum` elements in a schema.
fn elements(schema: &Value) -> i64 {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match (name.as_str(), value) {
                ("enum", Value::Array(list)) => i64::try_from(list.len()).unwrap(),
                _ => elements(value),
            })
            .sum(),
        Value::Array(list) => list.iter().map(elements).sum(),
        _ => 0,
    }
}

/// Returns the tokens held for a field in a body with one short message.
fn held_beside_a_message(field: &str, value: &Value) -> i64 {
    let messages = [message("user", "Hi.")];
    let with = held_for(&json!({ "model": "m", "messages": messages, field: value }));
    i64::try_from(with - held(&messages)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn definitions_are_counted_a_few_tokens_more_at_most(definitions in prop::collection::vec(definition(), 1..6)) {
        let functions: Vec<Value> = definitions.iter().map(function).collect();
        let tools: Vec<Value> =
            functions.iter().map(|function| json!({ "type": "function", "function": function })).collect();
        let counted = counted_definitions(&functions);
        let number = i64::try_from(functions.len()).unwrap();
        let beyond = BEYOND_A_TOOL * number + BEYOND_AN_ELEMENT * elements(&json!(functions));
        for (field, value) in [("tools", json!(tools)), ("functions", json!(functions))] {
            let held = held_beside_a_message(field, &value);
            prop_assert!(counted <= held + beyond, "{field}: {held} held, {counted} counted: {value}");
        }
    }

    #[test]
    fn a_schema_of_the_answer_is_counted_a_few_tokens_more_at_most(definition in definition()) {
        let function = function(&definition);
        let schema = json!({ "name": function["name"], "strict": true, "schema": function["parameters"] });
        let format = json!({ "type": "json_schema", "json_schema": schema });
        let (held, counted) = (held_beside_a_message("response_format", &format), tokens(&schema.to_string()));
        let beyond = BEYOND_A_TOOL + BEYOND_AN_ELEMENT * elements(&schema);
        prop_assert!(counted <= held + beyond, "{held} held, {counted} counted: {format}");
    }

    #[test]
    fn tool_calls_are_counted_a_few_tokens_more_at_most(
        calls in prop::collection::vec((name(), prop::collection::vec((name(), description()), 0..5)), 1..6),
    ) {
        let mut counted = 0;
        let made: Vec<Value> = calls.iter().enumerate().map(|(at, (name, arguments))| {
            let mut text = String::new();
            for (name, value) in arguments {
                write!(text, "{}{}:{}", if text.is_empty() { "" } else { "," }, json!(name), json!(value)).unwrap();
            }
            let text = format!("{{{text}}}");
            counted += 3 + tokens(name) + tokens(&text);
            json!({ "id": format!("call_{at}"), "type": "function", "function": { "name": name, "arguments": text } })
        }).collect();
        let message = |calls: &[Value]| json!({ "role": "assistant", "content": null, "tool_calls": calls });
        let held = i64::try_from(held(&[message(&made)]) - held(&[message(&[])])).unwrap();
        let beyond = BEYOND_A_CALL * i64::try_from(made.len()).unwrap();
        prop_assert!(counted <= held + beyond, "{held} held, {counted} counted: {made:?}");
    }
}
