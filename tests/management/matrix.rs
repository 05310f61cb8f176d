//! Every row of both route tables, under each of its prefixes, by every kind of caller. The refusals follow from the
//! row alone. The outcome of an authorised call is listed for each row, so that an unlisted row fails.

mod responses;

use crate::fixture::{FULL, Fixture, problem};
use api_docs::table::routes;
use axum::http::Method;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::role::Role;
use endpoint::{Access, Modes, Route};
use harness::{Caller, Reply, SeedAccount, SessionCaller, TEST_PASSWORD};
use responses::through;
use store::api_key;
use store::script::change::Scope;

/// A caller and its kind.
enum Who {
    /// Without any credential.
    Nobody(Caller),
    /// With an invalid key: malformed, unknown, expired or revoked.
    BadKey(Caller),
    Key(Caller, Mode, &'static [Permission]),
    /// With an invalid cookie: forged, or of a session that has ended.
    BadCookie(Caller, String),
    Session(Role, Mode),
    /// With a session of an owner and these headers only, none of which proves that a page of ours sent the request.
    Forged(Vec<(&'static str, String)>),
}

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Refused(u16, &'static str),
    Through,
}

const LIVE_MODE: Outcome = Outcome::Refused(400, "LIVE_MODE_REQUIRED");
const CSRF: Outcome = Outcome::Refused(403, "CSRF_FAILED");

/// The row's expected outcome for this caller.
fn expected(route: &Route, who: &Who) -> Outcome {
    let changes = route.method != Method::GET;
    let no_test = |mode: Mode| route.modes == Modes::LiveOnly && mode == Mode::Test;
    let least = match route.access {
        Access::Key(_, role) | Access::Session(role) => role,
        Access::Public => Role::Viewer,
    };
    match (who, route.access) {
        (Who::Forged(headers), Access::Public) if changes && is_cross_site(headers) => CSRF,
        (_, Access::Public) => Outcome::Through,
        (Who::Nobody(_), Access::Key(..)) => Outcome::Refused(401, "API_KEY_REQUIRED"),
        (Who::Nobody(_) | Who::BadCookie(..), _) => Outcome::Refused(401, "SESSION_REQUIRED"),
        (Who::BadKey(_), _) => Outcome::Refused(401, "INVALID_API_KEY"),
        (Who::Key(..), Access::Session(_)) => Outcome::Refused(403, "INSUFFICIENT_API_KEY_PERMISSIONS"),
        (Who::Key(_, _, has), Access::Key(needed, _)) if !has.contains(&needed) => {
            Outcome::Refused(403, "INSUFFICIENT_API_KEY_PERMISSIONS")
        }
        (Who::Key(_, mode, _) | Who::Session(_, mode), Access::Key(..)) if no_test(*mode) => match who {
            Who::Session(role, _) if *role < least => Outcome::Refused(403, "INSUFFICIENT_ROLE"),
            _ => LIVE_MODE,
        },
        // Live money (decision D17).
        (Who::Key(_, Mode::Live, _), _) if changes && route.path.starts_with("/wallet/deposits") => {
            Outcome::Refused(403, "OWNER_REQUIRED")
        }
        (Who::Key(..), _) => Outcome::Through,
        (Who::Session(role, _), _) if *role < least => Outcome::Refused(403, "INSUFFICIENT_ROLE"),
        (Who::Session(..), _) => Outcome::Through,
        (Who::Forged(_), _) if changes => CSRF,
        (Who::Forged(_), _) => Outcome::Through,
    }
}

/// Whether these are the headers of a page of another site.
fn is_cross_site(headers: &[(&'static str, String)]) -> bool {
    headers
        .iter()
        .any(|(name, _)| ["origin", "sec-fetch-site"].contains(name))
}

/// Returns the path of a row with ids as its parameters. They are well-formed and unknown.
fn path(prefix: &str, route: &Route) -> String {
    const ULID: &str = "01KAH3V9J80123456789ABCDEF";
    let kind = match route.path {
        path if path.starts_with("/escrow/") => "7".to_owned(),
        path if path.starts_with("/wallets/") => "7".to_owned(),
        path if path.starts_with("/webhooks/") => format!("wh_{ULID}"),
        path if path.starts_with("/intents/") => format!("int_{ULID}"),
        path if path.starts_with("/decisions/") => format!("allow_{ULID}"),
        path if path.starts_with("/api-keys/") => format!("key_{ULID}"),
        path if path.starts_with("/sessions/") => format!("ses_{ULID}"),
        path if path.starts_with("/team/") => format!("usr_{ULID}"),
        path if path.starts_with("/invitations/") => format!("inv_{ULID}"),
        "/policies/{id}" if route.method == Method::DELETE => format!("pol_{ULID}"),
        // These create an agent with this id.
        path if ["/policies/{id}", "/agents/{id}/virtual-keys"].contains(&path)
            && route.method == Method::POST =>
        {
            "made-bot".to_owned()
        }
        _ => "some-bot".to_owned(),
    };
    format!("{prefix}{}", route.path)
        .replace("{keyId}", &format!("vk_{ULID}"))
        .replace("{deliveryId}", &format!("whd_{ULID}"))
        .replace("{runId}", "a-run")
        .replace("{id}", &kind)
}

fn rows() -> impl Iterator<Item = (&'static str, &'static Route)> {
    let all = routes();
    all.flat_map(|route| route.prefixes().map(move |prefix| (prefix, route)))
}

/// The account of the calls, and all its callers.
struct Callers {
    fixture: Fixture,
    account: SeedAccount,
    users: Vec<(Role, String)>,
    all: Vec<Who>,
}

impl Callers {
    async fn gather() -> Self {
        let fixture = Fixture::start().await;
        // On a plan without rate limits.
        let account = fixture.seed.account("enterprise").await;
        let mut users = Vec::new();
        for role in Role::ALL {
            users.push((role, account.user(role).await.email));
        }
        let mut callers = Self {
            fixture,
            account,
            users,
            all: Vec::new(),
        };
        callers.keys().await;
        callers.cookies().await;
        for role in Role::ALL {
            callers.all.extend(Mode::ALL.map(|mode| Who::Session(role, mode)));
        }
        callers.forgeries().await;
        callers
    }

    async fn keys(&mut self) {
        const SETS: [&[Permission]; 4] = [
            &[Permission::Read],
            &[Permission::Write],
            &[Permission::Approve],
            &Permission::ALL,
        ];
        let (fixture, account) = (&self.fixture, &self.account);
        let caller = |key: &str| fixture.admin.caller(key);
        let mut all = vec![
            Who::Nobody(caller("")),
            Who::BadKey(caller("svc_live_short")),
            Who::BadKey(caller(&format!("svc_live_{}", "0a".repeat(32)))),
            Who::BadKey(caller(&format!("sk_service_test_{}", "0a".repeat(32)))),
        ];
        for mode in Mode::ALL {
            for permissions in SETS {
                let key = account.issue(mode, permissions, &[], None).await;
                all.push(Who::Key(caller(&key.secret), mode, permissions));
            }
        }
        let past = clock::now_ms() - 1;
        let expired = account.issue(Mode::Live, FULL, &[], Some(past)).await;
        all.push(Who::BadKey(caller(&expired.secret)));
        let revoked = account.issue(Mode::Live, FULL, &[], None).await;
        let scope = Scope {
            account: &account.id,
            mode: Mode::Live,
            actor: "test",
        };
        api_key::script::revoke(&fixture.store, &scope, &revoked.id)
            .await
            .unwrap();
        all.push(Who::BadKey(caller(&revoked.secret)));
        self.all.extend(all);
    }

    async fn cookies(&mut self) {
        let ended = self.sign_in(Role::Owner).await;
        let bye = ended.post("/api/user/logout", serde_json::json!({})).await;
        assert_eq!(bye.status, 200);
        for cookie in [
            ended.cookie().to_owned(),
            format!("tollgate_session={}", "0a".repeat(32)),
            "tollgate_session=x".to_owned(),
            format!("{0}; {0}", ended.cookie()),
        ] {
            let nobody = self.fixture.admin.caller("");
            self.all.push(Who::BadCookie(nobody, cookie));
        }
    }

    async fn forgeries(&mut self) {
        let other = self.sign_in(Role::Owner).await.csrf().to_owned();
        let foreign = "https://evil.example.org".to_owned();
        for headers in [
            vec![],
            vec![("x-csrf-token", other)],
            vec![("origin", foreign)],
            vec![("sec-fetch-site", "cross-site".to_owned())],
        ] {
            self.all.push(Who::Forged(headers));
        }
    }

    async fn sign_in(&self, role: Role) -> SessionCaller {
        let (_, email) = self.users.iter().find(|(of, _)| *of == role).unwrap();
        self.fixture.admin.sign_in(email, TEST_PASSWORD).await
    }

    /// Calls the operation of a row.
    async fn send(&self, who: &Who, prefix: &str, route: &Route) -> Reply {
        let (method, path) = (route.method.as_str(), path(prefix, route));
        let json = ("content-type", "application/json");
        let body = if method == "GET" { "" } else { "{}" };
        match who {
            Who::Nobody(caller) | Who::BadKey(caller) | Who::Key(caller, ..) => {
                caller.send(method, &path, &[json], body).await
            }
            Who::BadCookie(caller, cookie) => {
                caller
                    .send(
                        method,
                        &path,
                        &[json, ("cookie", cookie), ("x-csrf-token", "0a")],
                        body,
                    )
                    .await
            }
            Who::Session(role, mode) => {
                let session = self.sign_in(*role).await.in_mode(*mode);
                session.send(method, &path, &[json], body).await
            }
            Who::Forged(headers) => {
                let session = self.sign_in(Role::Owner).await;
                let right = session.csrf().to_owned();
                let mut all = vec![json];
                all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
                if is_cross_site(headers) {
                    all.push(("x-csrf-token", &right));
                }
                session.send_bare(method, &path, &all, body).await
            }
        }
    }
}

fn called(who: &Who) -> String {
    match who {
        Who::Nobody(_) => "nobody".to_owned(),
        Who::BadKey(_) => "a bad key".to_owned(),
        Who::Key(_, mode, permissions) => format!("a {mode} key for {}", Permission::list_text(permissions)),
        Who::BadCookie(_, cookie) => format!("the cookie {cookie}"),
        Who::Session(role, mode) => format!("a session of a {role} in {mode}"),
        Who::Forged(headers) => format!("a forged call with {headers:?}"),
    }
}

/// Calls the operation of a row, and checks the answer: status, code and headers.
async fn check(callers: &Callers, who: &Who, prefix: &str, route: &Route) {
    let name = format!("{} {}", route.method, route.path);
    let reply = callers.send(who, prefix, route).await;
    let what = format!("{name} under {prefix} by {}: {}", called(who), reply.text());
    let (status, code) = match expected(route, who) {
        Outcome::Refused(status, code) => (status, code),
        Outcome::Through => through(&name).unwrap_or_else(|| panic!("{name} is not written down")),
    };
    assert_eq!(reply.status, status, "{what}");
    match code {
        "" => assert!(reply.error_code().is_empty(), "{what}"),
        code => assert!(reply.text().contains(&format!("\"code\":\"{code}\"")), "{what}"),
    }
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
    let bearer = ["API_KEY_REQUIRED", "INVALID_API_KEY"].contains(&code);
    assert_eq!(
        reply.header("www-authenticate"),
        bearer.then_some("Bearer"),
        "{what}"
    );
    let taken = reply
        .header("set-cookie")
        .is_some_and(|cookie| cookie.contains("Max-Age=0"));
    let ended = code == "SESSION_REQUIRED" && matches!(who, Who::BadCookie(..));
    assert_eq!(
        taken,
        ended || (code.is_empty() && route.path == "/logout"),
        "{what}"
    );
}

#[tokio::test]
async fn every_row_refuses_whom_it_says_unchanged_and_serves_the_others() {
    let callers = Callers::gather().await;
    let viewer = callers.sign_in(Role::Viewer).await;
    let version = callers.account.version().await;
    let signs_in = |who: &Who| matches!(who, Who::Session(..) | Who::Forged(_));
    // A sign-in is a change itself.
    let comes_first = |route: &Route, who: &Who| !signs_in(who) && expected(route, who) != Outcome::Through;
    for (prefix, route) in rows() {
        for who in callers.all.iter().filter(|who| comes_first(route, who)) {
            check(&callers, who, prefix, route).await;
        }
        if route.method != Method::GET && route.access != Access::Public {
            refuses_viewer(&viewer, prefix, route).await;
        }
    }
    assert_eq!(
        callers.account.version().await,
        version,
        "who is refused changes nothing"
    );
    for (prefix, route) in rows() {
        for who in callers.all.iter().filter(|who| !comes_first(route, who)) {
            check(&callers, who, prefix, route).await;
        }
    }
}

/// Calls the operation of a row with a session of a viewer, if it needs more than that, and without the token of the
/// session.
async fn refuses_viewer(viewer: &SessionCaller, prefix: &str, route: &Route) {
    let as_viewer = Who::Session(Role::Viewer, Mode::Live);
    let path = path(prefix, route);
    for (csrf, outcome) in [(true, expected(route, &as_viewer)), (false, CSRF)] {
        if let Outcome::Refused(status, _) = outcome {
            let token = [
                ("x-csrf-token", viewer.csrf()),
                ("content-type", "application/json"),
            ];
            let headers = if csrf { &token[..] } else { &token[1..] };
            let reply = viewer
                .send_bare(route.method.as_str(), &path, headers, "{}")
                .await;
            assert_eq!(reply.status, status, "{path}: {}", reply.text());
        }
    }
}

#[test]
fn every_row_is_written_down_and_nothing_else() {
    let rows: std::collections::BTreeSet<String> = rows()
        .map(|(_, route)| format!("{} {}", route.method, route.path))
        .collect();
    let written: std::collections::BTreeSet<String> =
        responses::ALL.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(written.len(), responses::ALL.len(), "a row is written down twice");
    assert_eq!(written, rows);
}

#[tokio::test]
async fn a_mode_that_is_none_is_refused_behind_the_session_and_before_the_role() {
    let callers = Callers::gather().await;
    let viewer = callers.sign_in(Role::Viewer).await;
    for (prefix, route) in rows().filter(|(_, route)| route.access != Access::Public) {
        let headers = [("x-tollgate-mode", "prod"), ("content-type", "application/json")];
        let reply = viewer
            .send(route.method.as_str(), &path(prefix, route), &headers, "")
            .await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains("X-Tollgate-Mode"), "{}: {sentence}", route.path);
    }
}
