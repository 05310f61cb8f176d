//! Tests of the configuration: defaults, overrides, and one clear line for each mistake.

use super::*;
use secrecy::ExposeSecret as _;

fn from(text: &str) -> Result<Settings, BadSettings> {
    load_from(Some(text), std::iter::empty())
}

fn from_env(name: &str, value: &str) -> Result<Settings, BadSettings> {
    load_from(None, std::iter::once((name.to_owned(), value.to_owned())))
}

#[test]
fn the_defaults_are_those_of_the_operating_contract() {
    let settings = load_from(None, std::iter::empty()).unwrap();
    assert_eq!(settings.store.url.expose_secret(), "redis://127.0.0.1:6379");
    assert_eq!(settings.store.max_clock_difference_ms, 300_000);
    assert_eq!(default_max_clock_difference_ms(), 300_000);
    assert_eq!(settings.proxy.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.proxy.max_body_bytes, 32 << 20);
    assert_eq!(settings.upstream.timeout_ms, 100_000);
    assert_eq!(settings.webhooks.retry_delays_ms, [2000, 4000]);
    assert_eq!(settings.public_url(), "http://127.0.0.1:8081");
    assert_eq!(settings.edge_url(), "http://127.0.0.1:8080");
    assert_eq!(settings.idempotency_life().as_secs(), 30 * 86_400);
    assert_eq!(settings.session_idle().as_secs(), 3600);
    assert_eq!(settings.session_life().as_secs(), 12 * 3600);
    assert_eq!(settings.telemetry.otlp_endpoint, "");
    let proxy = &settings.proxy;
    let beyond_the_specification = [
        proxy.streaming,
        proxy.responses,
        proxy.embeddings,
        proxy.stream_extend,
        proxy.stop_frozen_streams,
    ];
    assert_eq!(beyond_the_specification, [false; 5]);
}

#[test]
fn a_line_that_is_no_setting_is_not_repeated() {
    let pasted = from("[secrets]\nq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83v0SNFZ4k=\n");
    let message = pasted.unwrap_err().to_string();
    assert!(
        message.starts_with("line 2: ") && !message.contains("q83v"),
        "{message}"
    );
}

#[test]
fn the_environment_wins_over_the_file() {
    let env = [
        ("TOLLGATE_STORE__TIMEOUT_MS", "7"),
        (
            "TOLLGATE_NETWORK__TRUSTED_PROXIES",
            "10.0.0.0/8, ::1/128, ::ffff:192.0.2.7/120, 198.51.100.7",
        ),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = load_from(Some("[store]\ntimeout_ms = 5\n"), env.into_iter()).unwrap();
    assert_eq!(settings.store.timeout_ms, 7);
    let trusted = settings.network.trusted_proxies;
    assert_eq!(
        trusted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.0.0.0/8", "::1/128", "192.0.2.0/24", "198.51.100.7/32"]
    );
}

#[test]
fn a_range_of_all_addresses_is_warned_of() {
    let warning = |ranges: &str| {
        let text = format!("[network]\ntrusted_proxies = [{ranges}]\n");
        from(&text).unwrap().trusted_proxies_warning()
    };
    for range in ["\"0.0.0.0/0\"", "\"10.0.0.0/8\", \"::/0\""] {
        let warning = warning(range).unwrap();
        assert!(warning.contains("network.trusted_proxies"), "{warning}");
    }
    assert_eq!(warning("\"10.0.0.0/8\", \"::1\""), None);
}

#[test]
fn every_mistake_is_one_line_that_names_the_key() {
    for (error, named) in [
        (from("[stor]\n").unwrap_err(), "`stor`"),
        (from("[store]\nurk = 1\n").unwrap_err(), "`store.urk`"),
        (
            from("[network]\ntrusted_proxies = [\"10.0.0\"]\n").unwrap_err(),
            "`10.0.0` is neither an IP address nor a range such as 10.0.0.0/8",
        ),
        (
            from("[store]\ntimeout_ms = \"x\"\n").unwrap_err(),
            "`store.timeout_ms`",
        ),
        (
            from("[sessions]\nidle_minutes = 61\nabsolute_hours = 1\n").unwrap_err(),
            "`sessions.idle_minutes`",
        ),
        (
            from_env("TOLLGATE_SESSIONS__IDLE_MINUTES", "0").unwrap_err(),
            "`sessions.idle_minutes`",
        ),
        (
            from("[telemetry]\nsample_ratio = 1.5\n").unwrap_err(),
            "`telemetry.sample_ratio`",
        ),
        (
            from_env("TOLLGATE_TELEMETRY__SAMPLE_RATIO", "half").unwrap_err(),
            "TOLLGATE_TELEMETRY__SAMPLE_RATIO",
        ),
        // A malformed address, or any at all in a build that cannot export.
        (
            from_env("TOLLGATE_TELEMETRY__OTLP_ENDPOINT", "localhost:4318").unwrap_err(),
            "`telemetry.otlp_endpoint`",
        ),
        (from("[store\n").unwrap_err(), "line 1"),
        // A mistake at the beginning of a line.
        (from("[store]\n\n\n]\n").unwrap_err(), "line 4: "),
        (
            from("[store]\ntimeout_ms = 5\ntimeout_ms = 6\n").unwrap_err(),
            "line 3: `timeout_ms`: duplicate key",
        ),
        (
            from("[store]\ntimeout_ms = 99999999999999999999\n").unwrap_err(),
            "line 2: `timeout_ms`: the number has more than 64 bits",
        ),
        (
            from("[store]\ntimeout_ms = 99999999999999999999999999999999999999999\n").unwrap_err(),
            "line 2: `timeout_ms`: ",
        ),
        (
            from("[proxy]\nlisten = \"nowhere\"\n").unwrap_err(),
            "\"nowhere\" is not IP:PORT, such as 127.0.0.1:8080 (in `proxy.listen`)",
        ),
        (
            from_env("TOLLGATE_ADMIN__OPS_LISTEN", "localhost:9091").unwrap_err(),
            "\"localhost:9091\" is not IP:PORT",
        ),
        (
            from("[upstream]\nbase_url = \"ftp://x\"\n").unwrap_err(),
            "`upstream.base_url`",
        ),
        (
            from("[upstream]\nbase_url = \"https://a/v1#x\"\n").unwrap_err(),
            "`upstream.base_url` must not have a fragment",
        ),
        (
            from("[upstream]\nbase_url = \"http://127.0.0.1:82070/v1\"\n").unwrap_err(),
            "`upstream.base_url` must have a port from 1 to 65535",
        ),
        (
            from("[upstream]\nbase_url = \"http://[::1]:0/v1\"\n").unwrap_err(),
            "`upstream.base_url` must have a port from 1 to 65535",
        ),
        (
            from("[upstream]\nprovider = \"\"\n").unwrap_err(),
            "`upstream.provider`",
        ),
        (
            from_env("TOLLGATE_UPSTREAM__PROVIDER", "a b").unwrap_err(),
            "`upstream.provider`",
        ),
        (
            from("[upstream]\nprovider = \"OpenAI\"\n").unwrap_err(),
            "`upstream.provider`",
        ),
        (
            from_env("TOLLGATE_UPSTREAM__PROVIDER", &"a".repeat(41)).unwrap_err(),
            "`upstream.provider`",
        ),
        (
            from_env("TOLLGATE_STORE__URK", "1").unwrap_err(),
            "TOLLGATE_STORE__URK",
        ),
        (
            from_env("TOLLGATE_STORE__TIMEOUT_MS", "soon").unwrap_err(),
            "TOLLGATE_STORE__TIMEOUT_MS",
        ),
    ] {
        let text = error.to_string();
        assert!(text.contains(named) && !text.contains('\n'), "{named}: {text:?}");
    }
}

/// Covers every setting with a name of a duration: an unbounded one could overflow into a deadline in the past.
#[test]
fn every_duration_has_an_upper_bound() {
    let defaults: toml::Table = include_str!("../../../config/tollgate.toml").parse().unwrap();
    let mut durations = 0;
    for (section, keys) in &defaults {
        for (key, default) in keys.as_table().unwrap() {
            let units = ["_ms", "_hours", "_days", "_minutes"];
            if !units.iter().any(|unit| key.ends_with(unit)) {
                continue;
            }
            durations += 1;
            let text = match default.is_array() {
                true => format!("[{section}]\n{key} = [1, {}]\n", i64::MAX),
                false => format!("[{section}]\n{key} = {}\n", i64::MAX),
            };
            let error = from(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{section}.{key}`")), "{text}: {error}");
        }
    }
    assert!(durations >= 20, "only {durations}");
    let named = |timeout_ms: u64| {
        from(&format!(
            "[upstreams.a]\nbase_url = \"https://a\"\nmodels = [\"*\"]\ntimeout_ms = {timeout_ms}\n"
        ))
    };
    assert!(named(604_800_000).is_ok());
    let error = named(604_800_001).unwrap_err().to_string();
    assert_eq!(error, "`upstreams.a.timeout_ms` must be from 1 to 604800000");
    let most = from("[proxy]\nstream_total_ms = 604800000\nstream_drain_ms = 604800000\n").unwrap();
    assert_eq!(most.stream_life().as_secs(), 14 * 24 * 3600);
}

/// The private key belongs to the edge: the admin server and the command line only know the certificate.
#[test]
fn a_certificate_without_its_key_is_fine_for_programs_that_do_not_serve_it() {
    let settings = from("[proxy]\ntls_cert = \"gate.crt\"\n").unwrap();
    assert_eq!(settings.edge_url(), "https://127.0.0.1:8080");
}

#[test]
fn a_missing_named_file_is_an_error() {
    let error = load(Some(std::path::Path::new("/nonexistent/tollgate.toml"))).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/tollgate.toml"));
}

#[test]
fn the_master_key_is_required_and_never_printed() {
    assert!(from("").unwrap().keyring().is_err());
    let settings = from_env("TOLLGATE_SECRETS__MASTER_KEY", "c2VjcmV0LXNlY3JldA==").unwrap();
    let error = settings.keyring().unwrap_err().to_string();
    assert!(!error.contains("c2Vj"), "{error}");
    assert!(!format!("{settings:?}").contains("c2Vj"));
}

#[test]
fn a_drain_that_is_shorter_than_a_call_is_warned_of() {
    let warning = |text: &str| from(text).unwrap().drain_warning();
    assert_eq!(warning(""), None);
    assert_eq!(warning("[proxy]\ndrain_ms = 100000\n"), None);
    let line = warning("[proxy]\ndrain_ms = 99999\n").unwrap();
    assert!(
        line.starts_with("proxy.drain_ms (99999) is less than upstream.timeout_ms (100000)"),
        "{line}"
    );
    let named = "[upstreams.slow]\nbase_url = \"https://a\"\nmodels = [\"*\"]\ntimeout_ms = 110001\n";
    let line = warning(named).unwrap();
    assert!(line.contains("upstreams.slow.timeout_ms (110001)"), "{line}");
}

#[test]
fn the_address_of_the_store_can_stand_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("url");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        from_env("TOLLGATE_STORE__URL_FILE", &file.display().to_string())
    };
    let settings = read("redis://edge:secret@10.0.0.5:6379\n").unwrap();
    assert_eq!(
        settings.store.url.expose_secret(),
        "redis://edge:secret@10.0.0.5:6379"
    );
    for text in ["", "\n", "redis://a\nredis://secret\n"] {
        let error = read(text).unwrap_err().to_string();
        assert!(
            error.starts_with("store.url_file") && !error.contains("secret"),
            "{error}"
        );
    }
    let missing = from_env("TOLLGATE_STORE__URL_FILE", "/nowhere/url").unwrap_err();
    assert!(
        missing.to_string().starts_with("store.url_file /nowhere/url:"),
        "{missing}"
    );
}
