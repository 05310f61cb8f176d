#!/usr/bin/env bash
# Runs redis-cli as a user of the store without showing the password in `ps`. It serves inspection and administration
# of the store (ACL LOAD, SLOWLOG, BGREWRITEAOF). Only tollgate-administrator may execute such commands, none of our
# programs may.
#
#   STORE_URL_FILE=/etc/tollgate/secrets/administrator.url store-cli.sh INFO memory
#
# Environment:
#   STORE_URL_FILE   file with the address, redis:// or rediss:// (users.sh wrote it)
#   STORE_CA_FILE    for rediss://: certificates to trust
set -euo pipefail

die() {
  echo "store-cli: $*" >&2
  exit 1
}

: "${STORE_URL_FILE:?names the file with the store\'s address}"
cli=$(command -v redis-cli || command -v valkey-cli) || die "redis-cli is missing: install the package redis-tools"
[ -r "$STORE_URL_FILE" ] || die "$STORE_URL_FILE cannot be read"
url=$(<"$STORE_URL_FILE")
[[ "$url" =~ ^(redis|rediss)://([^:/@]+):([^@]*)@([^:/]+):([0-9]+)/?$ ]] ||
  die "$STORE_URL_FILE must hold redis://user:password@host:port, or rediss://"
export REDISCLI_AUTH=${BASH_REMATCH[3]}
store=("$cli" --user "${BASH_REMATCH[2]}" -h "${BASH_REMATCH[4]}" -p "${BASH_REMATCH[5]}")
if [ "${BASH_REMATCH[1]}" = rediss ]; then
  store+=(--tls)
  [ -z "${STORE_CA_FILE:-}" ] || store+=(--cacert "$STORE_CA_FILE")
fi
exec "${store[@]}" "$@"
