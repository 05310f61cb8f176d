//! Help of the commands that run Tollgate and set it up.

use super::Page;

pub(super) const PAGES: &[Page] = &[
    Page {
        path: "serve",
        about: "Serves the management API and the dashboard on admin.listen, metrics and readiness on admin.ops_listen, and \
                runs the workers that deliver webhooks, seal the audit trail and correct charges. It stays in the foreground \
                and logs to standard error. SIGTERM lets requests in flight finish; SIGHUP reads plans and prices again.",
        changes: "what the API is asked to, and what the workers do; each change is in the audit trail of its account.",
        examples: &["tollgate-admin serve --config /etc/tollgate/tollgate.toml"],
        refused: "an address is taken, or the server broke",
    },
    Page {
        path: "health",
        about: "Asks the edge or the admin server of this machine, at the address of its ops listener in the configuration: \
                /readyz, or /livez with --live. It is the health check of the container image, which has neither shell nor curl.",
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin health edge", "tollgate-admin health admin --live"],
        refused: "the server does not answer within 4 seconds, or says that it is not ready, and why",
    },
    Page {
        path: "sandbox-upstream",
        about: "Answers POST /v1/chat/completions, /v1/responses, /v1/embeddings and GET /v1/models like the provider, \
                for any key, at no cost. Ask for trouble with the header `x-sandbox-scenario`, or with a model or a \
                `user` named sandbox-SCENARIO: 400 to 599 (the provider's error), hang, slow:MS, no-usage, usage:JSON, \
                cost:PROMPT,COMPLETION (tokens), reset, truncate, gzip, chunked, redirect, huge:BYTES, stream:OPTIONS \
                (docs/reference/sandbox.md). GET /sandbox/stats counts what came, GET /sandbox/calls says what each \
                call was sent.",
        changes: "nothing; it needs no store.",
        examples: &["tollgate-admin sandbox-upstream --listen 127.0.0.1:8090 --delay-ms 200"],
        refused: "the address is taken",
    },
    Page {
        path: "bench",
        about: "Sends chat completions to an edge when they are due, whether earlier ones were answered or not, and reports \
                latencies from when each was due, answers by reason, and errors. A line a second tells how it goes; Ctrl-C \
                ends it with the report. With --account it makes agents and virtual keys named load-… for the time of the run \
                and checks the ledger afterwards: no agent over its cap, every charge as the answers said, no hold left open. \
                Approved calls reach the edge's provider and cost what they cost there: point the edge at a sandbox, or take \
                --cap. In a live account each agent takes one of the plan's places of the month. \
                docs/guides/load-testing.md has scenarios and how to read the report.",
        changes: "with --account: agents, policies and keys, each audited; keys are revoked and policies deleted at the end. \
                  Otherwise what the calls themselves change: spending, rates and the audit trail of the keys' accounts.",
        examples: &[
            "tollgate-admin bench --target http://127.0.0.1:8080 --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin bench --target https://edge.staging.example --yes --keys-file keys.txt \\\n    \
             --scenario ramp --rate 2000 --duration 5m --p99-bound 50ms",
            "tollgate-admin bench --target http://127.0.0.1:8080 --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
             --scenario mixed --rate 500 --cap 0.01 --json",
        ],
        refused: "too many errors, the overspend check failed, or agents and keys could not be made",
    },
    Page {
        path: "store init",
        about: "Makes an empty store a ledger: it gets the epoch without which every call is answered with 503, so that a \
                wiped store is an error and no fresh budget. On a ledger nothing happens, and its epoch is shown.",
        changes: "the store's own record, once.",
        examples: &["tollgate-admin store init --json"],
        refused: "the store holds something that is no ledger, evicts keys, or does not answer",
    },
    Page {
        path: "store accept",
        about: "After a failover that lost writes, the version of some accounts is lower than the edges have seen it, and \
                their calls are denied. This accepts such accounts as the store has them now, at once and without a \
                question. Charges that were lost with the writes count against no limit: look at the provider's bill first. A \
                store that was restored from a backup denies every call until all accounts are accepted (without --account).",
        changes: "generation and version of the account, or of all; each is audited as store.accepted by `operator`. Without \
                  --account also the mark of a restored store.",
        examples: &[
            "tollgate-admin store accept --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC",
            "tollgate-admin store accept",
        ],
        refused: "there is no such account, or the store is no ledger",
    },
    Page {
        path: "store check",
        about: "Says whether the store may be trusted with money: it has a ledger's epoch, evicts nothing, and is no restored \
                backup that nobody accepted. It also says \
                when the store writes no append-only file, so that a restart would lose writes.",
        changes: "nothing.",
        examples: &["tollgate-admin store check --json"],
        refused: "the store is no ledger, evicts keys, was restored and not accepted, or does not answer",
    },
    Page {
        path: "account create",
        about: "An account is one tenant: its agents, wallets, policies and keys are seen by nobody else. Its plan sets its \
                limits. With --owner-email it gets an owner, who can sign in to the dashboard and invite others; the \
                password comes on standard input, one line, at least 8 characters, and is kept as an argon2id hash only.",
        changes: "a new account, audited as account.created.",
        examples: &[
            "tollgate-admin account create --name 'Acme Ltd' --plan startup",
            "printf '%s\\n' \"$PASSWORD\" | tollgate-admin account create --name 'Acme Ltd' --plan startup \\\n    \
             --owner-email ann@example.com --owner-password-stdin --json",
        ],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "account set-plan",
        about: "Puts the account on another plan of plans.file. Nothing is cut off that the account has already; a limit that \
                is lower now binds the next call, or the next thing that is made.",
        changes: "the account's plan, audited as account.plan_set; nothing when it had the plan already.",
        examples: &[
            "tollgate-admin account set-plan --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --plan enterprise",
        ],
        refused: "there is no such account",
    },
    Page {
        path: "account list",
        about: "Lists every account of the installation with its plan, when it was made, and its name.",
        changes: "nothing.",
        examples: &[
            "tollgate-admin account list",
            "tollgate-admin account list --json | jq -r '.accounts[].accountId'",
        ],
        refused: "the store is no ledger, or does not answer",
    },
    Page {
        path: "account show",
        about: "Shows one account: name, plan, its generation and version (what the edges compare to notice a store that \
                lost writes), and its users with their roles.",
        changes: "nothing.",
        examples: &["tollgate-admin account show --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --json"],
        refused: "there is no such account",
    },
    Page {
        path: "api-key create",
        about: "Issues a key of the management API. A key has a mode (records of live and test never mix), permissions, and \
                optionally addresses it may be used from and an end; all of that is read on every request. It is printed \
                once and stored as a hash: whoever loses it needs a new one. A key that agents can reach should not have \
                the permission `approve`.",
        changes: "a new key of the account, audited as api_key.created.",
        examples: &[
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode test",
            "tollgate-admin api-key create --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC --mode live \\\n    \
             --permissions read --allow-ip 10.0.0.0/8 --allow-ip 192.0.2.7 --expires 2099-01-31T00:00:00Z --json",
        ],
        refused: "there is no such account, or it has as many keys as it can have",
    },
    Page {
        path: "api-key list",
        about: "Lists the keys of an account, newest first: what each may do, whether it is active, expired or revoked, and \
                how it begins. The keys themselves are nowhere.",
        changes: "nothing.",
        examples: &["tollgate-admin api-key list --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC"],
        refused: "there is no such account",
    },
    Page {
        path: "api-key revoke",
        about: "Ends a key for good. Requests that were let in before run to their end; the next one is refused.",
        changes: "the key's state, audited as api_key.revoked.",
        examples: &[
            "tollgate-admin api-key revoke --account acct_01KAH3V9J8XCT6GRTF7QJ7A2ZC \\\n    \
                     --key key_01KAH3V9J8NGBV4Q7G8EXP2TY0",
        ],
        refused: "the account has no such key, or it was revoked before",
    },
    Page {
        path: "prices import",
        about: "Reads LiteLLM's model_prices_and_context_window.json. Its OpenAI models for chat, responses and embeddings lie \
                over prices.file and over earlier imports from then on; everything else in it is left out, and --json says \
                what and why. With --provider azure it is Azure's, each under the name azure/MODEL, as [upstreams.azure] looks \
                it up. A model without a price costs the dearest of all, so one dear model in the list raises that. The whole \
                table must be sound before any edge sees it. Each charge records the version of the table that it was made by.",
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
                prices.file or an import. A model that is in no entry costs the dearest figures of the table.",
        changes: "nothing.",
        examples: &["tollgate-admin prices show gpt-4o-mini"],
        refused: "the imported prices in the store cannot be read",
    },
    Page {
        path: "keys rotate",
        about: "Seals every provider key, every webhook's secret and the key of checkpoints under the newest master key, \
                without a question. Put the new key first in secrets.master_key_file (or secrets.master_key) of every \
                process and restart them; rotate; then take the old key away. It can be run again at any time.",
        changes: "how secrets are stored, not the secrets; audited in each account as keys.rotated.",
        examples: &["tollgate-admin keys rotate --json"],
        refused: "a secret does not open with the configured master keys (the others are sealed again, and it is named)",
    },
    Page {
        path: "completions",
        about: "Prints a script with which a shell completes the commands, options and values of this program.",
        changes: "nothing.",
        examples: &[
            "source <(tollgate-admin completions bash)",
            "tollgate-admin completions zsh > _tollgate-admin",
        ],
        refused: "standard output cannot be written",
    },
    Page {
        path: "man",
        about: "Writes one manual page for each command into a directory, which must be there. They say what --help says.",
        changes: "files tollgate-admin*.1 in the directory; older ones are written over.",
        examples: &["tollgate-admin man --out /usr/local/share/man/man1"],
        refused: "the directory cannot be written",
    },
];
