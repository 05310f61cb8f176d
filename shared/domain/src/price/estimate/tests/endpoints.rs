//! Tests of calls to other endpoints than chat completions: responses and embeddings.

use super::*;

/// Reasoning that the provider keeps is part of the prompt, also for the long-context threshold.
#[test]
fn kept_reasoning_counts_its_allowance() {
    let text = "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
                reasoning_tokens = 700\n\
                [models.m]\nrates.standard = { input = \"1\", output = \"1\" }\n\
                long_context_above = 1_400\nlong_context.standard = { input = \"2\", output = \"1\" }";
    let estimate = |text: &str, reasoning_items| {
        let table = crate::price::PriceTable::from_toml(text).unwrap();
        let call = CallShape {
            model: "m",
            reasoning_items,
            ..NOTHING
        };
        table.estimate(&call).unwrap().get()
    };
    assert_eq!(estimate(text, 2), 2 * 700 * 1_000);
    assert_eq!(estimate(text, 3), 3 * 700 * 2_000);
    let older = text.replace("reasoning_tokens = 700\n", "");
    assert_eq!(estimate(&older, 1), 25_000 * 2_000, "without this line");
    let none = text.replace("= 700", "= 0");
    assert_eq!(estimate(&none, 3), 0);
}

/// `POST /v1/embeddings`: nothing is held for an answer, and token ids are not counted again as text.
#[test]
fn an_embeddings_call_is_its_input() {
    let table = of_models(
        "[models.m]\nrates.standard = { input = \"0.02\", output = \"0.02\" }\n\
         [models.n]\nrates.standard = { input = \"1\", output = \"1\" }",
    );
    let call = CallShape {
        model: "m",
        prompt_bytes: 4_001,
        content_parts: 2,
        token_ids: 997,
        ..NOTHING
    };
    // 1,001 tokens of text, 2 of parts and 997 ids, at 20 nano-USD each.
    assert_eq!(table.estimate(&call).unwrap().get(), 40_000);
    let ids = CallShape {
        model: "n",
        token_ids: 1,
        ..NOTHING
    };
    assert_eq!(
        table.estimate(&ids).unwrap().get(),
        1_000,
        "one token, one micro-USD"
    );
    let most = CallShape {
        token_ids: u64::MAX,
        prompt_bytes: u64::MAX,
        ..ids
    };
    assert_eq!(table.estimate(&most), None);
}
