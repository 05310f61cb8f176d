//! Help of the commands that stop unwanted activity, and that verify records.

use super::HelpPage;
use crate::context::CommandKind;

pub(super) const PAGES: &[HelpPage] = &[
    HelpPage {
        path: "agent freeze",
        about: "Denies every further call and spend of an agent, on every edge. Only the operator can lift this \
                freeze; it replaces a freeze by the account.",
        kind: CommandKind::Change,
        changes: "the agent's state, audited as agent.frozen by `operator`; nothing if the operator had frozen it \
                  already.",
        examples: &[
            "tollgate-admin agent freeze --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --agent my-bot --mode live",
        ],
        refused: "there is no such account, or it has no such agent in that mode",
    },
    HelpPage {
        path: "agent unfreeze",
        about: "Makes an agent active again, whether the operator or the account froze it.",
        kind: CommandKind::Change,
        changes: "the agent's state, audited as agent.unfrozen by `operator`; nothing if it was active already.",
        examples: &["tollgate-admin agent unfreeze --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --agent my-bot"],
        refused: "there is no such account, or it has no such agent in that mode",
    },
    HelpPage {
        path: "ip block",
        about: "Blocks an address or range. The edge, the management API and the dashboard answer its requests with \
                403 IP_BLOCKED, with any key. A caller's address is determined by network.trusted_proxies. An IPv4 \
                range below /8, or an IPv6 range below /16, is refused without --force.",
        kind: CommandKind::Change,
        changes: "the list of the installation, which it prints; both servers follow within seconds.",
        examples: &["tollgate-admin ip block 203.0.113.7 --reason 'guesses keys'"],
        refused: "the list already has the maximum number of ranges",
    },
    HelpPage {
        path: "ip unblock",
        about: "Removes a range from the list. It must be given as it was blocked. The command warns if a wider \
                blocked range contains it.",
        kind: CommandKind::Change,
        changes: "the list of the installation, which it prints; both servers follow within seconds.",
        examples: &["tollgate-admin ip unblock 203.0.113.7"],
        refused: "the store has no ledger, or does not answer",
    },
    HelpPage {
        path: "ip list",
        about: "Lists the blocked ranges with the time and the reason of each.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin ip list --json"],
        refused: "the store has no ledger, or does not answer",
    },
    HelpPage {
        path: "audit verify",
        about: "Checks every entry and link of an audit trail, and that its end was not cut off: in store and \
                archive, or in an export with --file. An export is compared with the store, or with a signed \
                checkpoint if the store cannot be reached; with --checkpoint and --key the check needs nothing else. \
                To prove the end, a checkpoint must cover the entries older than two rounds of the checkpoint worker. \
                An archive that does not answer proves nothing.",
        kind: CommandKind::Read,
        changes: "nothing; in the store, waiting entries are sealed first.",
        examples: &[
            "tollgate-admin audit verify --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin audit verify --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --file trail.jsonl \\\n    \
             --checkpoint trail.note --key z0t+5S+nxEnq5jes7L4NS1QEDDTFUn9aNdPRibicphg=",
        ],
        refused: "an entry was changed (the first one is named), or there is no such account",
    },
    HelpPage {
        path: "audit recompute",
        about: "Recomputes the charge of each approved call of an account from its entry in the audit trail and the \
                price table of its version, and lists differences, at most 100. A charge without usage is compared \
                with its estimate. Entries of earlier releases lack service tier, sound and cache writes, so such \
                calls can be listed as different. `audit verify` proves the entries themselves.",
        kind: CommandKind::Read,
        changes: "nothing; waiting entries are sealed first.",
        examples: &[
            "tollgate-admin audit recompute --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin audit recompute --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
             --from 2026-11-01 --to 2026-12-01 --json",
        ],
        refused: "a charge is different, or there is no such account",
    },
    HelpPage {
        path: "audit export",
        about: "Writes an audit trail as JSON Lines, each entry exactly as it was hashed. With --checkpoint it also \
                signs the end of the trail, so that a later removal of entries is detected. --json needs --out.",
        kind: CommandKind::Read,
        changes: "files only; waiting entries are sealed first.",
        examples: &[
            "tollgate-admin audit export --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --out trail.jsonl \\\n    \
             --checkpoint trail.note",
            "tollgate-admin audit export --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode test | head -1",
        ],
        refused: "there is no such account, the trail is broken or contradicts its checkpoint, or a file cannot be \
                  written",
    },
    HelpPage {
        path: "audit manifests",
        about: "Compares the manifest of each archived segment of a trail with the segment and with the store's \
                description, and rebuilds missing or changed ones from their segments.",
        kind: CommandKind::Change,
        changes: "those manifests in the archive; a replaced file is kept beside the new one. Files that \
                  root writes belong to the owner of the archive's directory.",
        examples: &["tollgate-admin audit manifests --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account, or a segment is missing or changed, too",
    },
    HelpPage {
        path: "audit key",
        about: "Shows the public key that verifies signed checkpoints. Keep it away from the store: with it an export \
                can be verified without trust in the store.",
        kind: CommandKind::Read,
        changes: "nothing; the key is created if there is none yet.",
        examples: &["tollgate-admin audit key > checkpoint.pub"],
        refused: "the key does not open with the configured master keys",
    },
    HelpPage {
        path: "ledger check",
        about: "Recomputes balances, transfers, escrows, intents, counters, holds and the audit sequence from their \
                records, while the system runs, and lists each violated invariant with its records. Records that \
                change meanwhile are read again. Money in transit between accounts, on a cluster also that of the \
                last seconds, looks like missing money, and a record may be wrong in another way each time: findings \
                that three attempts cannot decide are `inconclusive`, with `ok` false and exit code 3, and so is what \
                an archive that does not answer holds. With --trail the command also reads and verifies the whole \
                audit trail and compares the books with it: numbers that were changed consistently in all books are `trail` \
                violations, with the record, both numbers and the audit entry. So are accounts and entries that \
                checkpoints in the archive know and the store does not.",
        kind: CommandKind::Read,
        changes: "nothing; --trail seals new entries of the trails.",
        examples: &[
            "tollgate-admin ledger check --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json",
            "tollgate-admin ledger check --trail",
        ],
        refused: "an invariant is violated, or there is no such account",
    },
];
