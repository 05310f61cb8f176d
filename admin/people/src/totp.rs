//! `/totp`: the optional second factor (RFC 6238), and its part in signing in. Each code and each recovery code can be
//! used once.

use super::guesses::{attempts, take};
use super::person::{Me, given_code, given_password};
use crate::state::{CHANGE_ATTEMPTS, Call, PeopleState};
use crypto::seal::TotpSecretOf;
use crypto::totp;
use endpoint::{Answer, Code, Problem, Reply, missing, operations};
use qrcode::QrCode;
use qrcode::render::svg;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;
use store::keys::Tries;
use store::script::change::Scope;
use store::server_clock;
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};
use store::user::{StoredUser, Totp, User};
use subtle::ConstantTimeEq;
use url::form_urlencoded::byte_serialize;
use utoipa::ToSchema;

operations! {
    /// Operations on the second factor.
    ROUTES: PeopleState, User;

    POST "/totp",         session(Viewer), Both, Uncounted, begin;
    POST "/totp/confirm", session(Viewer), Both, Uncounted, confirm;
    POST "/totp/disable", session(Viewer), Both, Uncounted, disable;
}

/// Issuer that apps show next to the user.
const ISSUER: &str = "Tollgate";
/// Least width and height of the QR code.
const PIXELS: u32 = 200;

/// Result of the check of a second factor.
pub(super) enum Factor {
    /// The user has no second factor.
    None,
    /// The user has one, and no code was sent.
    Missing,
    /// The code is wrong, or was already used.
    Wrong,
    /// The code is correct: the user with the code marked as used, and the kind of code.
    Right(User, &'static str),
}

/// Checks the second factor of a user.
///
/// Codes go by the store's clock, so that all servers accept the same ones.
///
/// # Errors
/// 503 if the sealed secret does not open, or the store does not answer.
pub(super) async fn second_factor(
    people: &PeopleState,
    account: &str,
    user: &User,
    code: Option<&str>,
) -> Result<Factor, Problem> {
    let Some(factor) = &user.totp else {
        return Ok(Factor::None);
    };
    let Some(code) = code else {
        return Ok(Factor::Missing);
    };
    let mut used = factor.clone();
    let how = if totp::is_code(code) {
        let secret = open(people, account, &user.id, &factor.sealed)?;
        let now_ms = server_clock::now_ms(&people.store).await?;
        let Some(step) = totp::step_of(&secret, code, now_ms, factor.last_step) else {
            return Ok(Factor::Wrong);
        };
        used.last_step = step;
        "totp"
    } else {
        let hash = totp::recovery_hash(code).unwrap_or_default();
        let same = |kept: &String| bool::from(kept.as_bytes().ct_eq(hash.as_bytes()));
        let Some(at) = factor.recovery.iter().position(same) else {
            return Ok(Factor::Wrong);
        };
        used.recovery.remove(at);
        "recovery"
    };
    let totp = Some(used);
    Ok(Factor::Right(User { totp, ..user.clone() }, how))
}

fn open(people: &PeopleState, account: &str, user: &str, sealed: &str) -> Result<SecretString, Problem> {
    let owner = TotpSecretOf { account, user };
    people.keyring.open(&owner, sealed).map_err(|error| {
        tracing::error!(account, user, %error, "a second factor cannot be decrypted");
        Code::ServiceUnavailable.into()
    })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TotpBegun)]
pub(super) struct TotpEnrollment<'a> {
    success: bool,
    /// To be typed into an app, in base 32.
    #[schema(example = "JBSWY3DPEHPK3PXP")]
    secret: &'a str,
    /// The secret as a URL for apps.
    #[schema(example = "otpauth://totp/Tollgate:ada%40example.com?secret=JBSWY3DPEHPK3PXP&issuer=Tollgate")]
    otpauth_url: &'a str,
    /// The URL as a QR code.
    #[schema(example = "<svg/>")]
    qr_svg: &'a str,
}

/// `POST /totp`: creates a secret, which takes effect once a code of it is sent within 15 minutes. Requires the
/// password, so that a stolen session cannot lock its owner out.
///
/// # Errors
/// 400, 401 `INVALID_CREDENTIALS`, 409 if there is already a second factor, 429 `LOGIN_LOCKED`, 503.
pub async fn begin(call: Call) -> Answer {
    let body = call.body()?.only(&["password"])?;
    let password = given_password(&body, "password")?;
    let me = Me::for_caller(&call)?;
    let stored = me.confirm(&call, password).await?;
    let (people, account) = (&call.state, call.caller.account.as_str());
    let secret = totp::mint()?;
    let owner = TotpSecretOf { account, user: me.id };
    let sealed = people.health.seal(&owner, &secret)?;
    let now_ms = server_clock::now_ms(&people.store).await?;
    let url = change(&call, &me, SessionsToEnd::None, "user.totp_begun", |user| {
        if user.password != stored.user.password {
            return Err(Code::InvalidCredentials.into());
        }
        if user.totp.is_some() {
            return Err(has_one());
        }
        user.totp_pending = Some(sealed.clone());
        user.totp_begun_at_ms = Some(now_ms);
        Ok(otpauth_url(&user.email, &secret))
    })
    .await?;
    let picture = QrCode::new(&url).map_err(|error| {
        tracing::error!(%error, "the QR code of a second factor cannot be drawn");
        Code::Internal
    })?;
    let picture = picture
        .render::<svg::Color<'_>>()
        .min_dimensions(PIXELS, PIXELS)
        .build();
    Reply::ok(&TotpEnrollment {
        success: true,
        secret: secret.expose_secret(),
        otpauth_url: &url,
        qr_svg: &picture,
    })
}

/// The second factor counts from now on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TotpConfirmed)]
pub(super) struct TotpConfirmed<'a> {
    success: bool,
    /// Ten codes in case the app is lost. Each can be used once, and they are only shown in this answer.
    #[schema(example = json!(["2e2o-jzg6-h66q-qghg"]))]
    recovery_codes: &'a [String],
}

fn has_one() -> Problem {
    Problem::new(Code::Conflict, "You have a second factor: disable it first.")
}

fn otpauth_url(email: &str, secret: &SecretString) -> String {
    let email: String = byte_serialize(email.as_bytes()).collect();
    let secret = secret.expose_secret();
    format!(
        "otpauth://totp/{ISSUER}:{email}?secret={secret}&issuer={ISSUER}&algorithm=SHA1&digits=6&period=30"
    )
}

/// `POST /totp/confirm`. Codes are guesses like passwords: a secret that its owner never confirmed is not one that a
/// stolen session may confirm.
///
/// # Errors
/// 400, 401 `INVALID_CREDENTIALS`, 409 if there is nothing to confirm any more, 429 `LOGIN_LOCKED`, 503.
pub async fn confirm(call: Call) -> Answer {
    let body = call.body()?.only(&["code"])?;
    let code = given_code(&body, "code")?.ok_or_else(|| missing("code"))?;
    let me = Me::for_caller(&call)?;
    let tries = attempts(Tries::Confirm, me.id);
    take(&call.state, tries).await?;
    let codes = totp::mint_recovery()?;
    let hashes: Vec<String> = codes
        .iter()
        .filter_map(|code| totp::recovery_hash(code))
        .collect();
    let people = &call.state;
    let now_ms = server_clock::now_ms(&people.store).await?;
    let changed = change(
        &call,
        &me,
        SessionsToEnd::AllBut(me.session),
        "user.totp_enabled",
        |user| {
            if user.totp.is_some() {
                return Err(has_one());
            }
            let nothing = || {
                Problem::new(
                    Code::Conflict,
                    "There is no second factor to confirm: none was begun in the last 15 minutes.",
                )
            };
            let sealed = user.take_begun_totp(now_ms).ok_or_else(nothing)?;
            let secret = open(people, &call.caller.account, &user.id, &sealed)?;
            let wrong = || Problem::new(Code::InvalidCredentials, "The code is wrong.");
            let last_step = totp::step_of(&secret, &code, now_ms, 0).ok_or_else(wrong)?;
            let recovery = hashes.clone();
            user.totp = Some(Totp {
                sealed,
                last_step,
                recovery,
            });
            Ok(())
        },
    )
    .await;
    if let Err(problem) = changed {
        if problem.code() == Code::InvalidCredentials {
            me.note_refusal(&call, "user.totp_refused").await?;
        }
        return Err(problem);
    }
    tries.clear(&people.store).await?;
    Reply::ok(&TotpConfirmed {
        success: true,
        recovery_codes: &codes,
    })
}

/// `POST /totp/disable`
pub async fn disable(call: Call) -> Answer {
    let body = call.body()?.only(&["password"])?;
    let password = given_password(&body, "password")?;
    let me = Me::for_caller(&call)?;
    let stored = me.confirm(&call, password).await?;
    if stored.user.totp.is_none() && stored.user.totp_pending.is_none() {
        return Reply::done();
    }
    change(
        &call,
        &me,
        SessionsToEnd::AllBut(me.session),
        "user.totp_disabled",
        |user| {
            if user.password != stored.user.password {
                return Err(Code::InvalidCredentials.into());
            }
            (user.totp, user.totp_pending, user.totp_begun_at_ms) = (None, None, None);
            Ok(())
        },
    )
    .await?;
    Reply::done()
}

/// Changes the caller's record by `edit`, which is called again with the new record if another change occurs meanwhile.
async fn change<T>(
    call: &Call,
    me: &Me<'_>,
    ending: SessionsToEnd<'_>,
    kind: &str,
    edit: impl Fn(&mut User) -> Result<T, Problem>,
) -> Result<T, Problem> {
    for _ in 0..CHANGE_ATTEMPTS {
        let old: StoredUser = me.stored(call).await?;
        let mut user = old.user.clone();
        let done = edit(&mut user)?;
        let change = ChangeUser {
            old: &old,
            new: Some(&user),
            ending,
            api_keys: &[],
            kind,
            data: json!({}),
        };
        let scope = Scope::live(&call.caller.account, me.id);
        let changed = change.execute(&call.state.store, &scope).await?;
        if matches!(changed, UserChanged::Done { .. }) {
            return Ok(done);
        }
    }
    Err(Code::ServiceUnavailable.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_what_apps_read() {
        let url = otpauth_url("a+b@exämple.com", &"JBSWY3DPEHPK3PXP".into());
        assert_eq!(
            url,
            "otpauth://totp/Tollgate:a%2Bb%40ex%C3%A4mple.com?secret=JBSWY3DPEHPK3PXP&issuer=Tollgate\
             &algorithm=SHA1&digits=6&period=30"
        );
        assert!(QrCode::new(&url).is_ok());
    }
}
