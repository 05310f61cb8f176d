//! Help of the commands that stop unwanted activity, and that verify records.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        path: "agent freeze",
        about: "Denies every call and spend of an agent, from the next one on, on every edge. Only the operator can \
                lift it; a freeze that the account made becomes the operator's.",
        changes: "the agent's state, audited as agent.frozen by `operator`; nothing when it was frozen so already.",
        examples: &[
            "tollgate-admin agent freeze --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --agent my-bot --mode live",
        ],
        refused: "there is no such account, or it has no such agent in that mode",
    },
    Page {
        path: "agent unfreeze",
        about: "Makes an agent active again, whoever froze it.",
        changes: "the agent's state, audited as agent.unfrozen by `operator`; nothing when it was active already.",
        examples: &["tollgate-admin agent unfreeze --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --agent my-bot"],
        refused: "there is no such account, or it has no such agent in that mode",
    },
    Page {
        path: "ip block",
        about: "The edge, the management API and the dashboard answer the address or range with 403 IP_BLOCKED, \
                whatever key it has. Addresses are those that callers have after network.trusted_proxies. An IPv4 range \
                below /8, or an IPv6 range below /16, is refused without --force.",
        changes: "the list of the installation, which it prints; both servers follow within seconds.",
        examples: &["tollgate-admin ip block 203.0.113.7 --reason 'guesses keys'"],
        refused: "as many ranges are blocked as can be",
    },
    Page {
        path: "ip unblock",
        about: "Takes a range off the list, named as it was blocked, and says if a wider range that holds it is \
                still there.",
        changes: "the list of the installation, which it prints; both servers follow within seconds.",
        examples: &["tollgate-admin ip unblock 203.0.113.7"],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "ip list",
        about: "Lists the blocked ranges with the time and the reason of each.",
        changes: "nothing.",
        examples: &["tollgate-admin ip list --json"],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "audit verify",
        about: "Checks every entry and link of an audit trail, and that its end was not cut off: in store and \
                archive, or in an export with --file. An export is compared with the store, or, where that cannot be \
                reached, with a signed checkpoint; with --checkpoint and --key it depends on nothing but these two. \
                What is older than two rounds of the checkpoint worker must be covered by a checkpoint for the end to \
                be proven. With --require-proof an end that is not proven is exit code 3.",
        changes: "nothing; in the store, entries that are waiting are sealed first.",
        examples: &[
            "tollgate-admin audit verify --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin audit verify --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --file trail.jsonl \\\n    \
             --checkpoint trail.note --key z0t+5S+nxEnq5jes7L4NS1QEDDTFUn9aNdPRibicphg=",
        ],
        refused: "an entry is not what was recorded (the first one is named), or there is no such account",
    },
    Page {
        path: "audit recompute",
        about: "Recomputes the charge of each approved call of an account from its entry in the audit trail and the \
                price table of its version, and names those that are different, at most 100. A charge without usage is \
                compared with its estimate. Calls that an earlier release recorded lack what a service tier, sound or \
                cache writes change, and can be named for that. `audit verify` proves the entries themselves. A price \
                table that was not kept is exit code 3.",
        changes: "nothing; entries that are waiting are sealed first.",
        examples: &[
            "tollgate-admin audit recompute --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin audit recompute --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
             --from 2026-11-01 --to 2026-12-01 --json",
        ],
        refused: "a charge is different, or there is no such account",
    },
    Page {
        path: "audit export",
        about: "Writes an audit trail as JSON Lines, each entry exactly as it was hashed. With --checkpoint it also \
                signs where the trail ends, so that later nobody can remove entries unnoticed. --json needs --out.",
        changes: "files only; entries that are waiting are sealed first.",
        examples: &[
            "tollgate-admin audit export --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --out trail.jsonl \\\n    \
             --checkpoint trail.note",
            "tollgate-admin audit export --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode test | head -1",
        ],
        refused: "there is no such account, the trail is broken or not what its checkpoint says, or a file cannot be written",
    },
    Page {
        path: "audit manifests",
        about: "Compares the manifest of each archived segment of a trail with the segment and with the store's \
                description, and makes those that are missing or changed again from their segments.",
        changes: "those manifests in the archive; what was in their place is kept beside them.",
        examples: &["tollgate-admin audit manifests --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account, or a segment is missing or changed, too",
    },
    Page {
        path: "audit key",
        about: "Shows the public key that proves signed checkpoints. Keep it away from the store: whoever verifies \
                an export with it needs to trust nobody else.",
        changes: "nothing; the key is made when there is none yet.",
        examples: &["tollgate-admin audit key > checkpoint.pub"],
        refused: "the key does not open with the configured master keys",
    },
    Page {
        path: "ledger check",
        about: "Recomputes balances, escrows, intents, counters, holds and the audit sequence from their records, \
                beside a running system, and names what does not hold with its records. What changes meanwhile is \
                read again. Money that moves between accounts at that moment, or did in the last seconds on a \
                cluster, cannot be told from money that is missing: what is still open after three attempts is \
                `inconclusive`, with `ok` false and exit code 3. With --trail it also compares the books with the \
                audit trail, which it reads whole and verifies on the way: numbers that somebody changed in all the \
                books alike are `trail` violations, with the record, both numbers and the audit entry.",
        changes: "nothing; --trail seals what is new in the trails.",
        examples: &[
            "tollgate-admin ledger check --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json",
            "tollgate-admin ledger check --trail",
        ],
        refused: "something does not hold, or there is no such account",
    },
];
