//! Tests of the estimate against figures computed by hand, and at its thresholds.

mod endpoints;

use super::*;
use crate::price::tests::{builtin, of_models};

/// An empty request, to which tests add counts.
pub(crate) const NOTHING: CallShape<'static> = CallShape {
    model: "gpt-4o",
    ..CallShape::EMPTY
};

fn nanos(call: CallShape<'_>) -> u64 {
    builtin().estimate(&call).unwrap().get()
}

#[test]
fn the_example_of_the_specification() {
    // 40 bytes are 10 tokens at 2.50, and 1,024 tokens at 10: 25,000 + 10,240,000 nano-USD.
    let call = CallShape {
        prompt_bytes: 40,
        completion_tokens: 1_024,
        ..NOTHING
    };
    assert_eq!(nanos(call), 10_265_000);
    assert_eq!(nanos(CallShape { n: 3, ..call }), 30_745_000);
    // 41 bytes are 11 tokens.
    assert_eq!(
        nanos(CallShape {
            prompt_bytes: 41,
            ..call
        }),
        10_267_500
    );
}

#[test]
fn rounds_up_once() {
    let table = crate::price::PriceTable::from_toml(
        "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
         [models.m]\nrates.standard = { input = \"0.0004\", output = \"0.0004\" }",
    );
    let table = table.unwrap();
    // Both sides cost 400 pico-USD per token: 2 tokens cost 800 and are rounded to one nano, 3 cost 1,200 and become
    // two.
    let one_each = CallShape {
        model: "m",
        prompt_bytes: 4,
        completion_tokens: 1,
        ..NOTHING
    };
    assert_eq!(table.estimate(&one_each).unwrap().get(), 1);
    assert_eq!(
        table
            .estimate(&CallShape {
                completion_tokens: 2,
                ..one_each
            })
            .unwrap()
            .get(),
        2
    );
}

#[test]
fn parts_count_their_allowances() {
    let part = |call: CallShape<'_>| nanos(call);
    assert_eq!(
        part(CallShape {
            image_parts: 2,
            ..NOTHING
        }),
        2 * 2_500 * 2_500
    );
    assert_eq!(
        part(CallShape {
            file_parts: 1,
            ..NOTHING
        }),
        20_000 * 2_500
    );
    assert_eq!(
        part(CallShape {
            reasoning_items: 2,
            prompt_bytes: 40,
            ..NOTHING
        }),
        (2 * 25_000 + 10) * 2_500
    );
    assert_eq!(
        part(CallShape {
            model: "gpt-4o-mini",
            image_parts: 1,
            ..NOTHING
        }),
        48_169 * 150
    );
    assert_eq!(
        part(CallShape {
            model: "gpt-audio",
            audio_parts: 1,
            ..NOTHING
        }),
        6_000 * 32_000
    );
    assert_eq!(
        part(CallShape {
            audio_parts: 1,
            ..NOTHING
        }),
        6_000 * 2_500,
        "no audio price: that of text"
    );
}

/// Audio may be billed as the text of its transcript.
#[test]
fn sound_that_is_cheaper_than_text_is_estimated_as_text() {
    let table = |audio: &str| {
        of_models(&format!(
            "[models.m]\nrates.standard = {{ input = \"2\", output = \"10\", audio_input = \"{audio}\", audio_output = \"1\" }}",
        ))
    };
    let sound = CallShape {
        model: "m",
        audio_parts: 3,
        ..NOTHING
    };
    for (audio, price) in [("0.5", 2_000), ("2", 2_000), ("5", 5_000)] {
        let estimate = table(audio).estimate(&sound).unwrap().get();
        let tokens = 3 * builtin().allowances.audio_tokens;
        assert_eq!(estimate, tokens * price, "{audio}");
    }
    let spoken = CallShape {
        model: "m",
        completion_tokens: 10,
        audio_output: true,
        ..NOTHING
    };
    assert_eq!(table("1").estimate(&spoken).unwrap().get(), 10 * 10_000);
}

/// Decision D68. Without framing, 2,000 empty messages with `max_tokens` 1 were estimated at 10,000 nano-USD.
#[test]
fn framing_counts() {
    let empty = CallShape {
        framed: 2_000,
        completion_tokens: 1,
        ..NOTHING
    };
    assert_eq!(nanos(empty), 2_000 * 4 * 2_500 + 10_000);
    let parts = CallShape {
        framed: 1,
        content_parts: 500,
        ..NOTHING
    };
    assert_eq!(nanos(parts), (4 + 500) * 2_500);
    let text = "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
                message_tokens = 7\npart_tokens = 3\n\
                [models.\"gpt-4o\"]\nrates.standard = { input = \"1\", output = \"1\" }";
    let table = crate::price::PriceTable::from_toml(text).unwrap();
    let estimate = |call| table.estimate(&call).unwrap().get();
    assert_eq!(estimate(parts), (7 + 500 * 3) * 1_000, "the table's own numbers");
    let older = text.replace("message_tokens = 7\npart_tokens = 3\n", "");
    let older = crate::price::PriceTable::from_toml(&older).unwrap();
    assert_eq!(
        older.estimate(&parts).unwrap().get(),
        (4 + 500) * 1_000,
        "without these lines"
    );
}

/// Allowances that an operator can raise: for reasoning without a limit, and for text with many tokens.
#[test]
fn the_table_can_hold_more() {
    let head = "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n";
    let rates = "rates.standard = { input = \"1\", output = \"2\" }";
    let table = |allowances: &str, model: &str| {
        let text = format!("{head}{allowances}[models.m]\n{rates}\n{model}[models.n]\n{rates}");
        crate::price::PriceTable::from_toml(&text)
    };
    let call = CallShape {
        model: "m",
        prompt_bytes: 100,
        completion_tokens: 1_024,
        unlimited: true,
        ..NOTHING
    };
    let limited = CallShape {
        unlimited: false,
        ..call
    };
    let other = CallShape { model: "n", ..call };
    let unknown = CallShape { model: "x", ..call };
    for (allowances, model, tokens) in [
        ("", "", [(25, 1_024); 4]),
        ("bytes_per_token = 1\n", "", [(100, 1_024); 4]),
        ("completion_tokens = 16\n", "", [(25, 1_024); 4]),
        (
            "completion_tokens = 5_000\n",
            "",
            [(25, 5_000), (25, 1_024), (25, 5_000), (25, 5_000)],
        ),
        (
            "",
            "completion_tokens = 32_000\n",
            [(25, 32_000), (25, 1_024), (25, 1_024), (25, 32_000)],
        ),
        (
            "completion_tokens = 5_000\n",
            "completion_tokens = 2_000\n",
            [(25, 2_000), (25, 1_024), (25, 5_000), (25, 5_000)],
        ),
    ] {
        let table = table(allowances, model).unwrap();
        for (call, (prompt, completion)) in [call, limited, other, unknown].iter().zip(tokens) {
            let nanos = prompt * 1_000 + completion * 2_000;
            assert_eq!(
                table.estimate(call).unwrap().get(),
                nanos,
                "{allowances} {model} {call:?}"
            );
        }
    }
    for bad in ["0", "5"] {
        let error = table(&format!("bytes_per_token = {bad}\n"), "").unwrap_err();
        assert!(error.to_string().contains("bytes_per_token"), "{error}");
    }
}

/// Decision D68: the part of a prediction that the answer does not use is billed as output.
#[test]
fn a_prediction_takes_the_dearer_price() {
    // 400 bytes of messages and 41 of the prediction, which has two parts: 111 tokens of text and two parts at the
    // input price, of which 11 tokens and the two parts cost as much as output.
    let call = CallShape {
        prompt_bytes: 441,
        content_parts: 2,
        predicted_bytes: 41,
        predicted_parts: 2,
        ..NOTHING
    };
    assert_eq!(nanos(call), (111 + 2) * 2_500 + (11 + 2) * (10_000 - 2_500));
    let table = crate::price::PriceTable::from_toml(
        "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
         [models.\"gpt-4o\"]\nrates.standard = { input = \"3\", output = \"1\" }",
    );
    let estimate = table.unwrap().estimate(&call).unwrap().get();
    assert_eq!(estimate, (111 + 2) * 3_000, "input is dearer here");
}

#[test]
fn audio_output_takes_the_dearer_price() {
    let call = CallShape {
        model: "gpt-audio",
        completion_tokens: 1_000,
        ..NOTHING
    };
    assert_eq!(nanos(call), 1_000 * 10_000);
    assert_eq!(
        nanos(CallShape {
            audio_output: true,
            ..call
        }),
        1_000 * 64_000
    );
    let text = CallShape {
        completion_tokens: 1_000,
        audio_output: true,
        ..NOTHING
    };
    assert_eq!(nanos(text), 1_000 * 10_000);
}

/// The request does not say which part of the prompt will be written, or how much of it is read from the cache.
#[test]
fn a_longer_life_in_the_cache_is_held_for_the_whole_prompt() {
    let call = CallShape {
        model: "gpt-6-astra",
        prompt_bytes: 4_000,
        completion_tokens: 100,
        ..NOTHING
    };
    let long = CallShape {
        long_cache: true,
        ..call
    };
    assert_eq!(nanos(call), 1_000 * 10_000 + 100 * 50_000);
    assert_eq!(nanos(long), 1_000 * 25_000 + 100 * 50_000);
    let flex = CallShape {
        service_tier: Some("flex"),
        tier_is_reported: true,
        ..long
    };
    assert_eq!(nanos(flex), 1_000 * 12_500 + 100 * 25_000);
    let none = CallShape {
        model: "gpt-4o",
        ..long
    };
    assert_eq!(nanos(none), 1_000 * 2_500 + 100 * 10_000, "no price for writing");
}

#[test]
fn web_search_adds_its_fee_once() {
    let call = CallShape {
        model: "gpt-5",
        completion_tokens: 100,
        n: 4,
        ..NOTHING
    };
    assert_eq!(nanos(call), 4_000_000);
    assert_eq!(
        nanos(CallShape {
            web_search: true,
            ..call
        }),
        14_000_000
    );
    let always = CallShape {
        model: "gpt-4o-search-preview",
        completion_tokens: 100,
        ..NOTHING
    };
    assert_eq!(nanos(always), 26_000_000);
    assert_eq!(
        nanos(CallShape {
            web_search: true,
            ..always
        }),
        26_000_000
    );
}

#[test]
fn the_tier_asked_for_prices_it() {
    let call = CallShape {
        model: "o3",
        completion_tokens: 1_000,
        ..NOTHING
    };
    for (tier, cost) in [
        (None, 8_000_000),
        (Some("auto"), 8_000_000),
        (Some("default"), 8_000_000),
        (Some("flex"), 4_000_000),
        (Some("priority"), 14_000_000),
        (Some("fast"), 14_000_000),
        (Some("scale"), 14_000_000),
    ] {
        let reported = CallShape {
            service_tier: tier,
            tier_is_reported: true,
            ..call
        };
        assert_eq!(nanos(reported), cost, "{tier:?}");
        // An upstream that does not report the billed tier is not held below `auto_tier`.
        let unreported = CallShape {
            tier_is_reported: false,
            ..reported
        };
        assert_eq!(nanos(unreported), cost.max(8_000_000), "{tier:?}");
    }
}

#[test]
fn long_context_covers_the_whole_call() {
    let call = CallShape {
        model: "gpt-5.4",
        completion_tokens: 1_000,
        ..NOTHING
    };
    let at = |prompt_tokens: u64| {
        nanos(CallShape {
            prompt_bytes: prompt_tokens * 4,
            ..call
        })
    };
    assert_eq!(at(272_000), 272_000 * 2_500 + 1_000 * 15_000);
    assert_eq!(at(272_001), 272_001 * 5_000 + 1_000 * 22_500);
    let byte_more = CallShape {
        prompt_bytes: 272_000 * 4 + 1,
        ..call
    };
    assert_eq!(nanos(byte_more), at(272_001), "a started token counts");
    let with_image = CallShape {
        prompt_bytes: 260_000 * 4 + 1,
        image_parts: 1,
        ..call
    };
    assert_eq!(
        nanos(with_image),
        at(272_001),
        "parts count towards the threshold"
    );
    // Priority has no long-context price: the dearer of 5 and 5 for input, of 30 and 22.50 for output.
    let priority = CallShape {
        service_tier: Some("priority"),
        prompt_bytes: 272_001 * 4,
        ..call
    };
    assert_eq!(nanos(priority), 272_001 * 5_000 + 1_000 * 30_000);
}

#[test]
fn an_estimate_beyond_the_largest_amount_is_none() {
    let most = CallShape {
        completion_tokens: u64::MAX,
        n: u64::MAX,
        prompt_bytes: u64::MAX,
        ..NOTHING
    };
    assert_eq!(builtin().estimate(&most), None);
    let framing = CallShape {
        framed: u64::MAX,
        content_parts: u64::MAX,
        predicted_bytes: u64::MAX,
        predicted_parts: u64::MAX,
        ..NOTHING
    };
    assert_eq!(builtin().estimate(&framing), None);
    let parts = CallShape {
        image_parts: u64::MAX,
        audio_parts: u64::MAX,
        file_parts: u64::MAX,
        ..most
    };
    assert_eq!(builtin().estimate(&parts), None);
    let reasoning = CallShape {
        reasoning_items: u64::MAX,
        ..NOTHING
    };
    assert_eq!(builtin().estimate(&reasoning), None);
    // 9,000,000 USD at 10 USD per million tokens are 900,000,000,000 tokens.
    let limit = CallShape {
        completion_tokens: 900_000_000_000,
        ..NOTHING
    };
    assert_eq!(builtin().estimate(&limit), Some(Nanos::MAX));
    assert_eq!(
        builtin().estimate(&CallShape {
            completion_tokens: 900_000_000_001,
            ..limit
        }),
        None
    );
}
