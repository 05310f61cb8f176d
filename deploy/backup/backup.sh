#!/usr/bin/env bash
# Makes one backup: a snapshot of the store at one moment, then a copy of the archive of the audit trail.
# The result is a directory BACKUPS/<UTC time> with store.rdb, archive.tar, manifest (its contents) and SHA256SUMS.
# The script needs redis-cli (or valkey-cli), tar and sha256sum, prints no secret, and never changes an earlier complete
# backup.
#
# Environment:
#   STORE_URL_FILE   file with the address of the user tollgate-backup (deploy/redis/users.sh wrote it): redis:// or
#                    rediss://
#   BACKUPS          directory for backups, best on a disk of its own. A backup that would leave less than a tenth of
#                    the disk free is refused
#   ARCHIVE          audit.archive when it is a directory; empty when it is a bucket, which has versions of its own
#   STORE_CA_FILE    for rediss://: certificates to trust
#   KEEP             number of newest backups to keep (48). Others are removed once the new one is complete, except
#   KEEP_DAILY       the last backup of each of so many days (14)
#   ALLOW_FEWER      yes: make a backup although the store has lost writes, has no keys, or the store or archive has
#                    less than half of the last backup. Without it the script refuses and removes no backup, since
#                    backups of a wiped store would replace the ones needed now. Find the cause first
#                    (docs/guides/backup.md), then set it for one run
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
# The environment passes the password, so that `ps` does not show it.
export REDISCLI_AUTH=${BASH_REMATCH[3]}
store=("$cli" --user "${BASH_REMATCH[2]}" -h "${BASH_REMATCH[4]}" -p "${BASH_REMATCH[5]}")
if [ "${BASH_REMATCH[1]}" = rediss ]; then
  store+=(--tls)
  [ -z "${STORE_CA_FILE:-}" ] || store+=(--cacert "$STORE_CA_FILE")
fi

mkdir -p "$BACKUPS"
exec 9>"$BACKUPS/lock"
flock -n 9 || die "another backup into $BACKUPS is running"
# Remains of interrupted runs.
rm -rf "$BACKUPS"/*.unfinished

at=$(date -u +%Y-%m-%dT%H-%M-%SZ)
new=$BACKUPS/$at.unfinished
[ ! -e "$BACKUPS/$at" ] || die "$BACKUPS/$at is there already"
mkdir "$new"
# What a failed run leaves would keep a full disk full, and the store may write its append-only file there.
trap 'rm -rf "$new"' EXIT

# Complete backups, oldest first.
mapfile -t whole < <(find "$BACKUPS" -mindepth 1 -maxdepth 1 -type d -name '20*Z' -printf '%f\n' | sort)

# last_said WORD: the number after WORD in the newest manifest that contains it, otherwise 0.
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

# not_fewer WHAT NOW BEFORE: exits if NOW is less than half of BEFORE.
not_fewer() {
  [ "$ALLOW_FEWER" = no ] && (($2 * 2 < $3)) || return 0
  die "the $1 has $2 where the last backup has $3: nothing is backed up, and every backup stays; look at it, then set ALLOW_FEWER=yes once (docs/guides/backup.md)"
}

# Keys of all databases of the server.
keys() {
  "${store[@]}" INFO keyspace | tr -d '\r' | sed -n 's/^db[0-9]*:keys=\([0-9]*\),.*/\1/p' | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# The server sends its snapshot as to a replica: all keys at one moment, unaffected by concurrent writes.
version=$("${store[@]}" INFO server | sed -n 's/^\(redis\|valkey\)_version:\([0-9.]*\).*/\2/p' | tail -n 1)
[ -n "$version" ] || die "the store does not answer, or does not let the user in"
# A store that skipped writes while it loaded its file has lost charges that it had confirmed. Its backups would replace
# complete ones.
lost=$("${store[@]}" INFO stats | tr -d '\r' | sed -n 's/^unexpected_error_replies:\([0-9]*\)$/\1/p')
[ "${lost:-0}" = 0 ] || [ "$ALLOW_FEWER" = yes ] ||
  die "the store has left out $lost writes: nothing is backed up, and every backup stays (docs/guides/runbook.md, TollgateStoreLostWrites)"
# The snapshot is smaller than the store's memory. A tenth of the disk stays free beside the backup: the store refuses
# every call when its append-only file has no room.
[ -z "$ARCHIVE" ] || [ -d "$ARCHIVE" ] || die "ARCHIVE $ARCHIVE is no directory"
needed=$("${store[@]}" INFO memory | tr -d '\r' | sed -n 's/^used_memory:\([0-9]*\)$/\1/p')
# A file that is being written can be gone when du reads it.
[ -z "$ARCHIVE" ] || needed=$((needed + $(du -sb "$ARCHIVE" 2>/dev/null | cut -f 1 || true)))
read -r size free < <(df --block-size=1 --output=size,avail "$BACKUPS" | tail -n 1)
((free - needed >= size / 10)) ||
  die "the disk of $BACKUPS has $free of $size bytes free, a backup needs up to $needed, and a tenth stays free: remove backups or enlarge the disk, and lower KEEP"
before=$(keys)
"${store[@]}" --rdb "$new/store.rdb" >"$new/log" 2>&1 || die "the store sent no snapshot: $(tail -n 1 "$new/log")"
rm "$new/log"
[ "$(head -c 5 "$new/store.rdb")" = REDIS ] || die "the store's answer is no snapshot"
# An empty store also sends a snapshot. The smaller count is used, since the store may be wiped while it sends.
count=$(keys)
((before < count)) && count=$before
[ "$count" -gt 0 ] || [ "$ALLOW_FEWER" = yes ] ||
  die "the store has no keys: nothing is backed up, and every backup stays; look at it, then set ALLOW_FEWER=yes once (docs/guides/backup.md)"
not_fewer "store" "$count" "$(last_said keys)"

# The archive is copied last. Its objects never change, so objects newer than the store do no harm and none is missing.
files=0
if [ -n "$ARCHIVE" ]; then
  files=$(find "$ARCHIVE" -type f | wc -l)
  not_fewer "archive" "$files" "$(last_said archive-files)"
  # tar exits with 1 if an object was added meanwhile.
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

# Only complete backups count. The newest ones stay, and the last one of each of the newest days.
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
