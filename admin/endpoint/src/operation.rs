//! An operation: its row of the route table, and its handler. `S` is the state of the handler's crate.

use crate::call::Call;
use crate::reply::Answer;
use crate::route::Route;
use futures::future::BoxFuture;

#[doc(hidden)]
pub use axum::http::Method;
#[doc(hidden)]
pub use domain::permission::Permission;
#[doc(hidden)]
pub use domain::role::Role;

/// A handler: a function of a call with a known caller, or of a call by anyone.
pub enum Handler<S: 'static> {
    /// The caller is known and has the permission.
    Known(fn(Call<S>) -> BoxFuture<'static, Answer>),
    /// Anyone may call.
    Open(fn(Call<S, ()>) -> BoxFuture<'static, Answer>),
}

/// One operation. [`operations!`](crate::operations!) makes them.
pub struct Operation<S: 'static> {
    /// Its row of the route table.
    pub route: Route,
    /// Function that answers it.
    pub handler: Handler<S>,
}

/// Declares the operations of a resource, one per row: method, path after the prefix, access, modes, rate, handler, and
/// further properties ([`Flag`](crate::Flag)).
///
/// ```ignore
/// operations! {
///     /// Operations on agents.
///     ROUTES: ApiState, Management;
///
///     POST "/agents", key(Write, Admin),  Both, PerDay,    create, Confirmed, Budgeted;
///     GET  "/agents", key(Read, Viewer),  Both, PerMinute, list, Query;
/// }
/// ```
#[macro_export]
macro_rules! operations {
    (@access key($permission:ident, $role:ident)) => {
        $crate::Access::Key($crate::operation::Permission::$permission, $crate::operation::Role::$role)
    };
    (@access session($role:ident)) => {
        $crate::Access::Session($crate::operation::Role::$role)
    };
    (@access public) => {
        $crate::Access::Public
    };
    (@handler public, $handler:path) => {
        $crate::operation::Handler::Open(|call| Box::pin($handler(call)))
    };
    (@handler $access:ident, $handler:path) => {
        $crate::operation::Handler::Known(|call| Box::pin($handler(call)))
    };
    ($(#[$doc:meta])+ $name:ident: $state:ty, $base:ident;
     $($method:ident $path:literal, $access:ident $(($($who:tt)+))?, $modes:ident, $rate:ident, $handler:path
       $(, $flag:ident)*;)+) => {
        $(#[$doc])+
        pub(crate) static $name: &[$crate::Operation<$state>] = &[$($crate::Operation {
            route: $crate::Route {
                base: $crate::Base::$base,
                method: $crate::operation::Method::$method,
                path: $path,
                access: $crate::operations!(@access $access $(($($who)+))?),
                modes: $crate::Modes::$modes,
                rate: $crate::RouteRate::$rate,
                flags: &[$($crate::Flag::$flag),*],
            },
            handler: $crate::operations!(@handler $access, $handler),
        },)+];
    };
}
