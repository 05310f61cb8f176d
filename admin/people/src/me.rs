//! `GET /me`: the signed-in user, the account, and the session.

use super::person::{Me, UserAccountView, UserView};
use crate::state::Call;
use domain::timestamp::iso_from_ms;
use endpoint::caller::session::{self, SentCookie};
use endpoint::doc::is;
use endpoint::{Answer, Reply};
use serde::Serialize;
use store::account::Account;
use store::user::last_logins;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Me)]
pub(super) struct MeView<'a> {
    success: bool,
    user: UserView<'a>,
    account: UserAccountView<'a>,
    session: SessionTimes<'a>,
    /// Value of `X-CSRF-Token` for every call that changes something.
    #[schema(value_type = is::CsrfToken)]
    csrf_token: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SessionTimes)]
struct SessionTimes<'a> {
    #[schema(value_type = is::SessionId)]
    id: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
    /// Latest end of the session.
    #[schema(value_type = is::Time)]
    expires_at: String,
}

/// `GET /me`
///
/// # Errors
/// 401 for a session that has ended, 503.
pub async fn get(call: Call) -> Answer {
    let (people, keys) = (&call.state, call.keys());
    let me = Me::for_caller(&call)?;
    let SentCookie::Token(token) = SentCookie::from_headers(call.headers()) else {
        return Err(session::ended(&people.admission));
    };
    let (account, stored, logins, sessions) = tokio::join!(
        Account::read(&people.store, &call.caller.account),
        me.stored(&call),
        last_logins(&people.store, &keys),
        me.sessions(&call)
    );
    let (account, stored) = (
        account?.ok_or_else(|| session::ended(&people.admission))?,
        stored?,
    );
    let open = sessions?.into_iter().find(|session| session.id == me.session);
    let open = open.ok_or_else(|| session::ended(&people.admission))?;
    Reply::ok(&MeView {
        success: true,
        user: UserView::new(&stored.user, &logins?),
        account: UserAccountView::new(&account),
        session: SessionTimes {
            id: &open.id,
            created_at: iso_from_ms(open.created_at_ms),
            expires_at: iso_from_ms(open.expires_at_ms),
        },
        csrf_token: token.csrf(),
    })
}
