//! `secrets.master_key` and `secrets.master_key_file`: exactly one of them provides the master keys.

use crate::{BadSettings, Settings};
use crypto::seal::{Keyring, MasterKeyError};
use secrecy::{ExposeSecret as _, SecretString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use toml::{Table, Value};

/// Folder in which Docker shows secrets to a container, with the file modes of the host. The folder's own mode keeps
/// other users out.
const SHOWN_BY_DOCKER: &str = "/run/secrets";
/// Permission bits of users who are neither owner nor in the group.
const ANY_BY_OTHERS: u32 = 0o007;

/// The section of both.
pub(crate) const SECTION: &str = "secrets";
const KEY: &str = "master_key";
const FILE: &str = "master_key_file";

/// Refuses a file that sets both keys.
///
/// # Errors
/// [`BadSettings`] with both keys.
pub(crate) fn check_file(given: &Table) -> Result<(), BadSettings> {
    let is_given = |key: &str| {
        let value = given.get(SECTION).and_then(|keys| keys.get(key));
        value.and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    match is_given(KEY) && is_given(FILE) {
        true => Err(BadSettings(format!(
            "`{SECTION}.{KEY}` and `{SECTION}.{FILE}` are both set: remove one of them"
        ))),
        false => Ok(()),
    }
}

/// Makes a setting in the environment override the other one in the file (decision D58). `variables` are those of the
/// section, with their keys.
///
/// # Errors
/// [`BadSettings`] with both variables.
pub(crate) fn apply_environment_override<'a>(
    settings: &mut Table,
    variables: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), BadSettings> {
    let (mut key, mut file) = (None, None);
    for (name, of) in variables {
        match of {
            KEY => key = Some(name),
            FILE => file = Some(name),
            _ => {}
        }
    }
    let beaten = match (key, file) {
        (Some(key), Some(file)) => {
            return Err(BadSettings(format!(
                "{key} and {file} are both set: remove one of them"
            )));
        }
        (Some(_), None) => FILE,
        (None, Some(_)) => KEY,
        (None, None) => return Ok(()),
    };
    if let Some(slot) = settings.get_mut(SECTION).and_then(|keys| keys.get_mut(beaten)) {
        *slot = Value::String(String::new());
    }
    Ok(())
}

impl Settings {
    /// Returns the master keys.
    ///
    /// # Errors
    /// [`BadSettings`] if there is none, or one is malformed; the text never contains a key.
    pub fn keyring(&self) -> Result<Keyring, BadSettings> {
        let file = &self.secrets.master_key_file;
        let (named, text): (String, SecretString) = if file.as_os_str().is_empty() {
            let keys = self.secrets.master_key.expose_secret().replace(',', "\n");
            ("secrets.master_key".to_owned(), keys.into())
        } else {
            let named = format!("secrets.master_key_file {}", file.display());
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| BadSettings(format!("{named}: {error}")))?;
            (named, text.into())
        };
        Keyring::new(text.expose_secret().lines()).map_err(|error| {
            BadSettings(match error {
                // It names the settings itself.
                MasterKeyError::None => error.to_string(),
                _ => format!("{named}: {error}"),
            })
        })
    }

    /// Returns a line about a file of master keys that every user of the machine can read or change.
    pub fn master_key_warning(&self) -> Option<String> {
        let file = &self.secrets.master_key_file;
        if file.as_os_str().is_empty() || file.starts_with(SHOWN_BY_DOCKER) {
            return None;
        }
        exposed_mode(file).map(|mode| {
            format!(
                "secrets.master_key_file {}: every user of this machine may use it (mode {mode:04o}); 0400, or \
                 0440 for a group, is enough",
                file.display()
            )
        })
    }
}

/// Returns the mode of a file if other users have any access to it.
fn exposed_mode(file: &Path) -> Option<u32> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode() & 0o7777;
    (mode & ANY_BY_OTHERS != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_from;

    const IN_ENV: (&str, &str) = ("TOLLGATE_SECRETS__MASTER_KEY", "a2V5");
    const FILE_IN_ENV: (&str, &str) = ("TOLLGATE_SECRETS__MASTER_KEY_FILE", "/env/master.key");

    fn load(file: &str, env: &[(&str, &str)]) -> Result<(String, String), String> {
        let env = env
            .iter()
            .map(|(name, value)| (String::from(*name), String::from(*value)));
        let loaded = load_from(Some(&format!("[secrets]\n{file}\n")), env);
        let secrets = loaded.map_err(|error| error.to_string())?.secrets;
        Ok((
            secrets.master_key.expose_secret().to_owned(),
            secrets.master_key_file.display().to_string(),
        ))
    }

    #[test]
    fn both_in_one_place_are_refused_by_name() {
        let error = load("", &[IN_ENV, FILE_IN_ENV]).unwrap_err();
        assert!(
            error.contains(IN_ENV.0) && error.contains(FILE_IN_ENV.0),
            "{error}"
        );
        assert!(!error.contains("a2V5"), "{error}");
        let error = load("master_key = \"a2V5\"\nmaster_key_file = \"/x\"", &[]).unwrap_err();
        let both = ["`secrets.master_key`", "`secrets.master_key_file`"];
        assert!(both.iter().all(|key| error.contains(key)), "{error}");
        // An empty value counts as absent.
        let none = (FILE_IN_ENV.0, "");
        assert_eq!(load("", &[IN_ENV, none]).unwrap().0, "a2V5");
    }

    #[test]
    fn the_one_in_the_environment_wins_over_the_other_one_in_the_file() {
        let (key, file) = load("master_key_file = \"/file/master.key\"", &[IN_ENV]).unwrap();
        assert_eq!((&*key, &*file), ("a2V5", ""));
        let (key, file) = load("master_key = \"b2xk\"", &[FILE_IN_ENV]).unwrap();
        assert_eq!((&*key, &*file), ("", "/env/master.key"));
        let (key, file) = load("master_key_file = \"/file/master.key\"", &[]).unwrap();
        assert_eq!((&*key, &*file), ("", "/file/master.key"));
    }

    #[test]
    fn a_file_that_everybody_can_read_is_warned_of() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let settings = |path: &str| {
            let env = std::iter::once((FILE_IN_ENV.0.to_owned(), path.to_owned()));
            load_from(None, env).unwrap()
        };
        for (mode, is_warned) in [
            (0o400, false),
            (0o600, false),
            (0o440, false),
            (0o644, true),
            (0o602, true),
        ] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let warning = settings(&path).master_key_warning();
            assert_eq!(warning.is_some(), is_warned, "{mode:o}");
            let names = |line: String| line.contains(&path) && line.contains(&format!("{mode:04o}"));
            assert!(warning.is_none_or(names));
        }
        assert_eq!(settings("/run/secrets/master_key").master_key_warning(), None);
        assert_eq!(settings("").master_key_warning(), None);
    }
}
