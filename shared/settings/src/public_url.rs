//! The addresses that people and programs use for a server (`admin.public_url`, `proxy.public_url`), normalized, so
//! that checks for `https://` can compare text.

use crate::upstreams::has_valid_port;
use crate::{BadSettings, Settings};
use http::Uri;

/// Validates both addresses.
///
/// # Errors
/// [`BadSettings`] for an invalid address.
pub(crate) fn check(settings: &Settings) -> Result<(), BadSettings> {
    let urls = [
        ("admin.public_url", &settings.admin.public_url),
        ("proxy.public_url", &settings.proxy.public_url),
    ];
    match urls
        .iter()
        .find(|(_, url)| !url.is_empty() && normalized(url).is_none())
    {
        None => Ok(()),
        Some((key, _)) => Err(BadSettings(format!(
            "`{key}` must be an address that begins with https:// or http://, without credentials and query"
        ))),
    }
}

/// Returns the address with scheme and host in lower case and without a slash at its end; `None` for any other text.
pub(crate) fn normalized(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let authority = uri.authority()?.as_str().to_ascii_lowercase();
    let is_plain = !authority.contains('@') && uri.query().is_none() && !url.contains('#');
    let is_host = uri.host().is_some_and(|host| !host.is_empty());
    let is_http = matches!(scheme.as_str(), "https" | "http");
    let is_address = is_http && is_host && is_plain && has_valid_port(url);
    is_address.then(|| format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_from;

    fn loaded(section: &str, url: &str) -> Result<Settings, BadSettings> {
        let variable = (format!("TOLLGATE_{section}__PUBLIC_URL"), url.to_owned());
        load_from(None, std::iter::once(variable))
    }

    #[test]
    fn an_address_has_one_form() {
        for (url, form) in [
            ("HTTPS://Gate.Example.com/", "https://gate.example.com"),
            (
                "https://gate.example.com:8443/Tollgate//",
                "https://gate.example.com:8443/Tollgate",
            ),
            ("Http://127.0.0.1:8081", "http://127.0.0.1:8081"),
            ("http://[::1]:8081", "http://[::1]:8081"),
        ] {
            assert_eq!(loaded("ADMIN", url).unwrap().public_url(), form);
            assert_eq!(loaded("PROXY", url).unwrap().edge_url(), form);
        }
    }

    #[test]
    fn an_invalid_address_stops_the_start() {
        for url in [
            "gate.example.com",
            "ftp://gate.example.com",
            "https://",
            "https:/gate.example.com",
            " https://gate.example.com",
            "https://user:secret@gate.example.com",
            "https://gate.example.com/?a=b",
            "https://gate.example.com/#a",
            "https://gate example.com",
            "https://gate.example.com:99999",
            "https://gate.example.com:0",
        ] {
            for section in ["ADMIN", "PROXY"] {
                let error = loaded(section, url).map(drop).unwrap_err().to_string();
                let key = format!("`{}.public_url`", section.to_lowercase());
                assert!(error.contains(&key) && !error.contains("secret"), "{error}");
            }
        }
        loaded("ADMIN", "").unwrap();
    }
}
