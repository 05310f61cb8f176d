//! A row of the route table.

use axum::http::Method;
use domain::permission::Permission;
use domain::rate;
use domain::role::Role;

/// Prefixes of the management API. Both have the same handlers (decision D12).
pub const PREFIXES: [&str; 2] = ["/api/v1", "/v1"];

const USER_PREFIX: &str = "/api/user";
/// Path of the management API that is also served in the user API (decision D42).
const USER_PATH: &str = "/webhooks/{id}/deliveries";

/// The API of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The management API.
    Management,
    /// The user API, for signed-in users (decision D55).
    User,
}

/// Required authentication and permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An API key with the permission, or a session with at least this role.
    Key(Permission, Role),
    /// A session with at least this role, but no API key.
    Session(Role),
    /// Anyone.
    Public,
}

/// Modes in which a route works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Live and test; each has its own records only.
    Both,
    /// Live only; otherwise 400 `LIVE_MODE_REQUIRED`.
    LiveOnly,
}

/// The plan's rate that a call with an API key counts against (decisions D10, D53). Sessions are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteRate {
    /// The operations of specification §4.1: `wallet_requests_per_minute`.
    WalletMinute,
    /// The operations of specification §4.2: `agent_requests_per_day`.
    PerDay,
    /// All others: `management_requests_per_minute`.
    PerMinute,
    /// None: the route cannot be called with an API key.
    Uncounted,
}

impl RouteRate {
    /// Returns the rate to count.
    pub const fn counted(self) -> Option<rate::Rate> {
        match self {
            Self::WalletMinute => Some(rate::Rate::WalletMinute),
            Self::PerDay => Some(rate::Rate::PerDay),
            Self::PerMinute => Some(rate::Rate::PerMinute),
            Self::Uncounted => None,
        }
    }
}

/// A property of an operation in addition to its access, modes and rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// It accepts a query; other operations refuse one.
    Query,
    /// Its answer waits until the change has the durability of `store.durability`: it moves money, decides about it, or
    /// creates an object with a name or a secret.
    Confirmed,
    /// It creates records with a budget (decision D71).
    Budgeted,
    /// It ends, protects or decides about existing records (decision D71). An account can always call it, even if it
    /// uses too much of the store or its other users and keys have reached their limits.
    AlwaysAllowed,
}

/// One operation.
#[derive(Debug)]
pub struct Route {
    /// API of the operation.
    pub base: Base,
    /// HTTP method of the route.
    pub method: Method,
    /// Path after the prefix, with its parameters in braces.
    pub path: &'static str,
    /// Required authentication and permission.
    pub access: Access,
    /// Modes in which it works.
    pub modes: Modes,
    /// Rate that it counts against.
    pub rate: RouteRate,
    /// Further properties.
    pub flags: &'static [Flag],
}

impl Route {
    /// Returns whether its row has the flag.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns whether it reads a request body.
    pub fn has_body(&self) -> bool {
        matches!(self.method, Method::POST | Method::PATCH)
    }

    /// Returns whether its handler can change records. A read can if it waits for the durability of its change.
    pub(crate) fn changes(&self) -> bool {
        self.method != Method::GET || self.has(Flag::Confirmed)
    }

    /// Returns whether it creates permanent records.
    pub(crate) fn makes_records(&self) -> bool {
        self.has_body() && self.base == Base::Management && !self.has(Flag::AlwaysAllowed)
    }

    /// Returns the prefixes under which it is served.
    pub fn prefixes(&self) -> impl Iterator<Item = &'static str> {
        let management = (self.base == Base::Management).then_some(PREFIXES);
        let user = (self.base == Base::User || self.path == USER_PATH).then_some(USER_PREFIX);
        management.into_iter().flatten().chain(user)
    }
}
