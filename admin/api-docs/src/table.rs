//! The route table with every operation. Documentation is generated from it, and tests try every row (specification
//! §4.2 and §4.3, decisions D8 to D12). The resources declare the rows; this table combines them.

use endpoint::Route;
use std::sync::LazyLock;

/// Every row of the management API.
pub static ROUTES: LazyLock<Vec<&'static Route>> =
    LazyLock::new(|| api::operations().map(|operation| &operation.route).collect());
/// Every row of the user API.
pub static USER_ROUTES: LazyLock<Vec<&'static Route>> =
    LazyLock::new(|| people::operations().map(|operation| &operation.route).collect());

/// Returns every row.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(USER_ROUTES.iter()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;
    use domain::permission::Permission;
    use domain::role::Role;
    use endpoint::{Access, Modes, RouteRate};
    use std::collections::HashSet;

    #[test]
    fn permissions_follow_the_method() {
        for route in ROUTES.iter() {
            let decides = ["/intents/{id}/approve", "/intents/{id}/deny"].contains(&route.path);
            let expected = match (&route.method, decides) {
                (&Method::GET, _) => Permission::Read,
                (_, true) => Permission::Approve,
                (_, false) => Permission::Write,
            };
            let Access::Key(permission, _) = route.access else {
                continue;
            };
            assert_eq!(permission, expected, "{} {}", route.method, route.path);
            let known = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
            assert!(
                known.contains(&route.method),
                "`filter` does not know {}",
                route.method
            );
        }
    }

    #[test]
    fn provider_and_virtual_keys_are_live_only() {
        for route in ROUTES.iter() {
            let keys = route.path.contains("provider-keys") || route.path.contains("virtual-keys");
            assert_eq!(
                keys,
                route.modes == Modes::LiveOnly,
                "{} {}",
                route.method,
                route.path
            );
        }
    }

    #[test]
    fn no_operation_is_listed_twice() {
        let mut seen = HashSet::new();
        for route in routes() {
            for prefix in route.prefixes() {
                let path = format!("{prefix}{}", route.path);
                assert!(
                    seen.insert((&route.method, path)),
                    "{} {}",
                    route.method,
                    route.path
                );
            }
        }
    }

    #[test]
    fn only_what_a_key_can_call_is_counted() {
        for route in routes() {
            let counted = route.rate != RouteRate::Uncounted;
            let by_key = matches!(route.access, Access::Key(..));
            assert_eq!(counted, by_key, "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn looking_changes_nothing_and_needs_no_more_than_a_viewer() {
        let team = ["/invitations", "/api-keys"];
        for route in routes() {
            let least = match route.access {
                Access::Key(_, role) | Access::Session(role) => role,
                Access::Public => continue,
            };
            if route.method == Method::GET && !team.contains(&route.path) {
                assert_eq!(least, Role::Viewer, "{}", route.path);
            }
        }
    }
}
