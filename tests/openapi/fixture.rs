//! A server with an account, its owner and its keys, and the operations of the document.

use domain::role::Role;
use harness::{Admin, Installation, Redis, SeedAccount, SessionCaller, TEST_PASSWORD};
use serde_json::{Value, json};
use std::fmt;

pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");

pub struct Fixture {
    pub installation: Installation<(), Admin>,
    pub account: SeedAccount,
    /// The owner of the account, signed in.
    pub owner: SessionCaller,
    pub document: Value,
}

pub struct Operation {
    pub method: String,
    pub path: String,
    pub json: Value,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Fixture {
    pub async fn start() -> Self {
        let installation = Installation::on(Redis::start())
            .await
            .with_admin(ADMIN, |options| {
                options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
            });
        let account = installation.seed.account("enterprise").await;
        let user = account.user(Role::Owner).await;
        let owner = installation.admin.sign_in(&user.email, TEST_PASSWORD).await;
        let document = json!(::api_docs::openapi::management());
        Self {
            installation,
            account,
            owner,
            document,
        }
    }

    pub fn operations(&self) -> Vec<Operation> {
        let paths = self.document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("operations").iter();
            methods.map(move |(method, json)| Operation {
                method: method.to_ascii_uppercase(),
                path: path.clone(),
                json: json.clone(),
            })
        });
        operations.collect()
    }

    /// The path with ids in place of its parameters, those of existing records where the operation needs one.
    pub async fn path(&self, operation: &Operation) -> String {
        let ulid = "01KAJ4M7Q8R5T6V9W0X1Y2Z3A4";
        let id = match operation.path.split('/').nth(3) {
            Some("intents") => format!("int_{ulid}"),
            Some("team") => format!("usr_{ulid}"),
            Some("webhooks") if operation.path.contains('{') => self.webhook().await,
            Some("wallets") => self.wallet().await,
            _ => "some-bot".to_owned(),
        };
        operation.path.replace("{runId}", "a-run").replace("{id}", &id)
    }

    async fn webhook(&self) -> String {
        let body =
            json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": "0123456789abcdef" });
        let made = self.owner.post("/api/v1/webhooks", body).await;
        made.json()["webhook"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", made.text()))
            .to_owned()
    }

    async fn wallet(&self) -> String {
        let all = self.owner.get("/api/v1/wallet").await.json();
        all["user_wallet"]["wallet"]
            .as_str()
            .expect("a wallet")
            .to_owned()
    }
}

impl Operation {
    /// The schema of the operation's body.
    pub fn body<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        let reference = self.json["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()?;
        document.pointer(reference.strip_prefix('#')?)
    }
}
