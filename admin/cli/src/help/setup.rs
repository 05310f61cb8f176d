//! Help of the commands that run and set up Tollgate.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        path: "serve",
        about: "Serves the management API and the dashboard on admin.listen, metrics and readiness on \
                admin.ops_listen, and runs the workers: webhooks, audit trail, archive, overdue charges. Logs go to \
                standard error. SIGTERM lets requests in flight finish; SIGHUP reads plans and prices again.",
        changes: "what the API and the workers do, each change in the audit trail of its account.",
        examples: &["tollgate-admin serve --config /etc/tollgate/tollgate.toml"],
        refused: "an address is taken, or the server broke",
    },
    Page {
        path: "health",
        about: "Asks the edge or the admin server of this machine, at its ops listener in the configuration: \
                /readyz, or /livez with --live. It is the health check of the container image, which has neither \
                shell nor curl.",
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin health edge", "tollgate-admin health admin --live"],
        refused: "the server does not answer within 4 seconds, or is not ready (it says why)",
    },
    Page {
        path: "sandbox-upstream",
        about: "Answers POST /v1/chat/completions, /v1/responses, /v1/embeddings and GET /v1/models like the \
                provider, for any key, at no cost. The header `x-sandbox-scenario`, or a model or `user` named \
                sandbox-SCENARIO, asks for an error, a wait, a broken answer: docs/reference/sandbox.md. GET \
                /sandbox/stats and /sandbox/calls report the calls.",
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin sandbox-upstream --listen 127.0.0.1:8090 --delay-ms 200"],
        refused: "the address is taken",
    },
    Page {
        path: "bench",
        about: "Sends chat completions to an edge at fixed times and reports latencies, answers by reason, and \
                errors. Ctrl-C ends it with the report. With --account it makes agents and virtual keys named load-… \
                for the run, and checks the ledger afterwards: no agent over its cap, every charge as the answers \
                said, no hold left open. Approved calls cost money at the edge's provider: use a sandbox, or --cap. \
                In a live account each agent takes one of the plan's places of the month. Scenarios and report: \
                docs/guides/load-testing.md.",
        changes: "with --account: agents, policies and keys, each audited; keys are revoked and policies deleted at \
                  the end. The calls change spending, rates and the audit trail of the keys' accounts.",
        examples: &[
            "tollgate-admin bench --target https://edge.staging.example --yes --keys-file keys.txt \\\n    \
             --scenario ramp --rate 2000 --duration 5m --p99-bound 50ms",
            "tollgate-admin bench --target http://127.0.0.1:8080 --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
             --scenario mixed --rate 500 --cap 0.01 --json",
        ],
        refused: "too many errors, the overspend check failed, or agents and keys could not be made",
    },
    Page {
        path: "store init",
        about: "Makes an empty store a ledger: gives it the epoch without which every call is answered with 503, so \
                that a wiped store is an error and no fresh budget. On a ledger it only shows the epoch.",
        changes: "the store's own record, once.",
        examples: &["tollgate-admin store init --json"],
        refused: "the store holds something that is no ledger, evicts keys, or does not answer",
    },
    Page {
        path: "store accept",
        about: "Accepts accounts as the store has them now, after a failover that lost writes: the edges have seen a \
                higher version of them and deny their calls. Charges that were lost with the writes count against no \
                limit: look at the provider's bill first. A store that was restored from a backup denies every call \
                until all accounts are accepted (without --account).",
        changes: "generation and version of the accounts, each audited as store.accepted by `operator`; without \
                  --account also the mark of a restored store.",
        examples: &[
            "tollgate-admin store accept --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin store accept",
        ],
        refused: "there is no such account, or the store is no ledger",
    },
    Page {
        path: "store check",
        about: "Says whether the store may be trusted with money: it has a ledger's epoch, evicts nothing, left out \
                no writes, its clock agrees with this machine's, and it is no restored backup that nobody \
                accepted; and whether it takes writes and has secrets of the configured master key. It names accounts of which \
                the store lost writes, and whose calls are denied until `store accept`. It warns of a store without \
                an append-only file, which loses writes when it restarts, and of one without a maxmemory.",
        changes: "nothing.",
        examples: &["tollgate-admin store check --json"],
        refused: "the store is no ledger, evicts keys, left out writes, has a wrong clock, was restored and not \
                  accepted, takes no writes (it says OOM, MISCONF, READONLY or NOREPLICAS), has secrets under \
                  another master key than the configured one, lost writes of accounts, is less durable than \
                  store.durability says, or does not answer",
    },
    Page {
        path: "account create",
        about: "An account is one tenant: nobody else sees its agents, wallets, policies and keys. With \
                --owner-email it gets an owner, who can sign in to the dashboard and invite others. The password has \
                at least 8 characters and is kept as an argon2id hash only.",
        changes: "a new account, audited as account.created.",
        examples: &[
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin account create --name 'Acme Ltd' --plan startup \\\n    \
             --owner-email ann@example.com --owner-password-stdin --json",
        ],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "account set-plan",
        about: "Puts the account on another plan of plans.file. What the account has stays; a lower limit binds the \
                next call, or the next thing that is made.",
        changes: "the account's plan, audited as account.plan_set; nothing when it had the plan already.",
        examples: &[
            "tollgate-admin account set-plan --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --plan enterprise",
        ],
        refused: "there is no such account",
    },
    Page {
        path: "account list",
        about: "Lists every account: plan, time of creation, name.",
        changes: "nothing.",
        examples: &["tollgate-admin account list --json | jq -r '.accounts[].accountId'"],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "account show",
        about: "Shows one account: name, plan, what it uses of its budgets, its generation and version (by which the \
                edges notice a store that lost writes), its users with their roles.",
        changes: "nothing.",
        examples: &["tollgate-admin account show --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json"],
        refused: "there is no such account",
    },
    Page {
        path: "api-key create",
        about: "Issues a key of the management API. Mode, permissions, addresses and end of a key are read on every \
                request. The key is printed once and stored as a hash: whoever loses it needs a new one. Give no key \
                that agents can reach the permission `approve`.",
        changes: "a new key of the account, audited as api_key.created.",
        examples: &[
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode test",
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode live \\\n    \
             --permissions read --allow-ip 10.0.0.0/8 --allow-ip 192.0.2.7 --expires 2099-01-31T00:00:00Z",
        ],
        refused: "there is no such account, or it has as many keys as it can have",
    },
    Page {
        path: "api-key list",
        about: "Lists the keys of an account, newest first: permissions, state (active, expired, revoked) and first \
                characters.",
        changes: "nothing.",
        examples: &["tollgate-admin api-key list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account",
    },
    Page {
        path: "api-key revoke",
        about: "Ends a key for good. Requests that were let in before finish; the next one is refused.",
        changes: "the key's state, audited as api_key.revoked.",
        examples: &[
            "tollgate-admin api-key revoke --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
                     --key key_01KAH3V9J8NGBV4Q7G8EXP2TY0",
        ],
        refused: "the account has no such key, or it was revoked before",
    },
    Page {
        path: "prices import",
        about: "Reads LiteLLM's model_prices_and_context_window.json. Its OpenAI models for chat, responses and \
                embeddings lie over prices.file and over earlier imports; --json says what was left out and why, and \
                in `ignored` which costs of imported models are not understood and so not charged. \
                Another --provider's models are named PROVIDER/MODEL, as its upstream looks them up. A model without \
                a price costs the dearest of all, so one dear model in the list raises that. The whole table must be \
                sound before any edge sees it. Each charge records the version of its table, which is kept in the \
                archive.",
        changes: "the imported prices in the store; edges and admin servers follow within seconds.",
        examples: &[
            "tollgate-admin prices import model_prices_and_context_window.json --json",
            "tollgate-admin prices import model_prices_and_context_window.json --provider azure",
        ],
        refused: "other imports run at the same time, or the import is not confirmed (NOT_CONFIRMED): import again",
    },
    Page {
        path: "prices show",
        about: "Shows what a model costs in USD per million tokens, under which entry, and whether that comes from \
                prices.file or an import. With --version, what it cost by an earlier table.",
        changes: "nothing.",
        examples: &[
            "tollgate-admin prices show gpt-4o-mini",
            "tollgate-admin prices show gpt-4o-mini --version 5d1e0c4f8a2b6397",
        ],
        refused: "the imported prices in the store cannot be read, or no table of that version was kept",
    },
    Page {
        path: "prices versions",
        about: "Lists the price tables by which edges charged, sorted by version. Each edge offers its table when it \
                comes into force, and an admin server moves it to `prices/` in the archive within seconds. `in force` is \
                the table that this machine's prices.file and the imports yield.",
        changes: "nothing.",
        examples: &["tollgate-admin prices versions --json"],
        refused: "the archive cannot be read",
    },
    Page {
        path: "keys rotate",
        about: "Seals every provider key, every webhook's secret and the key of checkpoints under the newest master \
                key, the first in secrets.master_key_file (or secrets.master_key). Before it every process needs the new \
                key, in two rounds: last in the file of each and restarted, then first and restarted \
                (docs/guides/upgrading.md#the-master-key). Afterwards take the old key away. It can be run again at \
                any time.",
        changes: "how secrets are stored, not the secrets; audited in each account as keys.rotated.",
        examples: &["tollgate-admin keys rotate --json"],
        refused: "a secret does not open with the configured master keys (the others are sealed again, and it is named)",
    },
    Page {
        path: "completions",
        about: "Prints a script with which a shell completes commands, options and values.",
        changes: "nothing.",
        examples: &["source <(tollgate-admin completions bash)"],
        refused: "standard output cannot be written",
    },
    Page {
        path: "man",
        about: "Writes a manual page for each command, with the text of --help.",
        changes: "files tollgate-admin*.1 in the directory; older ones are written over.",
        examples: &["tollgate-admin man --out /usr/local/share/man/man1"],
        refused: "the directory cannot be written",
    },
];
