#!/usr/bin/env bash
# One backup: the store as it was at one moment, and the archive of the audit trail as it was afterwards.
# What it leaves is a directory BACKUPS/<UTC time> with store.rdb, archive.tar, manifest (what is in it) and SHA256SUMS.
# It needs redis-cli (or valkey-cli), tar and sha256sum, prints no secret, and never touches an earlier backup that is whole.
#
# Environment:
#   STORE_URL_FILE   file with the address of the user tollgate-backup (deploy/redis/users.sh wrote it): redis:// or rediss://
#   BACKUPS          directory for backups
#   ARCHIVE          audit.archive when it is a directory; empty when it is a bucket, which has versions of its own
#   STORE_CA_FILE    for rediss://: certificates to trust
#   KEEP             newest backups that stay (48); others are removed once the new one is whole, but for
#   KEEP_DAILY       days (14) of which the last backup stays as well
#   ALLOW_FEWER      yes: make a backup although the store has left out writes, has no keys, or less than half of what the last
#                    backup has, and likewise for the archive. Without it such a backup is refused and none is removed: a store that was wiped
#                    would push out what is needed now. Look first (docs/guides/backup.md); then say so once, by hand
#
# A Redis Cluster: once for each master, each with a STORE_URL_FILE (backup-1.url, …) and BACKUPS of its own
# (docs/guides/backup.md).
set -euo pipefail
umask 077

die() {
  echo "backup: $*" >&2
  exit 1
}

: "${STORE_URL_FILE:?names the file with the store\'s address}" "${BACKUPS:?names the directory for backups}"
ARCHIVE=${ARCHIVE:-}
KEEP=${KEEP:-48}
KEEP_DAILY=${KEEP_DAILY:-14}
ALLOW_FEWER=${ALLOW_FEWER:-no}
[[ "$KEEP" =~ ^[1-9][0-9]*$ ]] || die "KEEP must be a number from 1 on, not $KEEP"
[[ "$KEEP_DAILY" =~ ^(0|[1-9][0-9]*)$ ]] || die "KEEP_DAILY must be a number, not $KEEP_DAILY"
[[ "$ALLOW_FEWER" =~ ^(yes|no)$ ]] || die "ALLOW_FEWER is yes or no, not $ALLOW_FEWER"
cli=$(command -v redis-cli || command -v valkey-cli) || die "redis-cli is missing: install the package redis-tools"

# redis://user:password@host:port
[ -r "$STORE_URL_FILE" ] || die "$STORE_URL_FILE cannot be read"
url=$(<"$STORE_URL_FILE")
[[ "$url" =~ ^(redis|rediss)://([^:/@]+):([^@]*)@([^:/]+):([0-9]+)/?$ ]] ||
  die "$STORE_URL_FILE must hold redis://user:password@host:port, or rediss://"
# The password goes by the environment, out of sight of `ps`.
export REDISCLI_AUTH=${BASH_REMATCH[3]}
store=("$cli" --user "${BASH_REMATCH[2]}" -h "${BASH_REMATCH[4]}" -p "${BASH_REMATCH[5]}")
if [ "${BASH_REMATCH[1]}" = rediss ]; then
  store+=(--tls)
  [ -z "${STORE_CA_FILE:-}" ] || store+=(--cacert "$STORE_CA_FILE")
fi

mkdir -p "$BACKUPS"
exec 9>"$BACKUPS/lock"
flock -n 9 || die "another backup into $BACKUPS is running"
# What an earlier run that was cut off left.
rm -rf "$BACKUPS"/*.unfinished

at=$(date -u +%Y-%m-%dT%H-%M-%SZ)
new=$BACKUPS/$at.unfinished
[ ! -e "$BACKUPS/$at" ] || die "$BACKUPS/$at is there already"
mkdir "$new"

# Whole backups, oldest first.
mapfile -t whole < <(find "$BACKUPS" -mindepth 1 -maxdepth 1 -type d -name '20*Z' -printf '%f\n' | sort)

# last_said WORD: what the newest manifest that has the word says; 0 when none has.
last_said() {
  local number said
  for ((number = ${#whole[@]} - 1; number >= 0; number--)); do
    said=$(sed -n "s/^$1 \([0-9]*\)\$/\1/p" "$BACKUPS/${whole[$number]}/manifest" 2>/dev/null || true)
    if [ -n "$said" ]; then
      echo "$said"
      return
    fi
  done
  echo 0
}

# not_fewer WHAT NOW BEFORE: refuses less than half of what there was.
not_fewer() {
  [ "$ALLOW_FEWER" = no ] && (($2 * 2 < $3)) || return 0
  die "the $1 has $2 where the last backup has $3: nothing is backed up, and every backup stays; look at it, then set ALLOW_FEWER=yes once (docs/guides/backup.md)"
}

# Keys of all databases of the server.
keys() {
  "${store[@]}" INFO keyspace | tr -d '\r' | sed -n 's/^db[0-9]*:keys=\([0-9]*\),.*/\1/p' | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# The server's snapshot, sent as to a replica: all keys at one moment, whatever is written meanwhile.
version=$("${store[@]}" INFO server | sed -n 's/^\(redis\|valkey\)_version:\([0-9.]*\).*/\2/p' | tail -n 1)
[ -n "$version" ] || die "the store does not answer, or does not let the user in"
# One that left out writes when it started has less than it answered for, and its backups would push out what it had.
lost=$("${store[@]}" INFO stats | tr -d '\r' | sed -n 's/^unexpected_error_replies:\([0-9]*\)$/\1/p')
[ "${lost:-0}" = 0 ] || [ "$ALLOW_FEWER" = yes ] ||
  die "the store has left out $lost writes: nothing is backed up, and every backup stays (docs/guides/runbook.md, TollgateStoreLostWrites)"
before=$(keys)
"${store[@]}" --rdb "$new/store.rdb" >"$new/log" 2>&1 || die "the store sent no snapshot: $(tail -n 1 "$new/log")"
rm "$new/log"
[ "$(head -c 5 "$new/store.rdb")" = REDIS ] || die "what the store sent is no snapshot"
# An empty store sends a snapshot, too. It may have been wiped before or while it was sent.
count=$(keys)
((before < count)) && count=$before
[ "$count" -gt 0 ] || [ "$ALLOW_FEWER" = yes ] ||
  die "the store has no keys: nothing is backed up, and every backup stays; look at it, then set ALLOW_FEWER=yes once (docs/guides/backup.md)"
not_fewer "store" "$count" "$(last_said keys)"

# The archive last: its objects never change, so one that is newer than the store does no harm, and none is missing.
files=0
if [ -n "$ARCHIVE" ]; then
  [ -d "$ARCHIVE" ] || die "ARCHIVE $ARCHIVE is no directory"
  files=$(find "$ARCHIVE" -type f | wc -l)
  not_fewer "archive" "$files" "$(last_said archive-files)"
  # 1: an object came while it was read.
  tar --create --file "$new/archive.tar" --directory "$ARCHIVE" . || [ $? -eq 1 ] || die "the archive could not be copied"
fi
{
  echo "at $at"
  echo "store-version $version"
  echo "store-bytes $(stat -c %s "$new/store.rdb")"
  echo "keys $count"
  echo "archive $([ -n "$ARCHIVE" ] && echo yes || echo no)"
  [ -z "$ARCHIVE" ] || echo "archive-files $files"
} >"$new/manifest"
(cd "$new" && sha256sum -- * >SHA256SUMS)
sync -f "$new"
mv "$new" "$BACKUPS/$at"

# Whole backups only are counted. The newest stay, and the last one of each of the newest days.
whole+=("$at")
days=0 day=
for ((i = ${#whole[@]} - 1, newest = 0; i >= 0; i--, newest++)); do
  name=${whole[$i]} is_last=no
  if [ "${name%%T*}" != "$day" ]; then
    day=${name%%T*} is_last=yes
    days=$((days + 1))
  fi
  if ((newest < KEEP)) || { [ $is_last = yes ] && ((days <= KEEP_DAILY)); }; then continue; fi
  rm -rf "${BACKUPS:?}/$name"
done
echo "backup: $BACKUPS/$at"
