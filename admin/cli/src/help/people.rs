//! Help of the commands about dashboard users.

use super::HelpPage;
use crate::context::CommandKind;

pub(super) const PAGES: &[HelpPage] = &[
    HelpPage {
        path: "user create",
        about: "Creates a user, who can sign in to the dashboard. The password needs at least 8 characters; only its \
                argon2id hash is stored.",
        kind: CommandKind::Change,
        changes: "a new user of the account, audited as user.created.",
        examples: &[
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin user create \\\n    \
                     --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --email bo@example.com --role viewer --password-stdin",
        ],
        refused: "there is no such account, a user of it has the e-mail, or it has too many users",
    },
    HelpPage {
        path: "user list",
        about: "Lists the users of an account, newest first: role, second factor, last login.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin user list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account",
    },
    HelpPage {
        path: "user set-role",
        about: "Changes a user's role, from the next call on. Sessions stay.",
        kind: CommandKind::Change,
        changes: "the user's role, audited as user.role_changed. Below admin it also revokes the user's API keys; a \
                  repeated command revokes those that are still valid.",
        examples: &["tollgate-admin user set-role --email bo@example.com --role manager"],
        refused: "no user, or users of several accounts, have the e-mail, or the account would be without an owner",
    },
    HelpPage {
        path: "user reset-password",
        about: "Prints a link with which the user sets a new password, once and within an hour. Send it over a \
                private channel. With --password-stdin the command sets the password itself (at least 8 characters), \
                and all sessions of the user end.",
        kind: CommandKind::Change,
        changes: "an unused link, audited as user.reset_issued; or the password, audited as user.password_changed.",
        examples: &[
            "tollgate-admin user reset-password --email bo@example.com",
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin user reset-password --email bo@example.com \\\n    \
             --password-stdin",
        ],
        refused: "no user, or users of several accounts, have the e-mail, or the user is changed at the same moment",
    },
    HelpPage {
        path: "user remove",
        about: "Removes a user: all sessions end, and the e-mail is free again. What the user did stays in the audit \
                trail.",
        kind: CommandKind::Change,
        changes: "the user, its sessions and API keys, audited as user.removed.",
        examples: &["tollgate-admin user remove --email bo@example.com"],
        refused: "no user, or users of several accounts, have the e-mail, or the account would be without an owner",
    },
    HelpPage {
        path: "user unlock",
        about: "Unlocks a user after ten wrong passwords.",
        kind: CommandKind::Change,
        changes: "the count of attempts, audited as user.unlocked.",
        examples: &["tollgate-admin user unlock --email bo@example.com"],
        refused: "no user, or users of several accounts, have the e-mail",
    },
    HelpPage {
        path: "user disable-totp",
        about: "Removes the second factor of a user who lost device and recovery codes. Verify who asks for it: \
                afterwards the password alone signs in. All sessions end.",
        kind: CommandKind::Change,
        changes: "the user's second factor, audited as user.totp_disabled; nothing if there was none.",
        examples: &["tollgate-admin user disable-totp --email bo@example.com"],
        refused: "no user, or users of several accounts, have the e-mail",
    },
];
