//! Tests of `[upstreams]`: order, inheritance, the environment, and one clear line for each mistake.

use super::read::PREFIX_MAX;
use super::{NAME_MAX, PATTERNS_MAX, UPSTREAMS_MAX};
use crate::upstreams::{Auth, StreamUsage};
use crate::{BadSettings, Settings, load_from};
use domain::price::USAGE_TOKENS_MAX;

const TWO: &str = r#"
[upstream]
timeout_ms = 7000
forward_headers = ["X-Team"]

[upstreams.zeta]
base_url = "https://zeta.example"
models = ["gpt-4*", "o3"]
auth = "api-key"
chat_path = "/openai/deployments/{model}/chat/completions"
query = "api-version=2024-10-21"
timeout_ms = 5000
reported_cost = true
billed_statuses = [400, 408]
usage_tokens_max = 1
stream_usage = "unasked"

[upstreams.alpha]
base_url = "http://127.0.0.1:11434/v1"
models = ["*"]
key_prefix = "gsk_"
price_prefix = ""
forward_headers = []
"#;

fn from(text: &str) -> Result<Settings, BadSettings> {
    load_from(Some(text), std::iter::empty())
}

fn with_env(text: &str, env: &[(&str, &str)]) -> Result<Settings, BadSettings> {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    load_from(Some(text), env)
}

fn names(settings: &Settings) -> Vec<&str> {
    settings
        .upstreams
        .all()
        .iter()
        .map(|upstream| &*upstream.name)
        .collect()
}

#[test]
fn without_the_section_there_is_one_upstream() {
    let settings = from("").unwrap();
    assert!(settings.upstreams.all().is_empty());
    let providers = settings.providers();
    let served = providers.serving("gpt-4o");
    assert_eq!(
        (served.upstream, served.provider, served.price_prefix),
        (None, "openai", "")
    );
    assert!(served.reports_tier());
    assert_eq!(providers.names().collect::<Vec<_>>(), ["openai"]);
}

#[test]
fn the_order_of_the_file_decides_and_the_rest_is_inherited() {
    let settings = from(TWO).unwrap();
    assert_eq!(names(&settings), ["zeta", "alpha"]);
    let [zeta, alpha] = settings.upstreams.all() else {
        panic!()
    };
    assert_eq!((zeta.auth, alpha.auth), (Auth::ApiKey, Auth::Bearer));
    assert_eq!((zeta.timeout_ms, alpha.timeout_ms), (5000, 7000));
    assert_eq!(zeta.forward_headers, ["X-Team"]);
    assert!(alpha.forward_headers.is_empty());
    assert!(zeta.reported_cost && !alpha.reported_cost, "not inherited");
    assert_eq!(zeta.billed_statuses, [400, 408]);
    assert!(alpha.billed_statuses.is_empty());
    assert_eq!(
        [
            zeta.usage_tokens_max,
            alpha.usage_tokens_max,
            settings.upstream.usage_tokens_max
        ],
        [1, USAGE_TOKENS_MAX, USAGE_TOKENS_MAX],
        "not inherited"
    );
    assert_eq!(
        [
            zeta.stream_usage,
            alpha.stream_usage,
            settings.upstream.stream_usage
        ],
        [StreamUsage::Unasked, StreamUsage::Ask, StreamUsage::Ask]
    );
    assert_eq!(
        zeta.chat_path.for_model("gpt-4o"),
        "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(
        zeta.embeddings_path.for_model("m"),
        "/embeddings?api-version=2024-10-21"
    );
    assert_eq!(alpha.responses_path.for_model("m"), "/responses");
    assert_eq!((&*zeta.price_prefix, &*alpha.price_prefix), ("zeta/", ""));

    let providers = settings.providers();
    let upstream_of = |model| providers.serving(model).upstream;
    assert_eq!(upstream_of("gpt-4o"), Some("zeta"), "both match");
    assert!(!providers.serving("gpt-4o").reports_tier());
    assert_eq!(upstream_of("o3-mini"), Some("alpha"));
    // A name that is not a path segment is left to the next upstream, whose path does not contain the model.
    assert_eq!(upstream_of("gpt-4/../x"), Some("alpha"));
    assert_eq!(upstream_of(&"x".repeat(257)), None);
    assert_eq!(providers.names().collect::<Vec<_>>(), ["openai", "zeta", "alpha"]);
}

#[test]
fn keys_start_as_their_upstream_says() {
    let providers = from(TWO).unwrap().providers();
    for (provider, prefix) in [
        ("openai", "sk-"),
        ("zeta", ""),
        ("alpha", "gsk_"),
        ("other", "sk-"),
    ] {
        assert_eq!(providers.key_prefix(provider), prefix, "{provider}");
    }
    let named = "[upstream]\nprovider = \"azure\"\n\
        [upstreams.openai]\nbase_url = \"https://api.openai.example/v1\"\nmodels = [\"*\"]\n";
    let providers = from(named).unwrap().providers();
    assert_eq!(
        (providers.key_prefix("openai"), providers.key_prefix("azure")),
        ("sk-", "sk-")
    );
    let project = format!("{named}key_prefix = \"sk-proj-\"\n");
    assert_eq!(
        from(&project).unwrap().providers().key_prefix("openai"),
        "sk-proj-"
    );
}

#[test]
fn the_environment_changes_upstreams_and_adds_some() {
    let env = [
        ("TOLLGATE_UPSTREAMS__ZETA__BASE_URL", "https://other.example"),
        ("TOLLGATE_UPSTREAMS__ZETA__TIMEOUT_MS", "9"),
        ("TOLLGATE_UPSTREAMS__B__MODELS", "llama-*, 4"),
        ("TOLLGATE_UPSTREAMS__B__BASE_URL", "http://b.example"),
        ("TOLLGATE_UPSTREAMS__A__B__BASE_URL", "http://a.example"),
        ("TOLLGATE_UPSTREAMS__A__B__MODELS", "4"),
        ("TOLLGATE_UPSTREAM__TIMEOUT_MS", "11"),
    ];
    let settings = with_env(TWO, &env).unwrap();
    assert_eq!(names(&settings), ["zeta", "alpha", "a__b", "b"]);
    let [zeta, alpha, a, b] = settings.upstreams.all() else {
        panic!()
    };
    assert_eq!((&*zeta.base_url, zeta.timeout_ms), ("https://other.example", 9));
    assert_eq!(
        (alpha.timeout_ms, b.timeout_ms),
        (11, 11),
        "the environment's is inherited too"
    );
    assert!(a.serves("4") && b.serves("4") && b.serves("llama-3"));
}

#[test]
fn times_of_streams_are_those_of_the_proxy_unless_the_upstream_has_its_own() {
    let times = |line: &str, env: &[(&str, &str)]| {
        let text = format!(
            "[upstreams.a]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n{line}\n[upstream]\ntimeout_ms = 8\n"
        );
        let settings = with_env(&text, env).unwrap();
        let [one] = settings.upstreams.all() else { panic!() };
        (one.timeout_ms, one.stream_first_byte_ms, one.stream_idle_ms)
    };
    assert_eq!(times("", &[]), (8, None, None));
    assert_eq!(times("timeout_ms = 8", &[]), (8, Some(8), None));
    assert_eq!(
        times(
            "timeout_ms = 9\nstream_first_byte_ms = 4\nstream_idle_ms = 5",
            &[]
        ),
        (9, Some(4), Some(5))
    );
    let env = [
        ("TOLLGATE_UPSTREAMS__A__TIMEOUT_MS", "7"),
        ("TOLLGATE_UPSTREAMS__A__STREAM_IDLE_MS", "6"),
    ];
    assert_eq!(times("", &env), (7, Some(7), Some(6)));
}

#[test]
fn every_mistake_names_its_key() {
    let one = |line: &str| format!("[upstreams.a]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n{line}\n");
    let many: String = (0..=UPSTREAMS_MAX)
        .map(|n| format!("[upstreams.u{n}]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n"))
        .collect();
    let long_name = "x".repeat(NAME_MAX + 1);
    let too_many: Vec<String> = (0..=PATTERNS_MAX).map(|n| format!("\"m{n}\"")).collect();
    let models = |list: &str| format!("[upstreams.a]\nbase_url = \"http://a\"\nmodels = {list}\n");
    for (text, named) in [
        ("upstreams = 1\n".to_owned(), "`upstreams` must be a section"),
        ("[upstreams]\na = 1\n".to_owned(), "`upstreams.a` must be a section"),
        ("[upstreams.Azure]\n".to_owned(), "`upstreams.Azure`"),
        (format!("[upstreams.{long_name}]\n"), &format!("`upstreams.{long_name}`")),
        ("[upstreams.a]\nmodels = [\"*\"]\n".to_owned(), "`upstreams.a.base_url`"),
        (models("[]"), "`upstreams.a.models`"),
        (models("[1]"), "`upstreams.a.models`"),
        (models("[\"a b\"]"), "`upstreams.a.models`"),
        (models(&format!("[{}]", too_many.join(","))), "`upstreams.a.models`"),
        (one("modles = []"), "`upstreams.a.modles`"),
        (one("timeout_ms = \"x\""), "`upstreams.a.timeout_ms`"),
        (one("timeout_ms = 0"), "`upstreams.a.timeout_ms`"),
        (one("stream_first_byte_ms = 0"), "`upstreams.a.stream_first_byte_ms` must be from 1 to 604800000"),
        (one("stream_idle_ms = \"x\""), "`upstreams.a.stream_idle_ms`"),
        (
            "[upstreams.a]\nbase_url = \"https://a/v1#x\"\nmodels = [\"*\"]\n".to_owned(),
            "`upstreams.a.base_url` must not have a fragment",
        ),
        (
            "[upstreams.a]\nbase_url = \"https://a:99999\"\nmodels = [\"*\"]\n".to_owned(),
            "`upstreams.a.base_url` must have a port from 1 to 65535",
        ),
        (one("auth = \"basic\""), "`upstreams.a.auth`"),
        (one("chat_path = \"chat\""), "`upstreams.a.chat_path`"),
        (one("responses_path = \"/{x}\""), "`upstreams.a.responses_path`"),
        (one("embeddings_path = \"/a?b\""), "`upstreams.a.embeddings_path`"),
        (one("query = \"?a=b\""), "`upstreams.a.query`"),
        (one("key_prefix = \"a b\""), "`upstreams.a.key_prefix`"),
        (one("price_prefix = \"é\""), "`upstreams.a.price_prefix`"),
        (one("forward_headers = [1]"), "`upstreams.a.forward_headers`"),
        (one("reported_cost = \"yes\""), "`upstreams.a.reported_cost`"),
        (one("billed_statuses = [399]"), "`upstreams.a.billed_statuses`"),
        (one("billed_statuses = [500]"), "`upstreams.a.billed_statuses`"),
        (one("billed_statuses = [\"4xx\"]"), "`upstreams.a.billed_statuses`"),
        (one("usage_tokens_max = 0"), "`upstreams.a.usage_tokens_max`"),
        (
            one("usage_tokens_max = 1000000001"),
            "`upstreams.a.usage_tokens_max` must be from 1 to 1000000000",
        ),
        (one("usage_tokens_max = \"1\""), "`upstreams.a.usage_tokens_max`"),
        (one("stream_usage = \"never\""), "`upstreams.a.stream_usage`"),
        ("[upstream]\nstream_usage = \"never\"\n".to_owned(), "`stream_usage`"),
        (many, &format!("at most {UPSTREAMS_MAX}")),
        (
            "[upstreams.openai]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n".to_owned(),
            "`upstreams.openai` has the name of `upstream.provider`",
        ),
        (
            "[upstream]\nprovider = \"x\"\n[upstreams.openai]\nbase_url = \"http://a\"\nmodels = [\"*\"]\nkey_prefix = \"gsk_\"\n"
                .to_owned(),
            "`upstreams.openai.key_prefix`",
        ),
    ] {
        let error = from(&text).unwrap_err().to_string();
        assert!(error.contains(named) && !error.contains('\n'), "{text}: {error}");
    }
    for variable in [
        "TOLLGATE_UPSTREAMS__A__TIMEOUT_MS",
        "TOLLGATE_UPSTREAMS__A__MODLES",
        "TOLLGATE_UPSTREAMS__A",
    ] {
        let error = with_env(&one(""), &[(variable, "x")]).unwrap_err().to_string();
        assert!(error.contains(variable), "{error}");
    }
}

#[test]
fn the_bounds_are_reached() {
    let many: String = (0..UPSTREAMS_MAX)
        .map(|n| format!("[upstreams.u{n}]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n"))
        .collect();
    assert_eq!(from(&many).unwrap().upstreams.all().len(), UPSTREAMS_MAX);
    let name = "x".repeat(NAME_MAX);
    let patterns: Vec<String> = (0..PATTERNS_MAX).map(|n| format!("\"m{n}\"")).collect();
    let text = format!(
        "[upstreams.{name}]\nbase_url = \"http://a\"\nmodels = [{}]\n",
        patterns.join(",")
    );
    assert_eq!(from(&text).unwrap().upstreams.all()[0].models.len(), PATTERNS_MAX);
    for key in ["key_prefix", "price_prefix"] {
        let prefixed = |length: usize| {
            let prefix = "x".repeat(length);
            from(&format!(
                "[upstreams.a]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n{key} = \"{prefix}\"\n"
            ))
        };
        assert!(prefixed(PREFIX_MAX).is_ok());
        let error = prefixed(PREFIX_MAX + 1).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// The configurations of the guide, and the commented-out one in the file of defaults.
#[test]
fn the_documented_configurations_are_accepted() {
    const GUIDE: &str = include_str!("../../../../docs/guides/upstreams.md");
    const DEFAULTS: &str = include_str!("../../../../config/tollgate.toml");
    let code = |line: &str| line.trim_start().to_owned() + "\n";
    let blocks = GUIDE
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let blocks: Vec<String> = blocks
        .filter(|block| block.contains("[upstreams."))
        .map(|block| block.lines().map(code).collect())
        .collect();
    assert!(blocks.len() >= 7, "{blocks:?}");
    for block in &blocks {
        let settings = from(block).unwrap_or_else(|error| panic!("{block}: {error}"));
        assert_eq!(settings.upstreams.all().len(), 1, "{block}");
    }
    let all = from(&blocks.concat()).unwrap();
    let providers = all.providers();
    let upstream_of = |model| providers.serving(model).upstream;
    assert_eq!(upstream_of("gpt-4o"), Some("azure"));
    assert_eq!(
        (upstream_of("claude-9"), upstream_of("gpt-5")),
        (Some("anthropic"), None)
    );

    let (_, commented) = DEFAULTS.split_once("# [upstreams.azure]\n").unwrap();
    let (commented, _) = commented.split_once("\n[admin]").unwrap();
    let keys = commented.lines().filter_map(|line| line.strip_prefix("# "));
    let keys: String = keys
        .filter(|line| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')))
        .map(code)
        .collect();
    assert_eq!(keys.lines().count(), 18, "{keys}");
    let settings = from(&format!("[upstreams.azure]\n{keys}")).unwrap();
    let bare = from("[upstreams.azure]\nbase_url = \"http://a\"\nmodels = [\"*\"]\n").unwrap();
    let (shown, bare) = (&settings.upstreams.all()[0], &bare.upstreams.all()[0]);
    assert_eq!(
        (&shown.chat_path, &shown.responses_path),
        (&bare.chat_path, &bare.responses_path)
    );
    assert_eq!(
        (&shown.price_prefix, shown.timeout_ms),
        (&bare.price_prefix, bare.timeout_ms)
    );
    assert_eq!(
        (&shown.embeddings_path, shown.auth),
        (&bare.embeddings_path, bare.auth)
    );
}
