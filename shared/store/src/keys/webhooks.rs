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

keys! {
    Bucket:
    /// Webhooks that have something to deliver, by when (sorted set of `<account> <mode> <webhook>`). While one is
    /// being delivered to, the time is the end of the lease.
    pub webhooks_ready() = "/webhooks-ready";
}

keys! {
    AccountKeys, mode:
    /// The account's webhooks (sorted set of ids by creation).
    pub webhooks() = "/webhooks";
    /// The violations that fired an event of their own in a minute (hash of agent to how many, and `/minute` and
    /// `/agents`: which minute, and how many agents). It ends a day after the last one.
    pub violations() = "/violations";
    /// The further ones, until they are reported at the minute's end (hash of `<reason> <agent>` to how many and
    /// which).
    pub(crate) violations_waiting() = "/violations/waiting";
    /// The same in the order of their first entries (sorted set).
    pub(crate) violations_order() = "/violations/order";
    /// A webhook's record (hash).
    pub webhook(id: &str) = "/webhook/", id;
    /// Its deliveries (hash of number to text).
    pub deliveries(id: &str) = "/webhook/", id, "/deliveries";
    /// Those of one state (sorted set of numbers).
    pub deliveries_in(id: &str, set: DeliverySet) = "/webhook/", id, "/", set.as_str();
}
