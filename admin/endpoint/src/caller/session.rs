//! The session of a request (decisions D9, D55): its cookie, and the proof that one of our pages sent the request.

use crate::admission::Admission;
use crate::problem::{Code, Problem};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use crypto::token::Token;
use domain::mode::Mode;
use std::time::Duration;
use store::sanity::StoreRecord;
use store::session::SessionPlace;
use store::session::script::{InUse, in_use};
use store::versions::AccountVersion;
use subtle::ConstantTimeEq;
use url::Url;

const COOKIE: &str = "tollgate_session";
/// Header with the CSRF token, which only a page that can read our answers knows.
const X_CSRF_TOKEN: &str = "x-csrf-token";
/// Header with the mode of a session's request.
const X_TOLLGATE_MODE: &str = "x-tollgate-mode";
/// Header in which browsers report the site that a request comes from.
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// Longest time between two notes of a session's last use.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// Divisor of a session's maximum idle time: its use is recorded at least this often.
const NOTE_PART: u32 = 10;

/// The session cookie of a request.
#[derive(Debug)]
pub enum SentCookie {
    /// No cookie.
    Nothing,
    /// Several, or one that is malformed.
    Malformed,
    /// Exactly one, well-formed; not yet checked against the store.
    Token(Token),
}

impl SentCookie {
    /// Reads the cookies of a request.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let mut found = Vec::new();
        for line in headers.get_all(header::COOKIE) {
            // Lossy: a line with non-text bytes may still contain a cookie with this name, which counts as sent.
            let line = String::from_utf8_lossy(line.as_bytes());
            for pair in line.split(';') {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                if name.trim() == COOKIE {
                    found.push(value.trim().to_owned());
                }
            }
        }
        match found.as_slice() {
            [] => Self::Nothing,
            [value] => Token::parse(value).map_or(Self::Malformed, Self::Token),
            _ => Self::Malformed,
        }
    }
}

/// Returns the cookie that carries a token.
pub fn cookie(admission: &Admission, token: &Token) -> String {
    format!("{COOKIE}={}; {}", token.expose(), attributes(admission))
}

/// Returns the cookie that removes the session's.
pub fn no_cookie(admission: &Admission) -> String {
    format!("{COOKIE}=; Max-Age=0; {}", attributes(admission))
}

fn attributes(admission: &Admission) -> &'static str {
    if admission.public_url.starts_with("https://") {
        "Path=/; HttpOnly; SameSite=Strict; Secure"
    } else {
        "Path=/; HttpOnly; SameSite=Strict"
    }
}

/// Returns 401 for a session that does not exist or has ended.
pub fn ended(admission: &Admission) -> Problem {
    let message = "This session has ended. Sign in again.";
    Problem::new(Code::SessionRequired, message).header(header::SET_COOKIE, &no_cookie(admission))
}

/// An open session, with the store's own record.
pub(super) struct OpenSession {
    pub(super) found: InUse,
    pub(super) account: String,
    pub(super) record: StoreRecord,
}

/// Looks up the session of a token.
///
/// # Errors
/// 401 if it is not open, 503 if the store is unreachable or cannot be trusted.
pub(super) async fn find(admission: &Admission, token: &Token) -> Result<OpenSession, Problem> {
    let hash = token.hash();
    let (sane, place) = tokio::join!(
        admission.health.trusted(&admission.store),
        SessionPlace::find(&admission.store, &hash)
    );
    let record = sane?;
    let place = place?.ok_or_else(|| ended(admission))?;
    let floor = admission.store.floor(&place.account).await;
    let note_every = NOTE_EVERY.min(admission.session_idle / NOTE_PART);
    let found = in_use(
        &admission.store,
        &place,
        &hash,
        admission.session_idle,
        note_every,
    )
    .await?;
    let found = found.ok_or_else(|| ended(admission))?;
    let view = AccountVersion {
        generation: found.generation,
        version: found.version,
    };
    super::require_no_loss(&admission.store, &place.account, view, floor)?;
    Ok(OpenSession {
        found,
        account: place.account,
        record,
    })
}

/// Refuses a change that another site makes a browser send: it lacks the CSRF token, which only our pages can read.
///
/// # Errors
/// 403 `CSRF_FAILED`.
pub(super) fn require_csrf_token(
    admission: &Admission,
    method: &Method,
    headers: &HeaderMap,
    token: &Token,
) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    require_our_page(admission, headers)?;
    let mut sent = headers.get_all(X_CSRF_TOKEN).iter();
    let right = match (sent.next(), sent.next()) {
        (Some(sent), None) => bool::from(sent.as_bytes().ct_eq(token.csrf().as_bytes())),
        _ => false,
    };
    right.then_some(()).ok_or_else(|| {
        let message = "A change needs the header X-CSRF-Token with the csrfToken of this session.";
        Problem::new(Code::CsrfFailed, message)
    })
}

/// Refuses a request that declares another origin than our pages.
///
/// # Errors
/// 403 `CSRF_FAILED`.
pub(crate) fn require_our_page(admission: &Admission, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = || {
        Problem::new(
            Code::CsrfFailed,
            "This request comes from a page that is not ours.",
        )
    };
    let sites = headers.get_all(SEC_FETCH_SITE).iter();
    if sites.map(HeaderValue::as_bytes).any(|site| site == b"cross-site") {
        return Err(refused());
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else {
        return Ok(());
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let ours = origin
        .to_str()
        .is_ok_and(|origin| is_ours(origin, &admission.public_url, host));
    (ours && origins.next().is_none())
        .then_some(())
        .ok_or_else(refused)
}

/// Returns whether an origin is that of the public URL, or of the address that the request was sent to.
fn is_ours(origin: &str, public_url: &str, host: Option<&str>) -> bool {
    let Ok(url) = Url::parse(origin) else {
        return false;
    };
    let public = Url::parse(public_url).map(|url| url.origin());
    if !url.origin().is_tuple() {
        return false;
    }
    if public.is_ok_and(|public| public == url.origin()) {
        return true;
    }
    // `Host` has no scheme: the origin's scheme applies, whose default port may be omitted.
    let came_to = host.and_then(|host| Url::parse(&format!("{}://{host}", url.scheme())).ok());
    came_to.is_some_and(|came_to| came_to.origin() == url.origin())
}

/// Returns the mode that a request names; live by default.
///
/// # Errors
/// 400 for any other value than `live` and `test`.
pub(super) fn mode(headers: &HeaderMap) -> Result<Mode, Problem> {
    let mut sent = headers.get_all(X_TOLLGATE_MODE).iter();
    let mode = match (sent.next(), sent.next()) {
        (None, _) => Some(Mode::Live),
        (Some(mode), None) => mode.to_str().ok().and_then(Mode::parse),
        (Some(_), Some(_)) => None,
    };
    mode.ok_or_else(|| Problem::validation("X-Tollgate-Mode must be live or test."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(lines: &[&str]) -> SentCookie {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        SentCookie::from_headers(&headers)
    }

    #[test]
    fn one_cookie_is_read_and_several_are_none() {
        let token = "0a".repeat(32);
        for lines in [
            vec![format!("tollgate_session={token}")],
            vec![format!("a=b; tollgate_session={token} ; c=d")],
            vec!["a=é".to_owned(), format!("tollgate_session={token}")],
            vec![format!(
                "xtollgate_session=1; tollgate_session={token}; tollgate_session2=2"
            )],
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert!(
                matches!(cookies(&lines), SentCookie::Token(found) if found.expose() == token),
                "{lines:?}"
            );
        }
        for lines in [
            vec![format!("tollgate_session={token}; tollgate_session={token}")],
            vec![
                format!("tollgate_session={token}"),
                "tollgate_session=".to_owned(),
            ],
            vec!["tollgate_session=".to_owned()],
            vec!["tollgate_session".to_owned()],
            vec![format!("tollgate_session=\"{token}\"")],
            vec![format!("tollgate_session={token}0")],
            vec![format!("tollgate_session={}", token.to_uppercase())],
        ] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert!(matches!(cookies(&lines), SentCookie::Malformed), "{lines:?}");
        }
        assert!(matches!(cookies(&["a=tollgate_session; b"]), SentCookie::Nothing));
        assert!(matches!(cookies(&[]), SentCookie::Nothing));
    }

    #[test]
    fn origins_are_ours_or_not() {
        let public = "https://gate.example.com/console";
        for (origin, host) in [
            ("https://gate.example.com", None),
            ("https://gate.example.com:443", None),
            ("https://GATE.example.com", None),
            ("http://10.0.0.5:8081", Some("10.0.0.5:8081")),
            ("https://inner:444", Some("inner:444")),
            ("http://[::1]:8081", Some("[::1]:8081")),
        ] {
            assert!(is_ours(origin, public, host), "{origin}");
        }
        for (origin, host) in [
            ("null", Some("null")),
            ("", Some("")),
            ("http://gate.example.com", Some("other")),
            ("https://gate.example.com.evil.org", None),
            ("https://evil.org", Some("10.0.0.5:8081")),
            ("https://gate.example.com:8443", None),
            ("http://10.0.0.5:8082", Some("10.0.0.5:8081")),
            ("file://", Some("")),
            ("data:text/html,x", None),
        ] {
            assert!(!is_ours(origin, public, host), "{origin}");
        }
    }

    #[test]
    fn modes_are_named_exactly() {
        let with = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(X_TOLLGATE_MODE, value.parse().unwrap());
            }
            mode(&headers).ok()
        };
        assert_eq!(with(&[]), Some(Mode::Live));
        assert_eq!(with(&["live"]), Some(Mode::Live));
        assert_eq!(with(&["test"]), Some(Mode::Test));
        for bad in [vec![""], vec!["Test"], vec!["live", "live"], vec!["live,test"]] {
            assert_eq!(with(&bad), None, "{bad:?}");
        }
    }
}
