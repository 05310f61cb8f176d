//! Properties of the estimate: it is monotonic, and no counts make it panic.

use super::tests::NOTHING;
use super::*;
use crate::price::tests::builtin;
use proptest::prelude::*;

proptest! {
    #[test]
    fn more_of_anything_never_costs_less(
        model in prop::sample::select(vec!["gpt-4o", "gpt-5.4", "gpt-6-astra", "gpt-audio", "gpt-99", "gpt-6.1-sol"]),
        service_tier in prop::sample::select(vec![None, Some("flex"), Some("priority"), Some("ultrafast"), Some("?")]),
        [prompt_bytes, image_parts, audio_parts] in [0_u64..1_200_000, 0_u64..5, 0_u64..5],
        [file_parts, reasoning_items, completion_tokens, n] in [0_u64..15, 0_u64..12, 1_u64..200_000, 1_u64..128],
        [framed, content_parts, predicted_bytes] in prop::array::uniform3(0_u64..5_000),
        more in 1_u64..20_000,
    ) {
        let call = CallShape {
            model, service_tier, prompt_bytes, image_parts, audio_parts, file_parts, reasoning_items, completion_tokens,
            n, framed, content_parts, predicted_bytes: predicted_bytes.min(prompt_bytes),
            predicted_parts: content_parts / 2, ..NOTHING
        };
        for bigger in [
            CallShape { prompt_bytes: prompt_bytes + more, ..call },
            CallShape { token_ids: more, ..call },
            CallShape { framed: framed + more, ..call },
            CallShape { content_parts: content_parts + more, ..call },
            CallShape { predicted_bytes: call.predicted_bytes + more, prompt_bytes: prompt_bytes + more, ..call },
            CallShape { predicted_bytes: prompt_bytes, ..call },
            CallShape { predicted_parts: content_parts, ..call },
            CallShape { image_parts: image_parts + more, ..call },
            CallShape { audio_parts: audio_parts + more, ..call },
            CallShape { file_parts: file_parts + more, ..call },
            CallShape { reasoning_items: reasoning_items + more, ..call },
            CallShape { completion_tokens: completion_tokens + more, ..call },
            CallShape { n: n + more, ..call },
            CallShape { unlimited: true, ..call },
            CallShape { audio_output: true, ..call },
            CallShape { web_search: true, ..call },
            CallShape { long_cache: true, ..call },
        ] {
            let (less, more) = (builtin().estimate(&call), builtin().estimate(&bigger));
            prop_assert!(more.is_none() || less <= more, "{:?} {:?}", call, bigger);
        }
    }

    #[test]
    fn no_counts_panic(
        counts in prop::array::uniform10(prop_oneof![any::<u64>(), Just(u64::MAX), 0_u64..3]),
        [audio_output, web_search] in prop::array::uniform2(any::<bool>()),
        [token_ids, reasoning_items] in prop::array::uniform2(prop_oneof![any::<u64>(), Just(u64::MAX)]),
    ) {
        let [prompt_bytes, image_parts, audio_parts, file_parts, completion_tokens, n, framed, content_parts, more @ ..] =
            counts;
        let [predicted_bytes, predicted_parts] = more;
        let call = CallShape {
            prompt_bytes, image_parts, audio_parts, file_parts, completion_tokens, n, audio_output, web_search,
            framed, content_parts, predicted_bytes, predicted_parts, token_ids, reasoning_items, ..NOTHING
        };
        let _ = builtin().estimate(&call);
    }
}
