#!/usr/bin/env bash
# `make run`: brings up the whole system on loopback, seeds one account once, prints how to call it, and stops
# everything on Ctrl-C. All state is under .tollgate/; removing that directory starts over.
#
# Environment, all optional:
#   OPENAI_BASE_URL, OPENAI_API_KEY   a real provider in place of the sandbox; the address of this edge itself is
#                                     ignored
#   TOLLGATE_PROXY__LISTEN …          other addresses, as in config/tollgate.toml
#   TOLLGATE_SANDBOX_LISTEN           address of the sandbox upstream
#   TOLLGATE_BIN_DIR                  run the binaries in there instead of building them
# Settings of store, secrets, archive, tables and TLS are not read from the environment: an operator's shell may name
# those of a real installation.
set -euo pipefail
umask 077
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. deploy/local/processes.sh
. deploy/local/seed.sh

STATE=$PWD/.tollgate
EDGE=${TOLLGATE_PROXY__LISTEN:-127.0.0.1:8080}
EDGE_OPS=${TOLLGATE_PROXY__OPS_LISTEN:-127.0.0.1:9090}
ADMIN=${TOLLGATE_ADMIN__LISTEN:-127.0.0.1:8081}
ADMIN_OPS=${TOLLGATE_ADMIN__OPS_LISTEN:-127.0.0.1:9091}
SANDBOX=${TOLLGATE_SANDBOX_LISTEN:-127.0.0.1:8090}
REDIS_PORT=${TOLLGATE_REDIS_PORT:-6390} # used only if a unix socket is not possible

# An empty variable overrides config/tollgate.toml with "not set".
own_settings() {
  unset "${!TOLLGATE_STORE__@}" "${!TOLLGATE_SECRETS__@}" "${!TOLLGATE_AUDIT__@}" "${!TOLLGATE_PLANS__@}" "${!TOLLGATE_PRICES__@}" \
    "${!TOLLGATE_PROXY__TLS_@}"
  export TOLLGATE_STORE__URL_FILE="" TOLLGATE_STORE__CA_FILE="" TOLLGATE_SECRETS__MASTER_KEY=""
  export TOLLGATE_SECRETS__MASTER_KEY_FILE=$STATE/master.key TOLLGATE_AUDIT__ARCHIVE=$STATE/archive
}

# The README sets OPENAI_BASE_URL to this edge for clients. In such a shell it names no provider.
own_edge() {
  if [ "${OPENAI_BASE_URL:-}" = "http://$EDGE/v1" ]; then
    say "OPENAI_BASE_URL is this edge, which is no provider: the sandbox is"
    unset OPENAI_BASE_URL OPENAI_API_KEY
  fi
}

prepare() {
  deploy/local/packages.sh build store
  if [ -n "${OPENAI_BASE_URL:-}" ]; then
    case "${OPENAI_API_KEY:-}" in
      sk-*) ;;
      *) die "OPENAI_BASE_URL names a real provider, so OPENAI_API_KEY must hold its key (sk-…)" ;;
    esac
  fi
  mkdir -p "$STATE/redis" "$STATE/proxy" "$STATE/log"
  # The edge hands over its sockets only in a directory that no other user can enter.
  chmod 700 "$STATE/proxy"
  exec 9>"$STATE/lock"
  flock -n 9 || die "make run is already running here ($STATE/lock is held)"
  exec 8>"$STATE/children"
  flock -w "$STOP_SECONDS" 8 || die "what an earlier run started is still running ($STATE/children is held): stop it first"
  free_port "$EDGE" "the edge" TOLLGATE_PROXY__LISTEN
  free_port "$EDGE_OPS" "the edge's metrics" TOLLGATE_PROXY__OPS_LISTEN
  free_port "$ADMIN" "the admin server" TOLLGATE_ADMIN__LISTEN
  free_port "$ADMIN_OPS" "the admin server's metrics" TOLLGATE_ADMIN__OPS_LISTEN
  [ -n "${OPENAI_BASE_URL:-}" ] || free_port "$SANDBOX" "the sandbox upstream" TOLLGATE_SANDBOX_LISTEN
}

build() {
  BIN=${TOLLGATE_BIN_DIR:-}
  [ -z "$BIN" ] || return 0
  local cargo
  cargo=$(command -v cargo || echo "$HOME/.cargo/bin/cargo")
  say "Building, which takes some minutes the first time (unoptimised: make dist builds what is deployed)"
  "$cargo" build --profile local --locked --bins || die "the build failed"
  BIN=${CARGO_TARGET_DIR:-target}/local
}

master_key() {
  [ ! -s "$TOLLGATE_SECRETS__MASTER_KEY_FILE" ] || return 0
  [ ! -e "$DEMO" ] || die "$TOLLGATE_SECRETS__MASTER_KEY_FILE is gone, and stored keys do not open without it: put it back, or remove $STATE to start over"
  head -c 32 /dev/urandom | base64 >"$TOLLGATE_SECRETS__MASTER_KEY_FILE.new"
  mv "$TOLLGATE_SECRETS__MASTER_KEY_FILE.new" "$TOLLGATE_SECRETS__MASTER_KEY_FILE"
}

# Uses a unix socket, unless its path is too long or contains characters that a URL would have to escape.
start_store() {
  local server socket=$STATE/redis/redis.sock where
  server=$(command -v redis-server || command -v valkey-server)
  if [ "${#socket}" -lt 100 ] && [[ "$socket" != *[!A-Za-z0-9/._-]* ]]; then
    where=(--port 0 --unixsocket "$socket" --unixsocketperm 700)
    export TOLLGATE_STORE__URL=redis+unix://$socket
  else
    free_port "127.0.0.1:$REDIS_PORT" "the store" TOLLGATE_REDIS_PORT
    where=(--port "$REDIS_PORT")
    export TOLLGATE_STORE__URL=redis://127.0.0.1:$REDIS_PORT
  fi
  start store "$server" "$PWD/deploy/local/redis.conf" --dir "$STATE/redis" "${where[@]}"
  EPOCH=$(initialise)
}

# Waits until the store has loaded its file, then reads its epoch.
initialise() {
  local answer tries
  for tries in $(seq 100); do
    alive store || die "the store ended: $(last_line store)"
    if answer=$("$BIN/tollgate-admin" store init --json 2>/dev/null); then
      field epoch <<<"$answer"
      return
    fi
    case "$answer" in
      *'"code":"STORE"'*) sleep 0.2 ;;
      *) die "store init: $(field error <<<"$answer")" ;;
    esac
  done
  die "the store does not answer: $(last_line store)"
}

start_servers() {
  export TOLLGATE_PROXY__LISTEN=$EDGE TOLLGATE_PROXY__OPS_LISTEN=$EDGE_OPS
  export TOLLGATE_ADMIN__LISTEN=$ADMIN TOLLGATE_ADMIN__OPS_LISTEN=$ADMIN_OPS
  export TOLLGATE_PROXY__DATA_DIR=$STATE/proxy TOLLGATE_PROXY__UPGRADE_SOCKET=$STATE/proxy/upgrade.sock
  export TOLLGATE_WEBHOOKS__ALLOW_PRIVATE=${TOLLGATE_WEBHOOKS__ALLOW_PRIVATE:-true}
  if [ -n "${OPENAI_BASE_URL:-}" ]; then
    export TOLLGATE_UPSTREAM__BASE_URL=$OPENAI_BASE_URL
    PROVIDER_KEY=$OPENAI_API_KEY
  else
    export TOLLGATE_UPSTREAM__BASE_URL=http://$SANDBOX/v1
    PROVIDER_KEY=sk-sandbox-$(random_word)
    start sandbox "$BIN/tollgate-admin" sandbox-upstream --listen "$SANDBOX"
  fi
  start admin "$BIN/tollgate-admin" serve
  start edge "$BIN/tollgate-proxy"
  ready admin "http://$ADMIN_OPS/readyz"
  ready edge "http://$EDGE_OPS/readyz"
  [ -n "${OPENAI_BASE_URL:-}" ] || ready sandbox "http://$SANDBOX/sandbox/stats"
}

# Optional endpoints that are switched on.
switched_on() {
  local name on=()
  for name in STREAMING RESPONSES EMBEDDINGS; do
    local switch=TOLLGATE_PROXY__$name
    [ "${!switch:-}" != true ] || on+=("${name,,}")
  done
  echo "${on[*]:-nothing (TOLLGATE_PROXY__STREAMING=true make run: streams; also __RESPONSES, __EMBEDDINGS)}"
}

announce() {
  local json="-H 'Content-Type: application/json'"
  cat <<EOT

Tollgate is up. Ctrl-C stops it; data, logs and these credentials (demo.env) stay in $STATE.

  edge         http://$EDGE/v1          (the base URL for any OpenAI client)
  dashboard    http://$ADMIN/            (sign in with the owner below)
  management   http://$ADMIN/api/v1     (reference: http://$ADMIN/reference)
  upstream     $TOLLGATE_UPSTREAM__BASE_URL
  switched on  $(switched_on)
  metrics      http://$EDGE_OPS/metrics   http://$ADMIN_OPS/metrics

  account      $DEMO_ACCOUNT (plan startup)
  owner        $DEMO_EMAIL, password $DEMO_PASSWORD
  agent        $DEMO_AGENT

The agent's virtual key, and an API key of the management API, for the README's examples:

export TOLLGATE_KEY=$DEMO_VIRTUAL_KEY
export TOLLGATE_API_KEY=$DEMO_API_KEY

A call:

curl -i http://$EDGE/v1/chat/completions -H 'Authorization: Bearer $DEMO_VIRTUAL_KEY' $json -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'

A spend from the agent's wallet, in which are 100 USD that exist here only:

curl http://$ADMIN/api/v1/spend -H 'Authorization: Bearer $DEMO_API_KEY' $json -d '{"agent":"$DEMO_AGENT","amount":0.25,"description":"A trial"}'

Cap the agent at a hundredth of a cent a day, and both are denied (402 daily_limit):

curl http://$ADMIN/api/v1/policies/$DEMO_AGENT -H 'Authorization: Bearer $DEMO_API_KEY' $json -d '{"maxSpendPerDay":0.0001}'

EOT
}

main() {
  trap stop_all EXIT
  trap 'exit 0' INT TERM HUP
  own_settings
  own_edge
  prepare
  build
  master_key
  start_store
  start_servers
  seed
  announce
  watch_all
}

main "$@"
