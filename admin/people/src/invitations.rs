//! `/invitations`: links with which people join the account. An invitation is valid only while its inviter is an owner.

use super::guesses::{attempts, source, take};
use super::login::{end_earlier, log_failed_cleanup};
use super::password::{given_token, no_link};
use super::person::{NewLogin, given_email, new_password, not_hashed, signed_in, too_many_passwords};
use super::team::given_role;
use crate::state::{Call, OpenCall, PeopleState};
use clock::now_ms;
use crypto::token::Token;
use domain::id::IdKind;
use domain::role::Role;
use domain::timestamp::iso_from_ms;
use endpoint::caller::require_no_loss;
use endpoint::doc::is;
use endpoint::{Answer, Code, PAGING, Problem, Reply, operations};
use keyed_limit::QueueFull;
use password::{Salt, TURN};
use serde::Serialize;
use store::account::Account;
use store::invitation::script::{self as script, Invited, Joined};
use store::invitation::{INVITATIONS_MAX, Invitation, InvitationBody};
use store::keys::{AccountKeys, Tries};
use store::page::Order;
use store::script::change::Scope;
use store::user::User;
use store::versions::AccountVersion;
use utoipa::ToSchema;

operations! {
    /// Operations on invitations.
    ROUTES: PeopleState, User;

    POST   "/invitations",        session(Owner), Both, Uncounted, create;
    GET    "/invitations",        session(Owner), Both, Uncounted, list, Query;
    DELETE "/invitations/{id}",   session(Owner), Both, Uncounted, revoke, AlwaysAllowed;
    POST   "/invitations/look",   public,         Both, Uncounted, preview;
    POST   "/invitations/accept", public,         Both, Uncounted, accept, Confirmed;
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Invitation)]
pub(super) struct InvitationView<'a> {
    #[schema(value_type = is::InvitationId)]
    id: &'a str,
    #[schema(example = "grace@example.com")]
    email: &'a str,
    #[schema(value_type = is::RoleName)]
    role: Role,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    expires_at: String,
    #[schema(value_type = is::UserId)]
    invited_by: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = InvitationCreated)]
pub(super) struct InvitationCreated<'a> {
    success: bool,
    invitation: InvitationView<'a>,
    /// Shown only in this answer; Tollgate sends no mail.
    #[schema(example = "https://tollgate.example/#/join/9f86d081")]
    link: String,
}

/// An invitation, as shown to the holder of its link.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = InvitationLooked)]
pub(super) struct InvitationPreview<'a> {
    success: bool,
    #[schema(example = "grace@example.com")]
    email: &'a str,
    #[schema(value_type = is::RoleName)]
    role: Role,
    #[schema(example = "Acme")]
    account_name: &'a str,
}

impl<'a> InvitationView<'a> {
    fn new(email: &'a str, body: &'a InvitationBody, created_at_ms: u64, expires_at_ms: u64) -> Self {
        Self {
            id: &body.id,
            email,
            role: body.role,
            created_at: iso_from_ms(created_at_ms),
            expires_at: iso_from_ms(expires_at_ms),
            invited_by: &body.invited_by,
        }
    }
}

/// Reads the open invitations: those of current owners, and those whose inviter is not an owner any more.
async fn open(call: &Call) -> Result<(Vec<Invitation>, Vec<Invitation>), Problem> {
    let (store, keys) = (&call.state.store, call.keys());
    let (all, users) = tokio::try_join!(Invitation::list(store, &keys, now_ms()), User::list(store, &keys))?;
    Ok(all
        .into_iter()
        .partition(|invitation| has_backing(invitation, &users)))
}

/// Returns whether the inviter is still an owner: a removed user must not keep a way back in.
fn has_backing(invitation: &Invitation, users: &[User]) -> bool {
    let by = users.iter().find(|user| user.id == invitation.body.invited_by);
    by.is_some_and(|user| user.role == Role::Owner)
}

/// `POST /invitations`
pub async fn create(call: Call) -> Answer {
    let body = call.body()?.only(&["email", "role"])?;
    let (email, role) = (given_email(&body)?, given_role(&body)?);
    let store = &call.state.store;
    let scope = Scope::live(&call.caller.account, &call.caller.actor);
    for dead in open(&call).await?.1 {
        script::revoke(store, &scope, &dead).await?;
    }
    let token = Token::mint()?;
    let invitation = InvitationBody {
        id: IdKind::Invitation.mint(now_ms())?,
        role,
        invited_by: call.caller.actor.clone(),
        token_hash: token.hash(),
    };
    let conflict = |message: String| Err(Problem::new(Code::Conflict, message));
    match script::create(store, &scope, &email, &invitation).await? {
        Invited::Done(created_at_ms, expires_at_ms) => Reply::ok(&InvitationCreated {
            success: true,
            invitation: InvitationView::new(&email, &invitation, created_at_ms, expires_at_ms),
            link: format!("{}/#/join/{}", call.state.public_url, token.expose()),
        }),
        Invited::Member => conflict("email: a user of this account has that address.".to_owned()),
        Invited::Exists => {
            conflict("email: there is an open invitation for that address; revoke it first.".to_owned())
        }
        Invited::TooMany => conflict(format!(
            "There are {INVITATIONS_MAX} open invitations; revoke some first."
        )),
    }
}

/// `GET /invitations`
pub async fn list(call: Call) -> Answer {
    let paging = call.paging(&call.query(&PAGING)?, "invitations")?;
    let (invitations, _) = open(&call).await?;
    let part = paging
        .page()
        .of_all(invitations, Order::Descending, |one| (0, &one.body.id))?;
    Reply::ok(&paging.listing(&part, |one| {
        InvitationView::new(&one.email, &one.body, one.created_at_ms, one.expires_at_ms)
    }))
}

/// `DELETE /invitations/{id}`
pub async fn revoke(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::Invitation)?;
    let (invitations, _) = open(&call).await?;
    let found = invitations.iter().find(|invitation| invitation.body.id == id);
    let found = found.ok_or_else(missing)?;
    let scope = Scope::live(&call.caller.account, &call.caller.actor);
    match script::revoke(&call.state.store, &scope, found).await? {
        true => Reply::done(),
        false => Err(missing()),
    }
}

fn missing() -> Problem {
    Problem::new(Code::NotFound, "There is no such open invitation.")
}

/// Finds the invitation of a token, with its account. Unknown tokens count as attempts of the address.
async fn by_token(people: &PeopleState, token: &Token, from: &str) -> Result<(Account, Invitation), Problem> {
    let guesses = attempts(Tries::InvitationAddress, from);
    take(people, guesses).await?;
    let found = Invitation::find(&people.store, &token.hash(), now_ms()).await?;
    let (id, invitation) = found.ok_or_else(no_link)?;
    let (keys, floor) = (AccountKeys::new(&id), people.store.floor(&id).await);
    let (account, users) = tokio::try_join!(
        Account::read(&people.store, &id),
        User::list(&people.store, &keys)
    )?;
    let account = account.ok_or_else(no_link)?;
    require_no_loss(&people.store, &id, AccountVersion::from_account(&account), floor)?;
    if !has_backing(&invitation, &users) {
        return Err(no_link());
    }
    guesses.give_back(&people.store).await?;
    Ok((account, invitation))
}

/// `POST /invitations/look`
pub async fn preview(call: OpenCall) -> Answer {
    let token = given_token(&call.body()?.only(&["token"])?)?;
    call.state.health.trusted(&call.state.store).await?;
    let (account, invitation) = by_token(&call.state, &token, &source(call.client)).await?;
    Reply::ok(&InvitationPreview {
        success: true,
        email: &invitation.email,
        role: invitation.body.role,
        account_name: &account.name,
    })
}

/// `POST /invitations/accept`
pub async fn accept(call: OpenCall) -> Answer {
    let body = call.body()?.only(&["token", "password"])?;
    let (token, password) = (given_token(&body)?, new_password(&body, "password")?);
    let people = &call.state;
    let secret = people.health.trusted(&people.store).await?.check_secret;
    // Of those who have the same link only the first one's password is hashed: the others find it used.
    let place = people
        .accepting
        .enter(token.hash())
        .map_err(|QueueFull| too_many_passwords())?;
    let turn = tokio::time::timeout(TURN, place.acquire()).await;
    let _turn = turn.map_err(|_| too_many_passwords())?;
    let (account, invitation) = by_token(people, &token, &source(call.client)).await?;
    let now = now_ms();
    let user = User {
        id: IdKind::User.mint(now)?,
        email: invitation.email.clone(),
        role: invitation.body.role,
        password: people
            .passwords
            .hash(&account.id, password, Salt::new(&secret, &invitation.email))
            .await
            .map_err(not_hashed)?,
        created_at_ms: now,
        totp: None,
        totp_pending: None,
        totp_begun_at_ms: None,
    };
    let fresh = NewLogin::new(call.headers(), call.client)?;
    let scope = Scope::live(&account.id, &user.id);
    let conflict = |message: &'static str| Err(Problem::new(Code::Conflict, message));
    match script::accept(&people.store, &scope, &invitation, &user, &fresh.session(people)).await? {
        Joined::Done(session) => {
            log_failed_cleanup(end_earlier(people, call.headers()).await);
            signed_in(people, &account, &user, &session, &fresh.token)
        }
        Joined::Missing => Err(no_link()),
        Joined::EmailTaken => conflict("A user of this account has your e-mail address already."),
        Joined::TooMany => conflict("The account has as many users as it can have."),
    }
}
