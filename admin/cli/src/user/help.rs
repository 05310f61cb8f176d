//! Commands for a user who cannot sign in.

use super::super::context::CommandContext;
use super::change::{FoundUser, UserArgs};
use crate::closed_stdout;
use crate::failure::CommandFailure;
use crate::report::Report;
use clock::now_ms;
use crypto::token::Token;
use domain::timestamp::iso_from_ms;
use serde_json::json;
use store::credential_attempts::Attempts;
use store::keys::Tries;
use store::user::script::{RESET_LIFE, issue_reset, note};

pub(super) async fn reset_link(context: &CommandContext, name: &UserArgs) -> Result<Report, CommandFailure> {
    closed_stdout::check()?;
    let found = FoundUser::by_name(context, name).await?;
    let token = Token::mint()?;
    if !issue_reset(&context.store, &found.scope(), &found.stored, &token.hash()).await? {
        let message = "the user was changed at the same moment; try again";
        return Err(CommandFailure::refused("CONFLICT", message));
    }
    let link = format!("{}/#/reset/{}", context.settings.public_url(), token.expose());
    let life_ms = u64::try_from(RESET_LIFE.as_millis()).unwrap_or_default();
    let ends = iso_from_ms(now_ms() + life_ms);
    Ok(Report::new(
        format!(
            "With this link user {} sets a new password, once and until {ends}. It is shown this once:\n{link}",
            found.stored.user.id
        ),
        found.document(json!({ "link": link, "expiresAt": ends })),
    )
    .secret())
}

pub(super) async fn unlock(context: &CommandContext, name: &UserArgs) -> Result<Report, CommandFailure> {
    let found = FoundUser::by_name(context, name).await?;
    let (id, scope) = (&found.stored.user.id, found.scope());
    note(&context.store, &scope, id, "user.unlocked", json!({})).await?;
    let at_user = format!("{} {}", name.email, scope.account);
    for (tries, of) in [
        (Tries::Login, &name.email),
        (Tries::RightPasswords, &name.email),
        (Tries::LoginAccount, &at_user),
        (Tries::LoginNamed, &name.email),
        (Tries::Confirm, id),
        (Tries::Reset, id),
    ] {
        Attempts { tries, of }.clear(&context.store).await?;
    }
    Ok(Report::new(
        format!("User {id} can try to sign in again."),
        found.document(json!({ "unlocked": true })),
    ))
}
