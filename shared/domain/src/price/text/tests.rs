//! Reading the table: versions follow the content, and refusals name the model and the field.

use crate::price::PriceTable;
use crate::price::import::{OPENAI, import_litellm};
use crate::price::tests::builtin;
use proptest::prelude::*;

/// Returns a table with one model; `figures` are the keys of its entry.
fn one_model(figures: &str) -> String {
    format!(
        "auto_tier = \"default\"\n[allowances]\nimage_tokens = 1\naudio_tokens = 1\nfile_tokens = 1\n\
         [models.\"m\"]\n{figures}\n"
    )
}

const PLAIN: &str = "rates.standard = { input = \"1\", output = \"2\" }";

#[test]
fn versions_follow_the_content() {
    let version = |figures: &str| {
        PriceTable::from_toml(&one_model(figures))
            .unwrap()
            .version()
            .to_owned()
    };
    let plain = version(PLAIN);
    assert!(
        plain.len() == 16 && plain.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{plain}"
    );
    assert_eq!(
        plain,
        version("# a remark\nrates.standard = { output = \"2.00\", input = \"1.0\" }")
    );
    for other in [
        "rates.standard = { input = \"1\", output = \"2.000001\" }".to_owned(),
        format!("{PLAIN}\naliases = [\"n\"]"),
        format!("{PLAIN}\nimage_tokens = 2"),
        format!("{PLAIN}\nrates.flex = {{ input = \"1\", output = \"2\" }}"),
    ] {
        assert_ne!(plain, version(&other), "{other}");
    }
    let text = one_model(PLAIN).replace("\"default\"", "\"flex\"");
    assert_ne!(plain, PriceTable::from_toml(&text).unwrap().version());
}

#[test]
fn refusals_name_the_model_and_the_field() {
    for (figures, complaint) in [
        (
            "rates.standard = { input = \"x\", output = \"2\" }",
            "price \"x\" is no decimal number",
        ),
        (
            "rates.standard = { input = \"1\", output = \"0.0000001\" }",
            "is finer than a pico-USD",
        ),
        (
            "rates.standard = { input = \"-1\", output = \"2\" }",
            "is negative",
        ),
        (
            "rates.standard = { input = \"2000000000\", output = \"2\" }",
            "is implausibly large",
        ),
        ("rates.standard = { input = 1.5, output = \"2\" }", "input"),
        ("rates.standard = { input = \"1\" }", "output"),
        (
            "rates.standard = { input = \"1\", output = \"2\", outptu = \"2\" }",
            "outptu",
        ),
        (
            "rates.flex = { input = \"1\", output = \"2\" }",
            "`rates` must have `standard`",
        ),
        ("image_tokens = 5", "rates"),
        (
            &format!("{PLAIN}\nrates.auto = {{ input = \"1\", output = \"2\" }}"),
            "must not have `auto`",
        ),
        (
            &format!("{PLAIN}\nlong_context_above = 5"),
            "`long_context_above` and `long_context.standard`",
        ),
        (
            &format!(
                "{PLAIN}\nlong_context_above = 5\nlong_context.standard = {{ input = \"1\", output = \"2\" }}\n\
                 long_context.flex = {{ input = \"1\", output = \"2\" }}"
            ),
            "`long_context.flex` has no `rates.flex`",
        ),
        (&format!("{PLAIN}\naliases = [\"a b\"]"), "`aliases` must be"),
        (
            &format!("{PLAIN}\naliases = [\"m\"]"),
            "`aliases` has `m`, which is already a name",
        ),
        (
            &format!("{PLAIN}\naliases = [\"n\", \"n\"]"),
            "`aliases` has `n`, which is already a name",
        ),
        (&format!("{PLAIN}\nimage_tokens = -1"), "image_tokens"),
        (&format!("{PLAIN}\nprice = 1"), "price"),
        (
            &format!("{PLAIN}\nweb_search = \"1e-13\""),
            "is finer than a pico-USD",
        ),
    ] {
        let error = PriceTable::from_toml(&one_model(figures))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("model `m`: ") && error.contains(complaint),
            "{figures}\n{error}"
        );
    }
    let error = PriceTable::from_toml(&one_model("rates.standard = { input = \"x\", output = \"2\" }"));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("rates.standard.input"),
        "the field is named: {error}"
    );
}

#[test]
fn refusals_outside_the_models() {
    let good = one_model(PLAIN);
    assert!(PriceTable::from_toml(&good).is_ok());
    for (text, complaint) in [
        (String::new(), "cannot be read"),
        (good.replace("auto_tier", "auto_teir"), "cannot be read"),
        (format!("{good}[models.\"m\"]\n{PLAIN}"), "cannot be read"),
        (
            good.replace("\"default\"", "\"auto\""),
            "`auto_tier` must name the tier",
        ),
        (
            good.replace("[models.\"m\"]", "[models.\"m m\"]"),
            "model `m m`: the name must be",
        ),
        (
            good.replace("[allowances]", "tier_aliases = { \"a b\" = \"c\" }\n[allowances]"),
            "`tier_aliases` must be",
        ),
        (
            format!("{}\n[models]", good.split("[models").next().unwrap()),
            "`models` must have at least one",
        ),
    ] {
        let error = PriceTable::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(complaint), "{text}\n{error}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(auto_tier = \"default\"\n)?[\\[\\]a-z.\"={}0-9 \n]{0,60}") {
        let _ = PriceTable::from_toml(&text);
    }
}

#[test]
fn a_table_is_read_back_from_its_text() {
    let table = PriceTable::builtin().unwrap();
    let text = table.to_text().unwrap();
    let read = PriceTable::from_text(table.version(), &text).unwrap();
    assert_eq!(
        (read.version(), read.to_text().unwrap()),
        (table.version(), text.clone())
    );
    // As an earlier release may have written it: the version stays that of its text.
    let spaced = text.replacen('{', "{ ", 1);
    let version = super::version_of(&spaced);
    assert_eq!(
        PriceTable::from_text(&version, &spaced).unwrap().version(),
        version
    );
    assert!(PriceTable::is_version(table.version()));
    for version in [
        "",
        "0123456789abcde",
        "0123456789abcdefa",
        "0123456789ABCDEF",
        "0123456789abcdeg",
    ] {
        assert!(!PriceTable::is_version(version), "{version}");
    }
    let other = text.replacen("\"default\"", "\"flex\"", 1);
    let wrong = PriceTable::from_text(table.version(), &other).unwrap_err();
    assert!(wrong.to_string().contains(table.version()), "{wrong}");
    assert!(PriceTable::from_text(&super::version_of("{}"), "{}").is_err());
}

/// An edge archives the table in force (D48), and imports have figures for what are aliases.
#[test]
fn a_table_with_imported_snapshots_is_read_back() {
    let aliases = builtin()
        .models()
        .filter(|name| builtin().known(name).unwrap().name() != *name);
    let all: Vec<&str> = aliases.chain(["gpt-4o"]).collect();
    assert!(all.contains(&"gpt-4o-2024-08-06"), "{all:?}");
    let entry = r#"{"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-6}"#;
    for names in [&["gpt-4o", "gpt-4o-2024-08-06"][..], &all] {
        let entries: Vec<String> = names.iter().map(|name| format!("\"{name}\": {entry}")).collect();
        let overlay = import_litellm(&format!("{{{}}}", entries.join(",")), OPENAI)
            .unwrap()
            .overlay;
        let table = PriceTable::merge(builtin(), &overlay).unwrap();
        let text = table.to_text().unwrap();
        let read = PriceTable::from_text(table.version(), &text).unwrap();
        assert_eq!(read.to_text().unwrap(), text);
        for name in names {
            let price = |table: &PriceTable| format!("{:?}", table.known(name).unwrap());
            assert_eq!(price(&read), price(&table), "{name}");
        }
    }
}
