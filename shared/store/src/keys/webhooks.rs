//! The key names of webhooks and their deliveries.

use super::{AccountKeys, Bucket};
use domain::mode::Mode;

domain::words! {
    /// Which deliveries of a webhook a sorted set names.
    pub enum DeliverySet {
        /// Waiting for their time, by that.
        Due = "due",
        /// Waiting for a later event, by the number of the last event they had.
        Parked = "parked",
        /// Accepted by the receiver, by when.
        Delivered = "delivered",
        /// Given up, by when.
        Failed = "failed",
    }
}

impl Bucket {
    /// Webhooks that have something to deliver, by when (sorted set of `<account> <mode> <webhook>`). While one is
    /// being delivered to, the time is the end of the lease.
    pub fn webhooks_ready(self) -> String {
        format!("{{b{:04}}}/webhooks-ready", self.0)
    }
}

impl AccountKeys {
    /// The account's webhooks (sorted set of ids by creation).
    pub fn webhooks(&self, mode: Mode) -> String {
        format!("{}/{mode}/webhooks", self.base)
    }

    /// The violations that fired an event of their own in a minute (hash of agent to how many, and `/minute` and
    /// `/agents`: which minute, and how many agents). It ends a day after the last one.
    pub fn violations(&self, mode: Mode) -> String {
        format!("{}/{mode}/violations", self.base)
    }

    /// The further ones, until they are reported at the minute's end (hash of `<reason> <agent>` to how many and
    /// which).
    pub(crate) fn violations_waiting(&self, mode: Mode) -> String {
        format!("{}/{mode}/violations/waiting", self.base)
    }

    /// The same in the order of their first entries (sorted set).
    pub(crate) fn violations_order(&self, mode: Mode) -> String {
        format!("{}/{mode}/violations/order", self.base)
    }

    /// A webhook's record (hash).
    pub fn webhook(&self, mode: Mode, id: &str) -> String {
        format!("{}/{mode}/webhook/{id}", self.base)
    }

    /// Its deliveries (hash of number to text).
    pub fn deliveries(&self, mode: Mode, id: &str) -> String {
        format!("{}/{mode}/webhook/{id}/deliveries", self.base)
    }

    /// Those of one state (sorted set of numbers).
    pub fn deliveries_in(&self, mode: Mode, id: &str, set: DeliverySet) -> String {
        format!("{}/{mode}/webhook/{id}/{}", self.base, set.as_str())
    }
}
