//! Reading and comparing users and the look-ups of their e-mail addresses.

use super::ListedUser;
use crate::drive::{Job, drive};
use crate::pass::Pass;
use crate::reconcile::{Comparison, Side};
use crate::violation::Invariant;
use std::collections::{HashMap, HashSet};
use store::StoreError;
use store::keys::user_lookup;
use store::read::{Answers, Read};
use store::user::StoredUser;
use store::user::email::{ACCOUNTS_MAX, EmailOwner};

impl Pass<'_> {
    /// Processes the users of an account.
    pub(crate) fn users(&mut self, account: &str, key: &str, mut answers: Answers) {
        let Some(records) = answers.read::<HashMap<String, String>>() else {
            return self.add_violation(Invariant::Names, &[key], "it is not a hash of users");
        };
        let mut ids = HashSet::new();
        for (email, text) in records {
            let Ok(StoredUser { user, .. }) = StoredUser::parse(text) else {
                self.add_violation(Invariant::Names, &[key], "the record of a user is malformed");
                continue;
            };
            if user.email != email {
                let detail = format!("{} is stored under an e-mail that is not its own", user.id);
                self.add_violation(Invariant::Names, &[key], detail);
            }
            if !ids.insert(user.id.clone()) {
                let detail = format!("two users have the id {}", user.id);
                self.add_violation(Invariant::Names, &[key], detail);
            }
            self.emails.0.push(ListedUser {
                users: key.to_owned(),
                owner: EmailOwner {
                    account: account.to_owned(),
                    user: user.id,
                },
                lookup: user_lookup(&email),
            });
        }
    }

    /// Processes the look-up of an e-mail address.
    pub(crate) fn email_lookup(&mut self, key: &str, mut answers: Answers) {
        let text = answers.text().unwrap_or_default();
        let mut accounts = HashSet::new();
        for EmailOwner { account, .. } in EmailOwner::parse(&text) {
            if !accounts.insert(account.clone()) {
                let detail = format!("it names two users of {account}");
                self.add_violation(Invariant::Names, &[key], detail);
                continue;
            }
            self.reconcile_across(Comparison::Email, Side::Match, key, &[&account]);
        }
    }

    /// Reads the look-ups of the collected users.
    pub(crate) async fn read_email_lookups(&mut self) -> Result<(), StoreError> {
        let listed = std::mem::take(&mut self.emails.0);
        let jobs = listed
            .into_iter()
            .map(|user| Job::new([Read::global(&user.lookup)], user));
        drive(self.store, jobs, |user, mut answers| {
            let text = answers.text().unwrap_or_default();
            self.compare_listed(&user, &EmailOwner::parse(&text));
        })
        .await
    }

    /// Compares a user with the users in its look-up.
    fn compare_listed(&mut self, user: &ListedUser, owners: &[EmailOwner]) {
        let ListedUser { users, owner, lookup } = user;
        let there = owners.iter().find(|other| other.account == owner.account);
        let detail = match there {
            Some(there) if there.user == owner.user => None,
            Some(there) => Some(format!(
                "its look-up names {} instead of {}",
                there.user, owner.user
            )),
            // Users beyond the maximum must name their account to sign in.
            None if owners.len() >= ACCOUNTS_MAX => return,
            None => Some(format!("no look-up names {}", owner.user)),
        };
        if there.is_some() && !self.accounts.partial {
            self.reconcile_across(Comparison::Email, Side::Record, lookup, &[&owner.account]);
        }
        if let Some(detail) = detail {
            self.add_violation(Invariant::Names, &[users, lookup], detail);
        }
    }
}
