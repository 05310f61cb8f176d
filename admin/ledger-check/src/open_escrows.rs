//! The sets of open escrows. They prevent that an agent is deleted while an escrow that its account pays names it.

use super::book::AccountMode;
use super::drive::{Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use store::StoreError;
use store::read::Read;

/// Account, mode and owner of a set, and the number of an escrow in it.
type Member = (AccountMode, String, u64);

impl Pass<'_> {
    /// Checks that the escrows that hold money are in the sets of open escrows of their owners in the payer's account,
    /// and that these sets have no others.
    pub(super) async fn read_open_escrows(&mut self) -> Result<(), StoreError> {
        self.read_held().await?;
        let (store, accounts) = (self.store, self.accounts);
        let mut sets = Vec::new();
        for account_mode in accounts.account_modes() {
            let owners = self.page(account_mode).open_escrows.iter();
            sets.extend(owners.map(|owner| (account_mode, owner.clone())));
        }
        let jobs = sets.into_iter().map(|(account_mode, owner)| {
            let realm = accounts.realm(account_mode);
            Job::new(
                [Read::set(realm.bucket(), realm.open_escrows(&owner))],
                (account_mode, owner),
            )
            .with_weight(20)
        });
        let mut members: Vec<Member> = Vec::new();
        drive(store, jobs, |(account_mode, owner), mut answers| {
            let key = accounts.realm(account_mode).open_escrows(&owner);
            match answers.read::<Vec<u64>>() {
                None => self.add_violation(
                    Invariant::EscrowState,
                    &[&key],
                    "it is not a set of escrow numbers",
                ),
                Some(numbers) => {
                    self.count(numbers.len());
                    members.extend(
                        numbers
                            .into_iter()
                            .map(|number| (account_mode, owner.clone(), number)),
                    );
                }
            }
        })
        .await?;
        self.check_members(members).await
    }

    /// Checks that each member of a set is an escrow that holds money of the set's owner.
    async fn check_members(&mut self, members: Vec<Member>) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let fields = ["status", "from_owner", "to_account", "to_owner"].map(str::to_owned);
        let jobs = members.into_iter().map(|(account_mode, owner, number)| {
            let realm = accounts.realm(account_mode);
            let record = Read::fields(realm.bucket(), realm.escrow(number), &fields);
            Job::new([record], (account_mode, owner, number))
        });
        drive(store, jobs, |(account_mode, owner, number), mut answers| {
            let record = answers.read::<[Option<String>; 4]>().unwrap_or_default();
            let [status, from, to_account, to] = record.each_ref().map(Option::as_deref);
            let named =
                from == Some(&owner) || (to_account == Some(accounts.id(account_mode)) && to == Some(&owner));
            if named && matches!(status, Some("funded" | "disputed")) {
                return;
            }
            let realm = accounts.realm(account_mode);
            let (set, escrow) = (realm.open_escrows(&owner), realm.escrow(number));
            let status = status.unwrap_or("missing");
            let detail = match named {
                true => format!("escrow {number} is in the set of open escrows, but is {status}"),
                false => format!("escrow {number} is in the set of open escrows, but not one of {owner}"),
            };
            self.add_violation(Invariant::EscrowState, &[&set, &escrow], detail);
        })
        .await
    }

    async fn read_held(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut held = Vec::new();
        for account_mode in accounts.account_modes() {
            for escrow in std::mem::take(&mut self.page(account_mode).held) {
                let payer = accounts.realm(account_mode);
                let is_own = escrow.to_account == accounts.id(account_mode);
                let owners = [
                    Some(&escrow.from_owner),
                    Some(&escrow.to_owner).filter(|_| is_own),
                ];
                let sets = owners.into_iter().flatten();
                let sets = sets.map(|owner| (payer.bucket(), payer.open_escrows(owner)));
                held.extend(sets.map(|(bucket, set)| (account_mode, escrow.number, bucket, set)));
            }
        }
        let jobs = held.into_iter().map(|(account_mode, number, bucket, set)| {
            Job::new(
                [Read::is_member(bucket, &set, &number.to_string())],
                (account_mode, number, set),
            )
        });
        let mut missing = Vec::new();
        drive(store, jobs, |what, mut answers| {
            if answers.read::<bool>() != Some(true) {
                missing.push(what);
            }
        })
        .await?;
        let jobs = missing.into_iter().map(|(account_mode, number, set)| {
            let realm = accounts.realm(account_mode);
            let key = realm.escrow(number);
            Job::new([Read::field(realm.bucket(), &key, "status")], (set, key))
        });
        drive(store, jobs, |(set, key), mut answers| {
            // A resolution is final: an escrow that is unresolved now was so when the set was read.
            if matches!(answers.text().as_deref(), Some("funded" | "disputed")) {
                self.add_violation(
                    Invariant::EscrowState,
                    &[&key, &set],
                    "it holds money, but is not in the set of open escrows",
                );
            }
        })
        .await
    }
}
