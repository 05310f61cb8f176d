//! Help of the commands that run and set up Tollgate.

use super::HelpPage;
use crate::context::CommandKind;

pub(super) const PAGES: &[HelpPage] = &[
    HelpPage {
        path: "serve",
        about: "Serves the management API and the dashboard on admin.listen, metrics and readiness on \
                admin.ops_listen, and runs the workers: webhooks, audit trail, archive, overdue charges. Logs go to \
                standard error. SIGTERM lets requests in flight finish; SIGHUP reads plans and prices again.",
        kind: CommandKind::Change,
        changes: "records, through the API and the workers; each change is in the audit trail of its account.",
        examples: &["tollgate-admin serve --config /etc/tollgate/tollgate.toml"],
        refused: "an address is in use, or the server failed",
    },
    HelpPage {
        path: "health",
        about: "Queries the edge or the admin server of this machine, at its ops listener in the configuration: /readyz, \
                or /livez with --live. It is the health check of the container image, which has neither shell nor \
                curl.",
        kind: CommandKind::Read,
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin health edge", "tollgate-admin health admin --live"],
        refused: "the server does not answer within 4 seconds, or is not ready (with its reason)",
    },
    HelpPage {
        path: "sandbox-upstream",
        about: "Answers POST /v1/chat/completions, /v1/responses, /v1/embeddings and GET /v1/models like the \
                provider, for any key, at no cost. The header `x-sandbox-scenario`, or a model or `user` named \
                sandbox-SCENARIO, selects an error, a delay or a broken answer: docs/reference/sandbox.md. GET \
                /sandbox/stats and /sandbox/calls report the calls.",
        kind: CommandKind::Read,
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin sandbox-upstream --listen 127.0.0.1:8090 --delay-ms 200"],
        refused: "the address is in use",
    },
    HelpPage {
        path: "bench",
        about: "Sends chat completions to an edge at fixed times and reports latencies, answers by reason, and \
                errors. Ctrl-C ends it with the report. With --account it creates agents and virtual keys named \
                load-… for the run, and checks the ledger afterwards: no agent over its cap, every charge as in the \
                answers, no open hold. Approved calls cost money at the edge's provider: use a sandbox, or --cap. In \
                a live account each agent counts against the plan's agents of the month. Scenarios and report: \
                docs/guides/load-testing.md.",
        kind: CommandKind::Change,
        changes: "with --account: agents, policies and keys, each audited; keys are revoked and policies deleted at \
                  the end. The calls change spending, rates and the audit trail of the keys' accounts.",
        examples: &[
            "tollgate-admin bench --target https://edge.staging.example --yes --keys-file keys.txt \\\n    \
             --scenario ramp --rate 2000 --duration 5m --p99-bound 50ms",
            "tollgate-admin bench --target http://127.0.0.1:8080 --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
             --scenario mixed --rate 500 --cap 0.01 --json",
        ],
        refused: "too many errors, the overspend check failed, or agents and keys could not be created",
    },
    HelpPage {
        path: "store init",
        about: "Initialises an empty store as a ledger with a random epoch. Servers answer 503 without an epoch, so \
                that a wiped store is an error and not a fresh budget. On a ledger the command only shows the epoch.",
        kind: CommandKind::Change,
        changes: "the store's own record, once.",
        examples: &["tollgate-admin store init --json"],
        refused: "the store contains data but no ledger, evicts keys, or does not answer",
    },
    HelpPage {
        path: "store accept",
        about: "Accepts the current state of accounts after a failover that lost writes. The edges have seen a higher \
                version of such accounts and deny their calls. Lost charges count against no limit, so check the \
                provider's bill first. After a restore from a backup every call is denied until all accounts are \
                accepted (without --account).",
        kind: CommandKind::Accept,
        changes: "generation and version of the accounts, each audited as store.accepted by `operator`; without \
                  --account also the mark of a restored store.",
        examples: &[
            "tollgate-admin store accept --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin store accept",
        ],
        refused: "there is no such account, or the store has no ledger",
    },
    HelpPage {
        path: "store check",
        about: "Checks whether the store is safe for money: it has a ledger's epoch, evicts no keys, skipped no \
                writes when it loaded its file, agrees with this machine's clock, refuses its user no command of \
                the scripts, and is no restored backup that waits for `store accept`. It must also accept writes, \
                and its secrets must open with the configured master keys. The command names accounts with lost \
                writes, whose calls are denied until `store accept`. It warns about a store without append-only \
                file, which loses writes when it restarts, and about one without maxmemory.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin store check --json"],
        refused: "the store has no ledger, evicts keys, skipped writes, has a wrong clock, refuses its user a \
                  command, was restored and not accepted, refuses writes (with OOM, MISCONF, READONLY or \
                  NOREPLICAS), has secrets under a different master key, lost writes of accounts, is less durable \
                  than store.durability requires, or does not answer",
    },
    HelpPage {
        path: "account create",
        about: "Creates an account, which is one tenant: no other account sees its agents, wallets, policies and \
                keys. With --owner-email it gets an owner, who can sign in to the dashboard and invite others. The \
                password needs at least 8 characters; only its argon2id hash is stored.",
        kind: CommandKind::Change,
        changes: "a new account, audited as account.created.",
        examples: &[
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin account create --name 'Acme Ltd' --plan startup \\\n    \
             --owner-email ann@example.com --owner-password-stdin --json",
        ],
        refused: "the store has no ledger, or does not answer",
    },
    HelpPage {
        path: "account set-plan",
        about: "Moves the account to another plan of plans.file. Existing records stay; a lower limit applies to the \
                next call, or to the next record that is created.",
        kind: CommandKind::Change,
        changes: "the account's plan, audited as account.plan_set; nothing if it had the plan already.",
        examples: &[
            "tollgate-admin account set-plan --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --plan enterprise",
        ],
        refused: "there is no such account",
    },
    HelpPage {
        path: "account list",
        about: "Lists every account: plan, time of creation, name.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin account list --json | jq -r '.accounts[].accountId'"],
        refused: "the store has no ledger, or does not answer",
    },
    HelpPage {
        path: "account show",
        about: "Shows one account: name, plan, used share of its budgets and technical limits, generation and version \
                (with which the edges detect lost writes), and its users with their roles.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin account show --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json"],
        refused: "there is no such account",
    },
    HelpPage {
        path: "api-key create",
        about: "Issues a key of the management API. Every request checks the key's mode, permissions, addresses and \
                expiry. The key is printed once and only its hash is stored: a lost key must be replaced. Do not give \
                the permission `approve` to a key that agents can read.",
        kind: CommandKind::Change,
        changes: "a new key of the account, audited as api_key.created.",
        examples: &[
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode test",
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode live \\\n    \
             --permissions read --allow-ip 10.0.0.0/8 --allow-ip 192.0.2.7 --expires 2099-01-31T00:00:00Z",
        ],
        refused: "there is no such account, or it has the maximum number of keys",
    },
    HelpPage {
        path: "api-key list",
        about: "Lists the keys of an account, newest first: permissions, state (active, expired, revoked) and first \
                characters.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin api-key list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account",
    },
    HelpPage {
        path: "api-key revoke",
        about: "Revokes a key. Requests that were accepted before finish; the next one is refused. A revoked key \
                cannot be restored.",
        kind: CommandKind::Change,
        changes: "the key's state, audited as api_key.revoked.",
        examples: &[
            "tollgate-admin api-key revoke --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
                     --key key_01KAH3V9J8NGBV4Q7G8EXP2TY0",
        ],
        refused: "the account has no such key, or it was revoked before",
    },
    HelpPage {
        path: "prices import",
        about: "Reads LiteLLM's model_prices_and_context_window.json. Its OpenAI models for chat, responses and \
                embeddings override prices.file and earlier imports. --json lists the skipped models with reasons, \
                and in `ignored` the costs of imported models that are not supported and so not charged. The models \
                of another --provider are named PROVIDER/MODEL, as its upstream finds them. A model without a price \
                is charged the highest prices of the table, so one expensive model raises those. The whole table is \
                validated before any edge uses it. Each charge records the version of its table, which is kept in the \
                archive.",
        kind: CommandKind::Change,
        changes: "the imported prices in the store; edges and admin servers follow within seconds.",
        examples: &[
            "tollgate-admin prices import model_prices_and_context_window.json --json",
            "tollgate-admin prices import model_prices_and_context_window.json --provider azure",
        ],
        refused: "other imports run at the same time, or the import is not confirmed (NOT_CONFIRMED): import again",
    },
    HelpPage {
        path: "prices show",
        about: "Shows a model's prices in USD per million tokens, the entry that applies, and whether it comes from \
                prices.file or an import. With --version it shows the prices of an earlier table.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &[
            "tollgate-admin prices show gpt-4o-mini",
            "tollgate-admin prices show gpt-4o-mini --version 5d1e0c4f8a2b6397",
        ],
        refused: "the imported prices in the store cannot be read, or no table of that version was kept",
    },
    HelpPage {
        path: "prices versions",
        about: "Lists the price tables with which edges charged, sorted by version. Each edge stores its table when \
                it takes effect, and an admin server moves it to `prices/` in the archive within seconds. `in force` \
                is the table from this machine's prices.file and the imports.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["tollgate-admin prices versions --json"],
        refused: "the archive cannot be read",
    },
    HelpPage {
        path: "keys rotate",
        about: "Encrypts every provider key, every webhook's secret and the key of checkpoints again under the newest \
                master key, the first in secrets.master_key_file (or secrets.master_key). Before that, give every \
                process the new key in two steps, each with a restart: first as the last key of its file, then as the \
                first (docs/guides/upgrading.md#the-master-key). Afterwards remove the old key. The command can be \
                repeated at any time.",
        kind: CommandKind::Change,
        changes: "how secrets are stored, not the secrets; audited in each account as keys.rotated.",
        examples: &["tollgate-admin keys rotate --json"],
        refused: "a secret does not open with the configured master keys (it is named, and the others are encrypted \
                  again)",
    },
    HelpPage {
        path: "completions",
        about: "Prints a script with which a shell completes commands, options and values.",
        kind: CommandKind::Read,
        changes: "nothing.",
        examples: &["source <(tollgate-admin completions bash)"],
        refused: "standard output cannot be written",
    },
    HelpPage {
        path: "man",
        about: "Writes a manual page for each command, with the text of --help.",
        kind: CommandKind::Read,
        changes: "files tollgate-admin*.1 in the directory; existing ones are overwritten.",
        examples: &["tollgate-admin man --out /usr/local/share/man/man1"],
        refused: "the directory cannot be written",
    },
];
