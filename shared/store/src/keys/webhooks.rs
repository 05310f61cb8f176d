//! The key names of webhooks and their deliveries.

use super::{Bucket, Realm};

domain::words! {
    /// A state of deliveries of a webhook, with its own sorted set.
    pub enum DeliverySet {
        /// Waiting for their time, by that.
        Due = "due",
        /// Waiting for a later event, by the number of the last event they tried.
        Parked = "parked",
        /// Accepted by the receiver, by when.
        Delivered = "delivered",
        /// Given up, by time.
        Failed = "failed",
    }
}

keys! {
    Bucket:
    /// Webhooks with pending deliveries, by due time (sorted set of `<account> <mode> <webhook>`). During a delivery
    /// the time is the end of the lease.
    pub webhooks_ready() = "/webhooks-ready";
}

keys! {
    Realm:
    /// The account's webhooks (sorted set of ids by creation).
    pub webhooks() = "/webhooks";
    /// The violations that caused their own event in a minute (hash of agent to count, and of `/minute` and `/agents`
    /// to the minute and the number of agents). Expires a day after the last one.
    pub violations() = "/violations";
    /// The further violations, until they are reported at the end of the minute (hash of `<reason> <agent>` to their
    /// number and range).
    pub violations_waiting() = "/violations/waiting";
    /// The same groups in the order of their first entries (sorted set).
    pub violations_order() = "/violations/order";
    /// A webhook's record (hash).
    pub webhook(id: &str) = "/webhook/", id;
    /// Deliveries of a webhook (hash of number to text).
    pub deliveries(id: &str) = "/webhook/", id, "/deliveries";
    /// Deliveries in one state (sorted set of numbers).
    pub deliveries_in(id: &str, set: DeliverySet) = "/webhook/", id, "/", set.as_str();
}
