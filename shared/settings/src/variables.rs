//! Environment variables with names like settings: those that match no setting are mistakes.

use crate::BadSettings;
use toml::{Table, Value};

pub(crate) const PREFIX: &str = "TOLLGATE_";
/// Variables of compose.yaml, which derives those of its containers from them. They start like a section.
const OF_COMPOSE: [&str; 3] = [
    "TOLLGATE_UPSTREAM_BASE_URL",
    "TOLLGATE_ADMIN_PUBLIC_URL",
    "TOLLGATE_ADMIN_BIND",
];

/// Reads the variables that may be settings. Other variables may contain any bytes.
///
/// # Errors
/// [`BadSettings`] with a variable whose value is not text.
pub(crate) fn read() -> Result<Vec<(String, String)>, BadSettings> {
    let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let ours = ours.filter(|(name, _)| name.starts_with(PREFIX));
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(BadSettings(format!("{name} is no UTF-8 text"))),
    })
    .collect()
}

/// Refuses a name without `__` that begins with a section, such as `TOLLGATE_STORE_URL`: the program would silently use
/// the default. Other names that begin with [`PREFIX`] belong to scripts, builds and tests.
///
/// # Errors
/// [`BadSettings`] names the variable and its right spelling.
pub(crate) fn check_name(name: &str, settings: &Table, more_sections: &[&str]) -> Result<(), BadSettings> {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default().to_lowercase();
    let known = settings.keys().map(String::as_str);
    let mut sections = known.chain(more_sections.iter().copied());
    let found = sections.find_map(|section| Some((section, rest.strip_prefix(section)?.strip_prefix('_')?)));
    let Some((section, key)) = found else {
        return Ok(());
    };
    if OF_COMPOSE.contains(&name) || is_service_link(key) {
        return Ok(());
    }
    let is_key = settings
        .get(section)
        .and_then(Value::as_table)
        .is_some_and(|keys| keys.contains_key(key));
    let spelling = match is_key {
        true => key.to_uppercase(),
        false => "<KEY>".to_owned(),
    };
    let section = match more_sections.contains(&section) {
        true => format!("{}__<NAME>", section.to_uppercase()),
        false => section.to_uppercase(),
    };
    Err(BadSettings(format!(
        "{name} is no setting: write {PREFIX}{section}__{spelling}, with two underscores"
    )))
}

/// Returns whether Kubernetes or Docker may have created the variable for a service with the name of a section
/// (`tollgate-admin`: `TOLLGATE_ADMIN_SERVICE_HOST`, `TOLLGATE_ADMIN_PORT_8081_TCP`). No key begins like that.
fn is_service_link(key: &str) -> bool {
    key == "port" || key.starts_with("port_") || key.starts_with("service_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_from;

    fn refused(name: &str) -> Option<String> {
        let loaded = load_from(None, std::iter::once((name.to_owned(), "x".to_owned())));
        loaded.err().map(|error| error.to_string())
    }

    #[test]
    fn a_misspelled_setting_is_named_with_the_right_spelling() {
        for (name, right) in [
            ("TOLLGATE_PROXY_LISTEN", "TOLLGATE_PROXY__LISTEN"),
            ("TOLLGATE_STORE_URL", "TOLLGATE_STORE__URL"),
            ("TOLLGATE_STORE_URL_FILE", "TOLLGATE_STORE__URL_FILE"),
            ("TOLLGATE_proxy_listen", "TOLLGATE_PROXY__LISTEN"),
            ("TOLLGATE_STORE_URI", "TOLLGATE_STORE__<KEY>"),
            (
                "TOLLGATE_UPSTREAMS_AZURE_BASE_URL",
                "TOLLGATE_UPSTREAMS__<NAME>__<KEY>",
            ),
        ] {
            let line = format!("{name} is no setting: write {right}, with two underscores");
            assert_eq!(refused(name), Some(line));
        }
    }

    #[test]
    fn variables_of_scripts_builds_and_services_are_left_alone() {
        for name in [
            "TOLLGATE_COMMIT",
            "TOLLGATE_REWRITE_DOCS",
            "TOLLGATE_UPSTREAM_BASE_URL",
            "TOLLGATE_ADMIN_BIND",
            "TOLLGATE_API_KEY",
            "TOLLGATE_STOREKEEPER",
            "TOLLGATE_ADMIN_SERVICE_HOST",
            "TOLLGATE_ADMIN_PORT",
            "TOLLGATE_ADMIN_PORT_8081_TCP_ADDR",
        ] {
            assert_eq!(refused(name), None, "{name}");
        }
    }

    /// A misspelled key with such a name would be ignored silently.
    #[test]
    fn no_key_begins_like_a_service_link() {
        let defaults: Table = include_str!("../../../config/tollgate.toml").parse().unwrap();
        let mut keys = defaults
            .values()
            .filter_map(Value::as_table)
            .flat_map(Table::keys);
        assert!(!keys.any(|key| is_service_link(key)));
    }
}
