//! OpenAPI documentation of signing in, of sessions, passwords and the second factor.

use super::super::login::ACCOUNT_MAX;
use super::super::me::MeView;
use super::super::password::PasswordChanged;
use super::super::person::{CODE_MAX, SignedIn};
use super::super::sessions::SessionView;
use super::super::totp::{TotpConfirmed, TotpEnrollment};
use endpoint::doc::field::{email, pattern, string};
use endpoint::doc::{BodyDoc, Doc};
use endpoint::{Code, Success};
use openapi::Json;
use password::{LONGEST, SHORTEST};

/// Errors of wrong passwords and codes.
const GUESSED: [Code; 2] = [Code::InvalidCredentials, Code::LoginLocked];

fn password() -> Json {
    string()
        .with("maxLength", LONGEST)
        .example("correct horse battery staple")
}

/// Returns the schema of a new password.
pub(super) fn new_password() -> Json {
    password().with("minLength", SHORTEST)
}

/// Returns the schema of the token of a link.
pub(super) fn token() -> Json {
    pattern("^[0-9a-f]{64}$").example("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
}

fn code() -> Json {
    string().with("maxLength", CODE_MAX).example("287082")
}

/// Returns the answer that opens a session.
pub(super) fn opens(doc: Doc, description: &'static str) -> Doc {
    doc.response::<SignedIn<'_>>(200, description).response_header(
        "Set-Cookie",
        string().example("tollgate_session=…; Path=/; HttpOnly; SameSite=Strict"),
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
        check_link(),
        list(),
        revoke(),
        revoke_others(),
    ]
}

pub(super) fn totp() -> Vec<Doc> {
    vec![begin(), confirm(), disable()]
}

fn login() -> Doc {
    let body = BodyDoc::new("Login")
        .required(
            "email",
            email().example("ada@example.com"),
            "The e-mail; upper and lower case are the same.",
        )
        .required("password", password(), "The password.")
        .optional_or_null(
            "totp",
            code(),
            "A code of the second factor, or a recovery code, where the user has one.",
        )
        .optional_or_null(
            "account",
            string().with("maxLength", ACCOUNT_MAX).example("acct_01KAH3V9J80123456789ABCDEF"),
            "The account, where users of several have this e-mail and password: then the answer without it is a 400 that names them in accounts.",
        );
    let doc = Doc::new("POST /user/login", "login", "Sign in")
        .description("Ten wrong passwords in 15 minutes lock the login for 15 minutes.")
        .request_body(body)
        .errors(&GUESSED)
        .errors(&[Code::TotpRequired, Code::AccountRequired]);
    opens(doc, "Signed in.")
}

fn logout() -> Doc {
    Doc::new("POST /user/logout", "logout", "Sign out").response::<Success>(200, "The session has ended.")
}

fn me() -> Doc {
    Doc::new("GET /user/me", "getMe", "Show who is signed in")
        .response::<MeView<'_>>(200, "The user, the account and the session.")
}

fn change() -> Doc {
    let body = BodyDoc::new("PasswordChange")
        .required("currentPassword", password(), "The present password.")
        .required("newPassword", new_password(), "The new one.");
    Doc::new("POST /user/password", "changePassword", "Change the password")
        .description("Ends all other sessions; this one continues with a new cookie.")
        .request_body(body)
        .response::<PasswordChanged>(200, "It is changed.")
        .response_header(
            "Set-Cookie",
            string().example("tollgate_session=…; Path=/; HttpOnly; SameSite=Strict"),
            "The new cookie.",
        )
        .errors(&GUESSED)
}

fn reset() -> Doc {
    let body = BodyDoc::new("PasswordReset")
        .required("token", token(), "The token of the link that the operator made.")
        .required("newPassword", new_password(), "The new password.")
        .optional_or_null(
            "totp",
            code(),
            "A code of the second factor, where the user has one.",
        );
    let doc = Doc::new(
        "POST /user/password/reset",
        "resetPassword",
        "Set a new password with a link",
    )
    .description("A link works once, for an hour. All other sessions end.")
    .request_body(body)
    .errors(&GUESSED)
    .errors(&[Code::TotpRequired, Code::NotFound]);
    opens(doc, "Signed in with the new password.")
}

fn check_link() -> Doc {
    let body = BodyDoc::new("PasswordResetToken").required(
        "token",
        token(),
        "The token of the link that the operator made.",
    );
    Doc::new(
        "POST /user/password/reset/look",
        "lookAtPasswordReset",
        "Check whether a link for a new password works",
    )
    .request_body(body)
    .response::<Success>(200, "It works: it is known, not used, and has not ended.")
    .errors(&[Code::NotFound, Code::LoginLocked])
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
    .response::<Success>(200, "It has ended.")
    .errors(&[Code::NotFound])
}

fn revoke_others() -> Doc {
    Doc::new(
        "POST /user/sessions/revoke-others",
        "revokeOtherSessions",
        "End all your other sessions",
    )
    .request_body(BodyDoc::new("NothingToSay"))
    .response::<Success>(200, "They have ended.")
}

fn begin() -> Doc {
    Doc::new("POST /user/totp", "beginTotp", "Begin a second factor")
        .description("It counts once a code of it was confirmed, for which there are 15 minutes.")
        .request_body(password_proof())
        .response::<TotpEnrollment<'_>>(200, "The secret for an app.")
        .errors(&GUESSED)
        .errors(&[Code::Conflict])
}

fn confirm() -> Doc {
    let body = BodyDoc::new("TotpCode").required("code", code(), "A code of the app.");
    Doc::new(
        "POST /user/totp/confirm",
        "confirmTotp",
        "Confirm a second factor",
    )
    .description("Ends all other sessions.")
    .request_body(body)
    .response::<TotpConfirmed<'_>>(200, "It counts from now on.")
    .errors(&GUESSED)
    .errors(&[Code::Conflict])
}

fn disable() -> Doc {
    Doc::new(
        "POST /user/totp/disable",
        "disableTotp",
        "Disable the second factor",
    )
    .description("Ends all other sessions.")
    .request_body(password_proof())
    .response::<Success>(200, "The user has no second factor any more.")
    .errors(&GUESSED)
}

fn password_proof() -> BodyDoc {
    BodyDoc::new("PasswordProof").required("password", password(), "The password.")
}
