//! Ids that Tollgate creates: a prefix and a time-sortable random part (decision D3), such as `allow_01KAH3V9J8…` (26
//! characters of Crockford's base 32: 48 bits of milliseconds, 80 random bits).

use super::number::{self, Number};
use entropy::{NoEntropy, id_bits};

/// Characters after the prefix of an id.
pub const RANDOM_LEN: usize = ulid::ULID_LEN;

crate::words! {
    /// Kind of the named object. It determines the prefix.
    pub enum IdKind {
        /// An account: the tenant.
        Account = "acct_",
        /// A dashboard user.
        User = "usr_",
        /// A session of a dashboard user.
        Session = "ses_",
        /// An invitation to an account.
        Invitation = "inv_",
        /// A management API key.
        ApiKey = "key_",
        /// An agent created by `POST /agents`.
        Agent = "agent_",
        /// A wallet of an agent or of the account.
        Wallet = "wal_",
        /// A policy of an agent or of the account.
        Policy = "pol_",
        /// A stored provider key.
        ProviderKey = "pk_",
        /// A virtual key.
        VirtualKey = "vk_",
        /// A Cap decision, approved or denied.
        Allow = "allow_",
        /// A refusal before Cap ran.
        Deny = "deny_",
        /// A run id created for a call without one, and a request id.
        Request = "req_",
        /// A payout intent.
        Intent = "int_",
        /// A transaction, or a deposit that becomes one.
        Transaction = "txn_",
        /// An entry of the audit trail that is not a decision on a call.
        Audit = "aud_",
        /// A webhook's registration.
        Webhook = "wh_",
        /// A delivery of a webhook.
        Delivery = "whd_",
    }
}

impl IdKind {
    /// Returns the prefix, with its underscore.
    pub const fn prefix(self) -> &'static str {
        self.as_str()
    }

    /// Creates an id of this kind at `at_ms`.
    pub fn mint(self, at_ms: u64) -> Result<String, NoEntropy> {
        Ok(self.write(ulid::Ulid::from_parts(at_ms, id_bits()?)))
    }

    /// Creates an id of this kind with a number in its last 53 bits; the 27 bits before it are random.
    pub fn mint_with(self, at_ms: u64, number: Number) -> Result<String, NoEntropy> {
        let random = id_bits()? >> number::BITS << number::BITS;
        Ok(self.write(ulid::Ulid::from_parts(at_ms, random | u128::from(number.get()))))
    }

    /// Returns the number in an id of this kind, if it has one. A random id may seem to contain one.
    pub fn number_in(self, id: &str) -> Option<Number> {
        let bits = ulid::Ulid::from_string(id.strip_prefix(self.prefix())?).ok()?.0;
        let low = bits & ((1 << number::BITS) - 1);
        u64::try_from(low).ok().and_then(Number::from_u64)
    }

    /// Creates an id of this kind from given bits, so that the same request finds the same record.
    pub fn derived(self, bits: u128) -> String {
        self.write(ulid::Ulid(bits))
    }

    /// Creates the id of this kind for a number and a time. Deterministic.
    pub fn numbered(self, at_ms: u64, number: u64) -> String {
        self.write(ulid::Ulid::from_parts(at_ms, number.into()))
    }

    /// Returns whether `id` has the form of an id of this kind.
    pub fn has_form(self, id: &str) -> bool {
        let rest = id.strip_prefix(self.prefix()).unwrap_or_default();
        rest.len() == RANDOM_LEN && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    fn write(self, bits: ulid::Ulid) -> String {
        let mut id = String::with_capacity(self.prefix().len() + RANDOM_LEN);
        id.push_str(self.prefix());
        id.push_str(bits.array_to_str(&mut [0; RANDOM_LEN]));
        id
    }
}

/// Returns the creation time of an id, by its creator's clock; `None` if it is malformed.
pub fn made_at_ms(id: &str) -> Option<u64> {
    let (_, bits) = id.rsplit_once('_')?;
    ulid::Ulid::from_string(bits).ok().map(|bits| bits.timestamp_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_differ() {
        let early = IdKind::Allow.mint(1_000).unwrap();
        let late = IdKind::Allow.mint(2_000).unwrap();
        assert!(early < late);
        assert!(early.starts_with("allow_") && early.len() == 32);
        assert_ne!(IdKind::Deny.mint(5).unwrap(), IdKind::Deny.mint(5).unwrap());
    }

    #[test]
    fn an_id_carries_a_number_and_differs_from_others_that_do() {
        let number = Number::new(28_000_000_000, 417).unwrap();
        let (one, two) = (
            IdKind::Wallet.mint_with(5, number).unwrap(),
            IdKind::Wallet.mint_with(5, number).unwrap(),
        );
        assert_ne!(one, two);
        assert!(IdKind::Wallet.has_form(&one));
        for id in [&one, &two] {
            assert_eq!(IdKind::Wallet.number_in(id), Some(number));
            assert_eq!(made_at_ms(id), Some(5));
        }
        assert_eq!(IdKind::Wallet.number_in("wal_1"), None);
        assert_eq!(IdKind::Agent.number_in(&one), None);
    }

    #[test]
    fn ids_contain_their_kind_and_time() {
        let id = IdKind::Allow.mint(1_795_000_000_123).unwrap();
        assert_eq!(made_at_ms(&id), Some(1_795_000_000_123));
        assert!(IdKind::Allow.has_form(&id) && !IdKind::Deny.has_form(&id));
        for bad in [
            "",
            "allow_",
            "allow_1",
            "allow_01KAH3V9J80123456789ABCDE!",
            "01KAH3V9J80123456789ABCDEF",
        ] {
            assert!(!IdKind::Allow.has_form(bad) && made_at_ms(bad).is_none(), "{bad}");
        }
    }
}
