//! Commands of the operator.

use super::Person;
use harness::words;
use serde_json::{Value, json};

impl Person {
    fn command(&self, line: &str) -> Value {
        self.cli.json(&words(line))
    }

    pub(super) async fn operate(&self, round: usize) {
        let account = &self.tenant.account.id;
        let email = format!("user-{round}-{account}@example.com").to_lowercase();
        let line = format!("user create --account {account} --email {email} --role viewer --password-stdin");
        let made = self.cli.run_with_stdin(&words(&line), "a password of mine");
        assert_eq!(made.code, Some(0), "{made:?}");
        self.command(&format!("user reset-password --email {email}"));
        self.command(&format!("user remove --email {email}"));

        let key = self.command(&format!("api-key create --account {account} --mode live"));
        let key = key["keyId"].as_str().expect("an id");
        self.command(&format!("api-key revoke --account {account} --key {key}"));

        for end in ["confirm", "cancel"] {
            let reference = format!("{end}-{round}-{account}");
            let deposit = "--wallet user --amount 1 --pending";
            self.command(&format!(
                "deposit --account {account} {deposit} --reference {reference}"
            ));
            self.command(&format!("deposit {end} --reference {reference}"));
        }

        self.command("account create --name another --plan free");
        self.command(&format!("account set-plan --account {account} --plan startup"));
        self.command(&format!("account set-plan --account {account} --plan enterprise"));
        self.command(&format!("store accept --account {account}"));
        self.command("ip block 203.0.113.7/32");
        self.command("ip unblock 203.0.113.7/32");
        // Another model each time: an import that changes nothing writes nothing.
        let model = json!({ "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6,
            "output_cost_per_token": 2e-6, "supported_endpoints": ["/v1/chat/completions"] });
        let file = tempfile::NamedTempFile::new().expect("a file");
        let list = json!({ format!("{account}-{round}"): model });
        std::fs::write(&file, list.to_string()).expect("a list of prices");
        self.command(&format!("prices import {}", file.path().display()));
    }
}
