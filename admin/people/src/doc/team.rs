//! OpenAPI documentation of the team and of invitations.

use super::super::invitations::{InvitationCreated, InvitationPreview, InvitationView};
use super::super::person::UserView;
use super::super::team::{Removed, RoleChanged};
use super::example_email;
use super::session::{new_password, opens, token};
use endpoint::doc::field::{flag, is};
use endpoint::doc::{BodyDoc, Doc};
use endpoint::{Code, Success};

pub(super) fn docs() -> Vec<Doc> {
    vec![
        list(),
        change(),
        remove(),
        invite(),
        invitations(),
        revoke(),
        preview(),
        accept(),
    ]
}

fn list() -> Doc {
    Doc::new("GET /user/team", "listTeam", "List the users of the account")
        .lists::<UserView<'_>>("users", "A page of users, the newest first.")
}

fn change() -> Doc {
    let body =
        BodyDoc::new("RoleChange").required("role", is("RoleName"), "The new role; it binds the next call.");
    Doc::new("PATCH /user/team/{id}", "changeRole", "Change the role of a user")
        .description("The API keys that the user made are revoked where the new role can make none, unless they are to be kept.")
        .query("keepApiKeys", flag(), "Whether the API keys that the user made go on working; they do not without it.")
        .request_body(body)
        .response::<RoleChanged<'_>>(200, "The user as it now is.")
        .errors(&[Code::NotFound, Code::LastOwner])
}

fn remove() -> Doc {
    Doc::new("DELETE /user/team/{id}", "removeUser", "Remove a user")
        .description("Their sessions end at once, and the API keys that they made are revoked, unless they are to be kept.")
        .query("keepApiKeys", flag(), "Whether the API keys that the user made go on working; they do not without it.")
        .response::<Removed<'_>>(200, "The user is removed.")
        .errors(&[Code::NotFound, Code::LastOwner])
}

fn invite() -> Doc {
    let body = BodyDoc::new("NewInvitation")
        .required("email", example_email(), "E-mail address of the invited person.")
        .required("role", is("RoleName"), "Role of the new user.");
    Doc::new("POST /user/invitations", "invite", "Invite somebody")
        .description("Only this answer contains the link; send it yourself. It works once, for seven days, as long as its creator is an owner.")
        .request_body(body)
        .response::<InvitationCreated<'_>>(200, "The invitation with its link.")
        .errors(&[Code::Conflict])
}

fn invitations() -> Doc {
    Doc::new(
        "GET /user/invitations",
        "listInvitations",
        "List open invitations",
    )
    .lists::<InvitationView<'_>>("invitations", "A page of invitations, never their links.")
}

fn revoke() -> Doc {
    Doc::new(
        "DELETE /user/invitations/{id}",
        "revokeInvitation",
        "Revoke an invitation",
    )
    .param("id", is("InvitationId"), "The invitation.")
    .response::<Success>(200, "Its link is no longer valid.")
    .errors(&[Code::NotFound])
}

fn preview() -> Doc {
    let body = BodyDoc::new("InvitationToken").required("token", token(), "The token of the link.");
    Doc::new(
        "POST /user/invitations/look",
        "lookAtInvitation",
        "Show an invitation",
    )
    .request_body(body)
    .response::<InvitationPreview<'_>>(200, "E-mail address, role and account of the invitation.")
    .errors(&[Code::NotFound, Code::LoginLocked])
}

fn accept() -> Doc {
    let body = BodyDoc::new("InvitationAnswer")
        .required("token", token(), "The token of the link.")
        .required("password", new_password(), "The password of the new user.");
    let doc = Doc::new(
        "POST /user/invitations/accept",
        "acceptInvitation",
        "Accept an invitation",
    )
    .request_body(body)
    .errors(&[Code::NotFound, Code::Conflict, Code::LoginLocked]);
    opens(doc, "Joined, and signed in.")
}
