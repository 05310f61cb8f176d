//! The body of a request for embeddings.

use super::{SandboxRequest, missing, quoted, string, tokens};
use crate::reply::{self, BoxedReply};
use domain::measured::Endpoint;
use serde_json::Value;

/// Default number of dimensions of an embedding.
const DIMENSIONS: usize = 1_536;
/// Maximum number of dimensions of an embedding.
const DIMENSIONS_MAX: u64 = 3_072;
/// Maximum number of inputs, as at the provider.
const INPUTS_MAX: usize = 2_048;

pub(super) fn read(body: &Value) -> Result<SandboxRequest, BoxedReply> {
    let model = string(body, "model").ok_or_else(|| missing("model"))?;
    let (inputs, prompt_tokens) = count(body.get("input")).ok_or_else(|| missing("input"))?;
    if inputs > INPUTS_MAX {
        let message = "Invalid 'input': array too long. Expected an array with maximum length 2048.";
        return Err(reply::refusal(400, message, Some("array_above_max_length")));
    }
    let dimensions = body.get("dimensions").and_then(Value::as_u64);
    let dimensions = dimensions.map(|count| usize::try_from(count.clamp(1, DIMENSIONS_MAX)));
    Ok(SandboxRequest {
        user: string(body, "user"),
        prompt_tokens,
        quoted: quoted(body["input"].as_str().unwrap_or_default()),
        inputs,
        dimensions: dimensions.and_then(Result::ok).unwrap_or(DIMENSIONS),
        base64: body.get("encoding_format").and_then(Value::as_str) == Some("base64"),
        ..SandboxRequest::new(Endpoint::Embeddings, model)
    })
}

/// Returns the number of inputs and of their tokens: each text is rounded up separately, each token id counts as one.
fn count(input: Option<&Value>) -> Option<(usize, u64)> {
    let of = |input: &Value| match input {
        Value::String(text) => Some(tokens(text.len())),
        Value::Array(ids) => u64::try_from(ids.len()).ok(),
        _ => None,
    };
    match input? {
        Value::String(text) if text.is_empty() => None,
        Value::Array(all) if all.is_empty() => None,
        Value::Array(all) if !all[0].is_number() => {
            let each = all.iter().map(of).collect::<Option<Vec<u64>>>()?;
            Some((all.len(), each.iter().sum()))
        }
        one => Some((1, of(one)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_input_is_counted() {
        for (input, counted) in [
            (json!("12345"), Some((1, 2))),
            (json!(["1", "12345"]), Some((2, 3))),
            (json!([7, 8, 9]), Some((1, 3))),
            (json!([[7, 8], [9]]), Some((2, 3))),
            (json!([]), None),
            (json!(""), None),
            (json!(7), None),
            (json!([{}]), None),
        ] {
            assert_eq!(count(Some(&input)), counted, "{input}");
        }
        let many = json!({ "model": "m", "input": vec!["x"; INPUTS_MAX + 1] });
        assert!(read(&many).is_err());
    }
}
