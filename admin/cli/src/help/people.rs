//! Help of the commands about people who sign in.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        path: "user create",
        about: "Creates somebody who signs in to the dashboard. An e-mail has one user in each account. The \
                password comes on standard input, one line, at least 8 characters, and is kept as an argon2id hash only.",
        changes: "a new user of the account, audited as user.created.",
        examples: &[
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin user create \\\n    \
                     --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --email bo@example.com --role viewer --password-stdin",
        ],
        refused: "there is no such account, a user of it has the e-mail, or it has too many users",
    },
    Page {
        path: "user list",
        about: "Lists the users of an account, newest first: role, whether there is a second factor, and the last login.",
        changes: "nothing.",
        examples: &["tollgate-admin user list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account",
    },
    Page {
        path: "user set-role",
        about: "Gives a user another role. Sessions go on with it: the role is read with every call.",
        changes: "the user's role, audited as user.role_changed; nothing when it was that already.",
        examples: &["tollgate-admin user set-role --email bo@example.com --role manager"],
        refused: "no user has the e-mail, or users of several accounts and none is named, or the account would be without an owner",
    },
    Page {
        path: "user reset-password",
        about: "Without --password-stdin it prints a link with which the user sets a new password, once and within an hour; \
                hand it over on a way that nobody else reads. With it the password comes on standard input, one line, at \
                least 8 characters, and all sessions of the user end.",
        changes: "a link that waits, audited as user.reset_issued; or the password, audited as user.password_changed.",
        examples: &[
            "tollgate-admin user reset-password --email bo@example.com",
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin user reset-password --email bo@example.com --password-stdin",
        ],
        refused: "no user has the e-mail, or users of several accounts and none is named, or the user is changed at the same moment",
    },
    Page {
        path: "user remove",
        about: "Removes a user, without a question: all sessions end, the API keys that the user made are revoked (unless \
                --keep-api-keys), and the e-mail is free again. What the user did stays in the audit trail.",
        changes: "the user, its sessions and API keys, audited as user.removed.",
        examples: &["tollgate-admin user remove --email bo@example.com"],
        refused: "no user has the e-mail, or users of several accounts and none is named, or the account would be without an owner",
    },
    Page {
        path: "user unlock",
        about: "Lets a user try to sign in again, whose login was locked after ten wrong passwords.",
        changes: "the count of attempts, audited as user.unlocked.",
        examples: &["tollgate-admin user unlock --email bo@example.com"],
        refused: "no user has the e-mail, or users of several accounts and none is named",
    },
    Page {
        path: "user disable-totp",
        about: "Takes a user's second factor away when the device and the recovery codes are lost. Be sure who asks: the \
                password alone signs in afterwards. All sessions end.",
        changes: "the user's second factor, audited as user.totp_disabled; nothing when there was none.",
        examples: &["tollgate-admin user disable-totp --email bo@example.com"],
        refused: "no user has the e-mail, or users of several accounts and none is named",
    },
];
