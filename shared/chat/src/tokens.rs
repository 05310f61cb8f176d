//! Tests that compare estimates of prompts with the counts of a reference tokenizer (decision D68,
//! docs/explanation/estimates.md): chat messages in the shape that OpenAI documents, with OpenAI's own vocabularies.
//! The specification requires an estimate of a quarter of the bytes. It covers only the languages that the vocabulary
//! was made for. The tests name them, show by how much other languages can exceed the estimate, and that no text
//! exceeds it more than four times.

use domain::measured::Endpoint;
use domain::price::PriceTable;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        &[$(include_str!(concat!("../../../tests/fixtures/languages/", $name, ".txt"))),+]
    };
}

/// Languages with at least 4.3 bytes per token in the vocabulary of gpt-4o and all later models.
const COVERED: &[&str] = texts![
    "english",
    "german",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "dutch",
    "indonesian",
    "vietnamese",
    "russian",
    "ukrainian",
    "greek",
    "arabic",
    "hebrew",
    "hindi",
    "bengali",
    "thai",
];
/// Languages, and code, with at least 3.2 bytes per token: up to a quarter more tokens than estimated.
const NEAR: &[&str] = &[
    include_str!("../../../tests/fixtures/languages/polish.txt"),
    include_str!("../../../tests/fixtures/languages/czech.txt"),
    include_str!("../../../tests/fixtures/languages/finnish.txt"),
    include_str!("../../../tests/fixtures/languages/turkish.txt"),
    include_str!("../../../tests/fixtures/languages/japanese.txt"),
    include_str!("../../../tests/fixtures/languages/chinese.txt"),
    include_str!("../../../tests/fixtures/languages/korean.txt"),
    include_str!("../../../tests/fixtures/languages/yoruba.txt"),
    include_str!("../../domain/src/price/estimate.rs"),
    include_str!("../../store/src/spend/spend.lua"),
    include_str!("../../../tests/sdk/calls.py"),
    include_str!("../../../admin/dashboard/web/js/words.js"),
    include_str!("../../../admin/dashboard/web/index.html"),
];
/// Texts with far fewer bytes per token.
const DENSE: &[(&str, &str)] = &[
    (
        "base64",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    ),
    (
        "hexadecimal",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ),
    (
        "figures",
        "1017,2026-11-02,13.75,2.61,16.36\n1018,2026-11-02,9.10,1.73,10.83\n",
    ),
    ("marks", "!@#$%^&*()_+{}|:\"<>?-=[]\\;',./`~"),
    (
        "short words",
        "I am in it. So is he. We do. Go on! No, I am ok. A b c d.",
    ),
    (
        "a rare script",
        include_str!("../../../tests/fixtures/languages/amharic.txt"),
    ),
];

/// Tokens that begin the answer and are billed with every prompt, although no message contains them: three for each
/// call.
const REPLY_TOKENS: u64 = 3;

/// Prices at which a prompt token costs one nano-USD and the answer costs nothing, so that the estimate equals the
/// tokens held.
static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
    let text = "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
                [models.m]\nrates.standard = { input = \"0.001\", output = \"0\" }";
    PriceTable::from_toml(text).unwrap()
});

fn held(messages: &[Value]) -> u64 {
    held_for(&json!({ "model": "m", "messages": messages }))
}

/// Returns the tokens that are held for a whole body.
fn held_for(body: &Value) -> u64 {
    let body = body.to_string();
    let read = crate::parse_call(Endpoint::Chat, false, body.as_bytes()).unwrap();
    TABLE.estimate(&read.named_shape()).unwrap().get()
}

/// Counts chat messages as OpenAI documents: three tokens for each message, the tokens of each of its values, one more
/// for a name, and three at the end for the answer.
fn counted(bpe: &CoreBPE, messages: &[Value]) -> u64 {
    let tokens = |text: &str| bpe.encode_ordinary(text).len() as u64;
    let of_content = |content: &Value| match content {
        Value::Array(parts) => parts
            .iter()
            .map(|part| tokens(part["text"].as_str().unwrap()))
            .sum(),
        text => tokens(text.as_str().unwrap()),
    };
    let of_message = |message: &Value| {
        let name = message
            .get("name")
            .map_or(0, |name| 1 + tokens(name.as_str().unwrap()));
        3 + tokens(message["role"].as_str().unwrap()) + of_content(&message["content"]) + name
    };
    messages.iter().map(of_message).sum::<u64>() + REPLY_TOKENS
}

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

/// Generates conversations of whole texts, as strings and in parts, with and without names.
fn conversation(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<Value>> {
    let shape = (
        select(vec!["system", "developer", "user", "assistant"]),
        prop::collection::vec(select(texts), 1..4),
        prop::option::of(select(vec!["anna", "worker_7"])),
        prop::option::of(any::<Index>()),
    );
    prop::collection::vec(shape, 1..8).prop_map(|messages| {
        let shaped = messages.into_iter().map(|(role, texts, name, cut)| {
            let mut message = message(role, &texts.join("\n\n"));
            if let Some(cut) = cut {
                let cut = cut.index(texts.len() + 1);
                let parts = [&texts[..cut], &texts[cut..]]
                    .map(|texts| json!({ "type": "text", "text": texts.join(" ") }));
                message["content"] = json!(parts);
            }
            if let Some(name) = name {
                message["name"] = name.into();
            }
            message
        });
        shaped.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_more_is_counted_than_is_held_for_the_covered_languages(messages in conversation(COVERED)) {
        let counted = counted(o200k_base_singleton(), &messages);
        prop_assert!(counted <= held(&messages), "{} held, {} counted: {:?}", held(&messages), counted, messages);
    }

    #[test]
    fn other_languages_and_code_are_counted_at_most_a_quarter_more(messages in conversation(NEAR)) {
        let counted = counted(o200k_base_singleton(), &messages);
        prop_assert!(counted <= held(&messages) * 5 / 4 + REPLY_TOKENS, "{} held, {} counted: {:?}", held(&messages), counted, messages);
    }

    /// A token has at least one byte, which bounds any text.
    #[test]
    fn nothing_is_counted_more_than_four_times(
        contents in prop::collection::vec(prop_oneof![any::<String>(), "[ -~]{0,200}", "[\u{1200}-\u{13ff}]{0,50}"], 1..12),
    ) {
        let messages: Vec<Value> = contents.iter().map(|text| message("user", text)).collect();
        for bpe in [o200k_base_singleton(), cl100k_base_singleton()] {
            prop_assert!(counted(bpe, &messages) <= held(&messages) * 4 + REPLY_TOKENS);
        }
    }
}

/// The table of docs/explanation/estimates.md states that these can have more tokens than are held.
#[test]
fn dense_text_is_counted_more_than_it_is_held() {
    for (what, text) in DENSE {
        let messages = [message("user", &text.repeat(20))];
        let (counted, held) = (counted(o200k_base_singleton(), &messages), held(&messages));
        assert!(counted > held * 5 / 4, "{what}: {held} held, {counted} counted");
        assert!(counted <= held * 4, "{what}: {held} held, {counted} counted");
    }
    let hello = [message("user", "Hi")];
    assert_eq!(
        (held(&hello), counted(o200k_base_singleton(), &hello)),
        (5, 8),
        "the answer's three tokens"
    );
}

/// The vocabulary of gpt-4 and gpt-3.5 was made for English. Most other languages need up to twice the held tokens.
#[test]
fn the_older_vocabulary_covers_english() {
    let ratio = |text: &str| {
        let messages = [message("user", &[text; 4].join("\n"))];
        counted(cl100k_base_singleton(), &messages) * 100 / held(&messages)
    };
    assert!(ratio(COVERED[0]) <= 100, "English");
    for text in COVERED.iter().chain(NEAR) {
        assert!(ratio(text) <= 225, "{}: {text}", ratio(text));
    }
}

mod definitions;

/// Decision D68: the exact framing.
#[test]
fn empty_messages_are_held_as_they_are_counted() {
    let messages = vec![message("user", ""); 2_000];
    assert_eq!(held(&messages), 8_000);
    assert_eq!(counted(o200k_base_singleton(), &messages), 8_000 + REPLY_TOKENS);
}
