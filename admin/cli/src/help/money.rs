//! Help of the commands that touch money.

use super::HelpPage;
use crate::context::CommandKind;

pub(super) const PAGES: &[HelpPage] = &[
    HelpPage {
        path: "deposit",
        about: "Credits money to a wallet. A repeated --reference means the same deposit and changes nothing, so a \
                script can repeat it safely. Money that is --pending cannot be spent until `deposit confirm`. The \
                first deposit creates the user's wallet; the API creates an agent's.",
        kind: CommandKind::Change,
        changes: "the wallet's balance, or with --pending its expected deposits; audited as deposit.requested.",
        examples: &[
            "tollgate-admin deposit --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --wallet user --amount 250 \\\n    \
             --reference wire-2026-0117",
            "tollgate-admin deposit --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --wallet my-bot --amount 12.5 \\\n    \
             --reference card-7781 --pending --json",
        ],
        refused: "there is no such account or wallet, the wallet is closed or too full, or the reference was used for \
                  another deposit, or for this one with or without --pending",
    },
    HelpPage {
        path: "deposit confirm",
        about: "Credits a pending deposit. A repeated confirmation gives the same answer and changes nothing. Any \
                account can announce a reference that it guesses: say which account sent the money, and how much \
                arrived.",
        kind: CommandKind::Change,
        changes: "the wallet's balance; audited as deposit.confirmed.",
        examples: &[
            "tollgate-admin deposit confirm --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --reference card-7781 \\\n    \
             --amount 12.5",
        ],
        refused: "there is no pending deposit of the reference, it was cancelled, several deposits have it, it has \
                  another amount, or the wallet is closed or too full",
    },
    HelpPage {
        path: "deposit cancel",
        about: "Cancels a pending deposit that will not arrive. The wallet no longer waits for it, so its agent can \
                be deleted. The reference stays used: money that arrives later needs another one. A repeated \
                cancellation gives the same answer and changes nothing.",
        kind: CommandKind::Change,
        changes: "the wallet's expected deposits; audited as deposit.cancelled.",
        examples: &["tollgate-admin deposit cancel --reference card-7781"],
        refused: "there is no pending deposit of the reference, it was confirmed, or several deposits have it",
    },
    HelpPage {
        path: "escrow show",
        about: "Shows an escrow: its parties, amount, conditions, state, and the reason of a dispute.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin escrow show --escrow 17"],
        refused: "there is no such escrow",
    },
    HelpPage {
        path: "escrow resolve",
        about: "Decides a disputed escrow finally: all of its money goes to the payee, or back to the payer. Read \
                `escrow show` first.",
        kind: CommandKind::Change,
        changes: "the escrow and one wallet; audited as escrow.resolve, and in another account of the payee as \
                  escrow.released or escrow.refunded, by `operator`.",
        examples: &["tollgate-admin escrow resolve --escrow 17 --to payer"],
        refused: "there is no such escrow, it is not disputed, or the wallet cannot hold that much",
    },
    HelpPage {
        path: "decision show",
        about: "Shows what is recorded of one decision on a call, as GET /decisions/{id} does: who called what and when, \
                the checks with their numbers, the estimate, the charge and what it follows from, and whether the record \
                is in the store or in the archive. The outcome says whether the charge is final: `open` (in flight), \
                `settled` (by the provider's usage), `estimated` (no usage that counts came), `released`, `kept` (nobody \
                settled it: `holds settle` and `holds release` can), `corrected`, `voided`, `unsent`, or `denied`. \
                Without --account all accounts are searched.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &[
            "tollgate-admin decision show --id allow_01KAH3V9J8E2Y5M0W9DZS7T1QK",
            "tollgate-admin decision show --id deny_01KAH3V9J8E2Y5M0W9DZS7T1QK \\\n    \
             --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json",
        ],
        refused: "there is no such account, no decision of that id in that mode, or its segment of the archive is \
                  missing or damaged",
    },
    HelpPage {
        path: "holds list",
        about: "Lists holds. A hold is the estimate that is charged before a call is sent. An open hold belongs to a \
                call in flight. A kept hold was never settled, because an edge died or the store was unavailable: its \
                estimate stays charged until an operator who knows the provider's bill settles or releases it.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin holds list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --limit 10000"],
        refused: "there is no such account",
    },
    HelpPage {
        path: "holds settle",
        about: "Charges the real cost of a call in place of its estimate, in the counters of its agent, run, day, \
                month and plan. A cost above the estimate needs --above-estimate; above 10,000 USD it is refused, \
                unless the estimate is that high.",
        kind: CommandKind::Change,
        changes: "the hold and its counters; audited as the call's settlement, by `operator`, with the reason.",
        examples: &[
            "tollgate-admin holds settle --id allow_01KAH3V9J8E2Y5M0W9DZS7T1QK --actual 0.0042 \\\n    \
                     --reason 'invoice of November'",
        ],
        refused: "no open or kept hold has that id, its call is still in flight, it changed meanwhile, or the cost is \
                  above the estimate (ABOVE_ESTIMATE) or above what any call costs (VALIDATION)",
    },
    HelpPage {
        path: "holds release",
        about: "Returns the estimate of a call that the provider did not serve.",
        kind: CommandKind::Change,
        changes: "the hold and its counters; audited as the call's settlement, by `operator`, with the reason.",
        examples: &["tollgate-admin holds release --id allow_01KAH3V9J8E2Y5M0W9DZS7T1QK"],
        refused: "no open or kept hold has that id, its call is still in flight, or it changed meanwhile",
    },
];
