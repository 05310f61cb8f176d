//! Tests that a charge follows from its record and the price table, and from nothing else.

use super::*;
use crate::call_record::Measures;
use crate::measured::Billing;
use proptest::prelude::*;

const TABLE: &str = r#"
auto_tier = "default"
[allowances]
image_tokens = 1
audio_tokens = 1
file_tokens = 1
[models.lab]
web_search = "0.01"
rates.standard = { input = "2", cached_input = "0.5", cache_write = "2.5", cache_write_12h = "5", output = "8", audio_input = "40", audio_output = "80.0003" }
rates.flex = { input = "1.0001", cached_input = "0.25", cache_write = "1.25", output = "4" }
[models."azure/lab"]
rates.standard = { input = "3", output = "9" }
[models."other-lab"]
rates.standard = { input = "4", output = "10" }
"#;

fn table() -> PriceTable {
    PriceTable::from_toml(TABLE).unwrap()
}

/// An approved call with this outcome and charge, without usage. Its estimate is 500.
fn record(outcome: HoldOutcome, cost: u64) -> CallRecord {
    CallRecord {
        seq: 1,
        audit_seq: 1,
        id: "allow_1".to_owned(),
        decided_ms: 0,
        recorded_ms: 0,
        day: 0,
        is_approved: true,
        agent: None,
        key_id: None,
        run: None,
        model: Some("lab".to_owned()),
        price_version: None,
        estimate: Some(Nanos::from_stored(500)),
        cost: Nanos::from_stored(cost),
        outcome: outcome.as_str().to_owned(),
        reason: None,
        count: 1,
        measures: Measures::default(),
    }
}

/// A settled call of these tokens.
fn settled(input: u64, output: u64, cost: u64) -> CallRecord {
    CallRecord {
        measures: Measures {
            input_tokens: Some(input),
            output_tokens: Some(output),
            ..Measures::default()
        },
        ..record(HoldOutcome::Settled, cost)
    }
}

#[test]
fn an_uncharged_call_costs_nothing() {
    for outcome in [HoldOutcome::Released, HoldOutcome::Voided, HoldOutcome::Unsent] {
        assert_eq!(record(outcome, 0).recompute(None), Recomputed::Same);
        assert_eq!(
            record(outcome, 1).recompute(None),
            Recomputed::Different(Nanos::ZERO)
        );
    }
}

#[test]
fn a_charge_without_usage_is_the_estimate() {
    for outcome in [HoldOutcome::Estimated, HoldOutcome::Kept, HoldOutcome::Corrected] {
        assert_eq!(record(outcome, 500).recompute(None), Recomputed::Estimate);
        for other in [499, 501] {
            assert_eq!(
                record(outcome, other).recompute(Some(&table())),
                Recomputed::Unknown(Unknown::NoUsage)
            );
        }
    }
}

#[test]
fn a_reported_cost_is_the_charge() {
    let mut call = settled(1, 1, 700);
    call.measures.billing.reported_cost = Some(Nanos::from_stored(700));
    assert_eq!(call.recompute(None), Recomputed::Same);
    call.cost = Nanos::from_stored(701);
    assert_eq!(
        call.recompute(None),
        Recomputed::Different(Nanos::from_stored(700))
    );
}

#[test]
fn the_price_is_that_of_prefix_upstream_or_model() {
    let priced = |prefix: Option<&str>, upstream: Option<&str>, cost: u64| {
        let mut call = settled(1, 1, cost);
        call.measures.billing.price_prefix = prefix.map(str::to_owned);
        call.measures.upstream = upstream.map(str::to_owned);
        call.recompute(Some(&table())) == Recomputed::Same
    };
    assert!(priced(None, None, 10_000));
    assert!(priced(None, Some("azure"), 12_000));
    assert!(priced(Some("other-"), Some("azure"), 14_000));
    assert!(priced(Some(""), Some("azure"), 10_000));
    assert!(!priced(None, Some("azure"), 10_000));
}

#[test]
fn a_call_with_an_unspelt_word_or_without_a_price_table_is_unknown() {
    assert_eq!(
        settled(1, 1, 10_000).recompute(None),
        Recomputed::Unknown(Unknown::NoTable)
    );
    let fields: [fn(&mut Billing) -> &mut Option<String>; 3] = [
        |billing| &mut billing.tier_asked,
        |billing| &mut billing.tier_reported,
        |billing| &mut billing.price_prefix,
    ];
    for field in fields {
        let mut call = settled(1, 1, 10_000);
        *field(&mut call.measures.billing) = Some(UNSPELT.to_owned());
        assert_eq!(
            call.recompute(Some(&table())),
            Recomputed::Unknown(Unknown::Unspelt)
        );
    }
}

#[test]
fn a_usage_beyond_any_amount_leaves_the_estimate() {
    let call = settled(u64::MAX, u64::MAX, 500);
    assert_eq!(call.recompute(Some(&table())), Recomputed::Estimate);
}

proptest! {
    /// The charge of each usage, tier, search and lifetime follows from the record; one nano more or less does not.
    #[test]
    fn every_charge_follows_from_its_record(
        tokens in prop::array::uniform9(0..50_000_u64),
        asked in prop::option::of(prop::sample::select(vec!["flex", "default", "unknown"])),
        reported in prop::option::of(prop::sample::select(vec!["flex", "default", "unknown"])),
        web_search: bool,
        long_cache: bool,
    ) {
        let [input, cached, written, written_12h, written_30m, sound, output, spoken, reasoning] = tokens;
        let usage = Usage {
            prompt_tokens: input,
            completion_tokens: output,
            cached_tokens: cached,
            cache_write_tokens: written,
            cache_write_12h_tokens: written_12h,
            cache_write_30m_tokens: written_30m,
            prompt_audio_tokens: sound,
            completion_audio_tokens: spoken,
            reasoning_tokens: reasoning,
        };
        let (table, served) = (table(), ServedCall {
            model: "lab",
            tier_asked: asked,
            tier_reported: reported,
            usage: &usage,
            web_search,
            long_cache,
        });
        let actual = table.actual_cost(&served).unwrap();
        let mut call = settled(input, output, actual.cost.get());
        call.measures.cached_tokens = Some(cached);
        call.measures.billing = Billing {
            tier_asked: asked.map(str::to_owned),
            tier_reported: reported.map(str::to_owned),
            reasoning_tokens: reasoning,
            cache_write_tokens: written,
            cache_write_12h_tokens: written_12h,
            cache_write_30m_tokens: written_30m,
            audio_input_tokens: sound,
            audio_output_tokens: spoken,
            web_search: actual.web_search,
            long_cache,
            ..Billing::default()
        };
        prop_assert_eq!(call.recompute(Some(&table)), Recomputed::Same);
        call.cost = Nanos::from_stored(actual.cost.get() + 1);
        prop_assert_eq!(call.recompute(Some(&table)), Recomputed::Different(actual.cost));
    }
}
