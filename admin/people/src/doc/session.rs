//! OpenAPI documentation of signing in, of sessions, passwords and the second factor.

use super::super::login::{ACCOUNT_MAX, MeView};
use super::super::password::PasswordChanged;
use super::super::person::{CODE_MAX, SignedIn};
use super::super::sessions::SessionView;
use super::super::totp::{Confirmed, TotpEnrollment};
use endpoint::doc::field::{email, pattern, string};
use endpoint::doc::{Body, Doc};
use endpoint::{Code, Done};
use openapi::Json;
use password::{LONGEST, SHORTEST};

/// Errors of wrong passwords and codes.
const GUESSED: [Code; 2] = [Code::InvalidCredentials, Code::LoginLocked];

fn password() -> Json {
    string()
        .with("maxLength", LONGEST)
        .eg("correct horse battery staple")
}

/// Returns the schema of a new password.
pub(super) fn new_password() -> Json {
    password().with("minLength", SHORTEST)
}

/// Returns the schema of the token of a link.
pub(super) fn token() -> Json {
    pattern("^[0-9a-f]{64}$").eg("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
}

fn code() -> Json {
    string().with("maxLength", CODE_MAX).eg("287082")
}

/// Returns the answer that opens a session.
pub(super) fn opens(doc: Doc, says: &'static str) -> Doc {
    doc.gives::<SignedIn<'_>>(200, says).with(
        "Set-Cookie",
        string().eg("tollgate_session=…; Path=/; HttpOnly; SameSite=Strict"),
        "The cookie of the session.",
    )
}

pub(super) fn docs() -> Vec<Doc> {
    vec![
        login(),
        logout(),
        me(),
        change(),
        reset(),
        list(),
        revoke(),
        revoke_others(),
    ]
}

pub(super) fn totp() -> Vec<Doc> {
    vec![begin(), confirm(), disable()]
}

fn login() -> Doc {
    let body = Body::new("Login")
        .must(
            "email",
            email().eg("ada@example.com"),
            "The e-mail; upper and lower case are the same.",
        )
        .must("password", password(), "The password.")
        .may(
            "totp",
            code(),
            "A code of the second factor, or a recovery code, where the user has one.",
        )
        .may(
            "account",
            string().with("maxLength", ACCOUNT_MAX).eg("acct_01KAH3V9J80123456789ABCDEF"),
            "The account, where users of several have this e-mail and password: then the answer without it is a 400 that names them in accounts.",
        );
    let doc = Doc::new("POST /user/login", "login", "Sign in")
        .says("Ten wrong passwords in 15 minutes lock the login for 15 minutes.")
        .takes(body)
        .refuses(&GUESSED)
        .refuses(&[Code::TotpRequired, Code::AccountRequired]);
    opens(doc, "Signed in.")
}

fn logout() -> Doc {
    Doc::new("POST /user/logout", "logout", "Sign out").gives::<Done>(200, "The session has ended.")
}

fn me() -> Doc {
    Doc::new("GET /user/me", "getMe", "Show who is signed in")
        .gives::<MeView<'_>>(200, "The user, the account and the session.")
}

fn change() -> Doc {
    let body = Body::new("PasswordChange")
        .must("currentPassword", password(), "The present password.")
        .must("newPassword", new_password(), "The new one.");
    Doc::new("POST /user/password", "changePassword", "Change the password")
        .says("Ends all other sessions; this one goes on under a new cookie.")
        .takes(body)
        .gives::<PasswordChanged>(200, "It is changed.")
        .with(
            "Set-Cookie",
            string().eg("tollgate_session=…; Path=/; HttpOnly; SameSite=Strict"),
            "The new cookie.",
        )
        .refuses(&GUESSED)
}

fn reset() -> Doc {
    let body = Body::new("PasswordReset")
        .must("token", token(), "The token of the link that the operator made.")
        .must("newPassword", new_password(), "The new password.")
        .may(
            "totp",
            code(),
            "A code of the second factor, where the user has one.",
        );
    let doc = Doc::new(
        "POST /user/password/reset",
        "resetPassword",
        "Set a new password with a link",
    )
    .says("A link works once, for an hour. All other sessions end.")
    .takes(body)
    .refuses(&GUESSED)
    .refuses(&[Code::TotpRequired, Code::NotFound]);
    opens(doc, "Signed in with the new password.")
}

fn list() -> Doc {
    Doc::new(
        "GET /user/sessions",
        "listSessions",
        "List where you are signed in",
    )
    .lists::<SessionView<'_>>("sessions", "A page of your sessions, the newest first.")
}

fn revoke() -> Doc {
    Doc::new(
        "DELETE /user/sessions/{id}",
        "revokeSession",
        "End one of your sessions",
    )
    .gives::<Done>(200, "It has ended.")
    .refuses(&[Code::NotFound])
}

fn revoke_others() -> Doc {
    Doc::new(
        "POST /user/sessions/revoke-others",
        "revokeOtherSessions",
        "End all your other sessions",
    )
    .takes(Body::new("NothingToSay"))
    .gives::<Done>(200, "They have ended.")
}

fn begin() -> Doc {
    Doc::new("POST /user/totp", "beginTotp", "Begin a second factor")
        .says("It counts once a code of it was confirmed.")
        .takes(password_proof())
        .gives::<TotpEnrollment<'_>>(200, "The secret for an app.")
        .refuses(&GUESSED)
        .refuses(&[Code::Conflict])
}

fn confirm() -> Doc {
    let body = Body::new("TotpCode").must("code", code(), "A code of the app.");
    Doc::new(
        "POST /user/totp/confirm",
        "confirmTotp",
        "Confirm a second factor",
    )
    .says("Ends all other sessions.")
    .takes(body)
    .gives::<Confirmed<'_>>(200, "It counts from now on.")
    .refuses(&[Code::InvalidCredentials, Code::Conflict])
}

fn disable() -> Doc {
    Doc::new(
        "POST /user/totp/disable",
        "disableTotp",
        "Disable the second factor",
    )
    .says("Ends all other sessions.")
    .takes(password_proof())
    .gives::<Done>(200, "There is none any more.")
    .refuses(&GUESSED)
}

fn password_proof() -> Body {
    Body::new("PasswordProof").must("password", password(), "The password.")
}
