# Sourced by up.sh: creates one demo account. The product shows its secrets only once. This development set-up stores
# them in .tollgate/demo.env, readable by its owner only, so that it can print them again after a restart.

DEMO=$PWD/.tollgate/demo.env
DEMO_AGENT=demo-agent

random_word() { head -c 15 /dev/urandom | base64 | tr '+/' 'ab'; }

# The value of a string field in the JSON on standard input.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }

# admin COMMAND…: runs an operator command and prints its JSON document.
admin() {
  local answer
  answer=$("$BIN/tollgate-admin" "$@" --json 2>/dev/null) || die "tollgate-admin $1 $2: $(field error <<<"$answer")"
  echo "$answer"
}

# api METHOD PATH BODY: calls the management API and prints the answer. curl reads the key from a file, so `ps` does not
# show it.
api() {
  local answer status
  answer=$(curl --silent --show-error --max-time 20 --request "$1" --config <(printf 'header = "x-api-key: %s"\n' "$DEMO_API_KEY") \
    --header 'Content-Type: application/json' --data @<(printf '%s' "$3") --write-out '\n%{http_code}' "http://$ADMIN/api/v1$2") ||
    die "$1 $2: no answer from the admin server"
  status=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  case "$status" in
    2??) echo "$answer" ;;
    *) die "$1 $2: $status $(field error <<<"$answer")" ;;
  esac
}

seed() {
  DEMO_EPOCH=
  if [ -e "$DEMO" ]; then . "$DEMO"; fi
  # A different epoch means a new ledger without the old account.
  if [ "$DEMO_EPOCH" != "$EPOCH" ]; then create; fi
  # Each start stores the key of the current upstream, and limits that allow the printed call.
  api POST "/agents/$DEMO_AGENT/provider-keys" "{\"provider\":\"openai\",\"apiKey\":\"$PROVIDER_KEY\"}" >/dev/null
  api POST "/policies/$DEMO_AGENT" "{\"name\":\"Demo\",\"capEnabled\":true,\"maxSpendPerRun\":1,\"maxSpendPerDay\":10,\"maxSpendPerMonth\":100}" >/dev/null
}

create_account() {
  "$BIN/tollgate-admin" account create --name Demo --plan startup --json \
    --owner-email "$DEMO_EMAIL" --owner-password-stdin <<<"$DEMO_PASSWORD" 2>/dev/null
}

create() {
  local answer name
  DEMO_PASSWORD=$(random_word)
  DEMO_EMAIL=owner@tollgate.localhost
  if ! answer=$(create_account); then
    # An interrupted run has left an account with that owner.
    DEMO_EMAIL=owner-$(random_word | tr -dc 'a-z0-9' | head -c 6)@tollgate.localhost
    answer=$(create_account) || die "account create: $(field error <<<"$answer")"
  fi
  DEMO_ACCOUNT=$(field accountId <<<"$answer")
  DEMO_API_KEY=$(admin api-key create --account "$DEMO_ACCOUNT" --mode live --permissions read,write | field key)
  DEMO_VIRTUAL_KEY=$(api POST "/agents/$DEMO_AGENT/virtual-keys" '{"name":"Demo"}' | field secret)
  api POST /wallets/create "{\"botId\":\"$DEMO_AGENT\",\"name\":\"Demo\"}" >/dev/null
  admin deposit --account "$DEMO_ACCOUNT" --wallet "$DEMO_AGENT" --amount 100 --reference demo >/dev/null
  DEMO_EPOCH=$EPOCH
  for name in EPOCH ACCOUNT EMAIL PASSWORD API_KEY VIRTUAL_KEY; do
    name=DEMO_$name
    [ -n "${!name}" ] || die "the demo account could not be made: no $name"
    printf "%s='%s'\n" "$name" "${!name}"
  done >"$DEMO.new"
  mv "$DEMO.new" "$DEMO"
}
