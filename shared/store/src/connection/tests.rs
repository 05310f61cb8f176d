//! Tests of errors about addresses, and of a connection whose other end is gone.

use super::*;

#[test]
fn a_malformed_address_is_answered_with_the_forms_of_one() {
    for url in [
        "ftp://ann:secret@localhost",
        "secret",
        "redis-cluster://secret@a:b",
    ] {
        let error = Store::open(url, SILENCE_MAX).unwrap_err().to_string();
        assert!(
            error.starts_with("store.url must be redis://HOST:PORT"),
            "{url}: {error}"
        );
        assert!(!error.contains("secret"), "{url}: {error}");
    }
}

#[test]
fn a_database_by_number_is_refused() {
    for url in ["redis://localhost:7000/1", "redis+unix:///run/redis.sock?db=3"] {
        let error = Store::open(url, SILENCE_MAX).unwrap_err().to_string();
        assert!(error.starts_with("store.url names a database"), "{url}: {error}");
    }
}

#[test]
fn options_that_the_library_would_pass_over_are_refused() {
    for url in [
        "redis://localhost:7000?db=3",
        "redis://localhost:7000/?protocol=resp3&db=1",
        "rediss://store.example/#insecure",
        "redis+unix:///run/redis.sock?user=ann&password=secret",
        "redis+unix:///run/redis.sock#secret",
        "redis-cluster://a:1,b:2?db=0",
    ] {
        let error = Store::open(url, SILENCE_MAX).unwrap_err().to_string();
        assert!(error.starts_with("store.url has options"), "{url}: {error}");
    }
}

#[test]
fn certificates_without_tls_are_a_mistake_that_names_both_keys() {
    let mut settings = settings::load_from(None, std::iter::empty()).unwrap().store;
    settings.ca_file = "/etc/tollgate/store-ca.crt".into();
    for url in ["redis://:secret@localhost:1", "redis-cluster://a:1,b:2"] {
        settings.url = url.to_owned().into();
        let error = Store::check(&settings).unwrap_err().to_string();
        assert!(
            error.starts_with("store.ca_file is set, and store.url does not begin with rediss://"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
    settings.url = "rediss://localhost:1".to_owned().into();
    let error = Store::check(&settings).unwrap_err().to_string();
    assert!(
        error.starts_with("store.ca_file /etc/tollgate/store-ca.crt: "),
        "{error}"
    );
}

#[test]
fn a_connection_whose_other_end_is_gone_is_given_up() {
    for url in [
        "redis://localhost:1",
        "rediss://localhost:1",
        "redis+unix:///tmp/none",
    ] {
        for roots in [None, Some(Vec::new())] {
            if roots.is_some() && !url.starts_with("rediss") {
                continue;
            }
            let client = client(url, roots).unwrap();
            let tcp = client.get_connection_info().tcp_settings();
            assert_eq!(tcp.user_timeout(), Some(SILENCE_MAX), "{url}");
            assert!(tcp.keepalive().is_some(), "{url}");
        }
    }
}
