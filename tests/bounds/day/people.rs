//! Users sign in, are invited, join, change and leave.

use super::Person;
use crate::fixture::Fixture;
use domain::mode::Mode;
use harness::{Reply, Role, TEST_PASSWORD, text};
use serde_json::{Value, json};

const PASSWORD: &str = "a password of mine";

#[track_caller]
fn done(reply: &Reply) -> Value {
    assert!((200..300).contains(&reply.status), "{}", reply.text());
    reply.json()
}

impl Person {
    pub(super) async fn people(&self, fixture: &Fixture, round: usize) {
        let account = &self.tenant.account;
        let owner = account.user(Role::Owner).await;
        let wrong = json!({ "email": owner.email, "password": "not the password" });
        assert_eq!(fixture.admin.login(&wrong).await.status, 401);
        let session = fixture.admin.sign_in(&owner.email, TEST_PASSWORD).await;
        done(&session.in_mode(Mode::Test).get("/api/v1/agents?limit=1").await);
        // Another session of the same user ends.
        fixture.admin.sign_in(&owner.email, TEST_PASSWORD).await;
        done(&session.post("/api/user/sessions/revoke-others", json!({})).await);

        let email = |name: &str| format!("{name}-{round}-{}@example.com", account.id).to_lowercase();
        let invite = async |name: &str| {
            let body = json!({ "email": email(name), "role": "viewer" });
            done(&session.post("/api/user/invitations", body).await)
        };
        let taken_back = invite("nobody").await;
        let path = format!("/api/user/invitations/{}", text(&taken_back, "/invitation/id"));
        done(&session.delete(&path).await);
        let invited = invite("guest").await;
        let (_, token) = text(&invited, "/link").split_once("/#/join/").expect("a token");
        let body = json!({ "token": token, "password": PASSWORD });
        let joined = fixture
            .admin
            .caller("")
            .post("/api/user/invitations/accept", body)
            .await;
        let guest = text(&done(&joined), "/user/id").to_owned();
        let path = format!("/api/user/team/{guest}");
        done(&session.patch(&path, json!({ "role": "manager" })).await);
        done(&session.delete(&path).await);
    }
}
