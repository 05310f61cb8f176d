//! `telemetry.otlp_endpoint` and `telemetry.otlp_headers`: the collector of spans.

use crate::TelemetrySettings;
use crate::upstreams::has_valid_port;
use http::Uri;
use http::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret;

/// Path of a collector's traces, after its base address.
const PATH: &str = "/v1/traces";

/// A collector of spans.
pub struct Collector {
    /// URL path.
    pub uri: Uri,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port of the collector.
    pub port: u16,
    /// Headers of each request; they may be secret.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector")
            .field("authority", &self.authority())
            .finish_non_exhaustive()
    }
}

impl Collector {
    /// Returns the configured collector; `None` if none is configured.
    ///
    /// # Errors
    /// One line that names the setting, never a header's value.
    pub fn from_settings(settings: &TelemetrySettings) -> Result<Option<Self>, String> {
        let base = settings.otlp_endpoint.trim_end_matches('/');
        if base.is_empty() {
            return Ok(None);
        }
        let bad = || {
            "`telemetry.otlp_endpoint` must be http:// or https:// with a host, such as http://127.0.0.1:4318"
                .to_owned()
        };
        let uri: Uri = format!("{base}{PATH}").parse().map_err(|_| bad())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(bad)?;
        let plain_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(bad()),
        };
        if authority.as_str().contains('@') || uri.query().is_some() || !has_valid_port(base) {
            return Err(bad());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(plain_port);
        Ok(Some(Self {
            headers: headers(settings.otlp_headers.expose_secret())?,
            uri,
            host,
            port,
        }))
    }

    /// Returns whether it uses TLS.
    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Returns host and port, for the log.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }
}

/// `name=value,name=value`
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let bad =
        || "`telemetry.otlp_headers` must be name=value, several of them with commas between".to_owned();
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(bad)?;
            let name = name.trim().parse().map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
            value.set_sensitive(true);
            Ok((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(url: &str, headers: &str) -> Result<Option<Collector>, String> {
        Collector::from_settings(&TelemetrySettings {
            otlp_endpoint: url.to_owned(),
            otlp_headers: headers.to_owned().into(),
            sample_ratio: 1.0,
        })
    }

    #[test]
    fn a_base_address_becomes_the_address_of_traces() {
        assert!(collector("", "").unwrap().is_none());
        for (url, host, port, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1", 4318, "/v1/traces"),
            ("https://otel.example/", "otel.example", 443, "/v1/traces"),
            ("http://[::1]/otlp", "::1", 80, "/otlp/v1/traces"),
        ] {
            let found = collector(url, "").unwrap().unwrap();
            assert_eq!(
                (found.host.as_str(), found.port, found.uri.path()),
                (host, port, path)
            );
            assert_eq!(found.is_https(), url.starts_with("https"));
        }
    }

    #[test]
    fn mistakes_name_the_key_and_not_the_secret() {
        for bad in [
            "127.0.0.1:4318",
            "ftp://x",
            "http://",
            "http://u:p@x",
            "http://x/?a=b",
            "http://x:99999",
        ] {
            assert!(
                collector(bad, "")
                    .unwrap_err()
                    .contains("telemetry.otlp_endpoint"),
                "{bad}"
            );
        }
        for bad in ["secret", "a b=secret", "a=sec\nret"] {
            let error = collector("http://x", bad).unwrap_err();
            assert!(
                error.contains("telemetry.otlp_headers") && !error.contains("sec"),
                "{error}"
            );
        }
        let good = collector("http://x", "authorization=Bearer x, x-team = 7")
            .unwrap()
            .unwrap();
        assert_eq!(good.headers.len(), 2);
        assert_eq!(good.headers[1].1, "7");
        assert!(!format!("{good:?}").contains("Bearer"));
    }
}
