//! A row of the route table.

use axum::http::Method;
use domain::permission::Permission;
use domain::rate;
use domain::role::Role;

/// Prefixes of the management API; both serve the same handlers (decision D12).
pub const PREFIXES: [&str; 2] = ["/api/v1", "/v1"];

/// Prefix of the user API.
const USER_PREFIX: &str = "/api/user";
/// The path of the management API that is served there as well (decision D42).
const USER_PATH: &str = "/webhooks/{id}/deliveries";

/// Which API an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The management API.
    Management,
    /// The user API, for people who sign in (decision D55).
    User,
}

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An API key with the permission, or a session of the role or one above it.
    Key(Permission, Role),
    /// A session of the role or one above it; no API key.
    Session(Role),
    /// Anyone.
    Public,
}

/// Which modes a route works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Live and test; each sees its own records only.
    Both,
    /// Live only, else 400 `LIVE_MODE_REQUIRED`.
    LiveOnly,
}

/// Which rate of the plan a call with an API key counts against (decisions D10, D53). Sessions are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// The operations of specification §4.1: `wallet_requests_per_minute`.
    WalletMinute,
    /// The operations of specification §4.2: `agent_requests_per_day`.
    PerDay,
    /// All others: `management_requests_per_minute`.
    PerMinute,
    /// None: no API key can call it.
    Uncounted,
}

impl Rate {
    /// The rate that is counted.
    pub const fn counted(self) -> Option<rate::Rate> {
        match self {
            Self::WalletMinute => Some(rate::Rate::WalletMinute),
            Self::PerDay => Some(rate::Rate::PerDay),
            Self::PerMinute => Some(rate::Rate::PerMinute),
            Self::Uncounted => None,
        }
    }
}

/// A property of an operation beside its caller, modes and rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// It reads a query; any other operation refuses one.
    Query,
    /// Its answer waits until the change is as safe as `store.durability` says: it moves money, decides about it, or
    /// makes something with a name or a secret.
    Confirmed,
    /// It makes records with a budget (decision D71).
    Budgeted,
    /// An account can always call it, however much of the store it takes and whatever its other users and keys request:
    /// it ends, protects or decides about existing records (decision D71).
    GoesOn,
}

/// One operation.
#[derive(Debug)]
pub struct Route {
    /// The API it belongs to.
    pub base: Base,
    /// The method.
    pub method: Method,
    /// The path behind the prefix, with its parameters in braces.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Which modes it works in.
    pub modes: Modes,
    /// Which rate it counts against.
    pub rate: Rate,
    /// Its other properties.
    pub flags: &'static [Flag],
}

impl Route {
    /// Whether its row has the flag.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it reads a request body.
    pub fn has_body(&self) -> bool {
        matches!(self.method, Method::POST | Method::PATCH)
    }

    /// Whether it makes records that stay.
    pub(crate) fn makes_records(&self) -> bool {
        self.has_body() && self.base == Base::Management && !self.has(Flag::GoesOn)
    }

    /// The prefixes under which it is served.
    pub fn prefixes(&self) -> impl Iterator<Item = &'static str> {
        let management = (self.base == Base::Management).then_some(PREFIXES);
        let user = (self.base == Base::User || self.path == USER_PATH).then_some(USER_PREFIX);
        management.into_iter().flatten().chain(user)
    }
}
