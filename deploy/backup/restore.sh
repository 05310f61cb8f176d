#!/usr/bin/env bash
# Creates the data directory of a new store from a backup, and marks the ledger as restored: every edge and admin
# server answers 503 until the operator has checked what is missing and run `tollgate-admin store accept`. Without the
# mark, agents could spend again what they spent after the backup.
#
# Usage: restore.sh BACKUP DIRECTORY [ARCHIVE]
#   BACKUP      a directory that backup.sh made
#   DIRECTORY   the new store's `dir`; it must be empty or not exist
#   ARCHIVE     target directory of the archive. Leave it out if the archive was not lost: it then stays unchanged
#
# It needs redis-server of the store's version or newer (or valkey-server), redis-cli, tar and sha256sum. The store
# itself must not be running. Give the files to its user afterwards: chown -R redis:redis DIRECTORY.
set -euo pipefail
umask 077

WAIT_SECONDS=3600 # longest time for reading and writing the whole store

die() {
  echo "restore: $*" >&2
  exit 1
}

[ $# -eq 2 ] || [ $# -eq 3 ] || die "usage: restore.sh BACKUP DIRECTORY [ARCHIVE]"
backup=$1 directory=$2 archive=${3:-}
server=$(command -v redis-server || command -v valkey-server) || die "redis-server is missing"
cli=$(command -v redis-cli || command -v valkey-cli) || die "redis-cli is missing: install the package redis-tools"

[ -s "$backup/store.rdb" ] && [ -s "$backup/SHA256SUMS" ] || die "$backup is no whole backup"
(cd "$backup" && sha256sum --check --quiet --strict SHA256SUMS) || die "$backup is damaged: take another one"
at=$(sed -n 's/^at //p' "$backup/manifest")
[ -n "$at" ] || die "$backup/manifest does not say when it was made"
empty() { [ ! -e "$1" ] || { [ -d "$1" ] && [ -z "$(ls -A "$1")" ]; }; }
empty "$directory" || die "$directory is not empty: move away what is there first"
if [ -n "$archive" ]; then
  [ -s "$backup/archive.tar" ] || die "the backup has no archive"
  empty "$archive" || die "$archive is not empty: move it away first, it may be newer than the backup"
fi

mkdir -p "$directory"
cp "$backup/store.rdb" "$directory/dump.rdb"
# A temporary server without a port, with its socket in a private directory, so that no client can connect.
private=$(mktemp -d)
socket=$private/socket
"$server" --port 0 --unixsocket "$socket" --unixsocketperm 700 --dir "$directory" --dbfilename dump.rdb \
  --appendonly no --save "" --daemonize no --logfile "$private/log" </dev/null >/dev/null 2>&1 &
pid=$!
finish() {
  local status=$?
  kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
  [ "$status" -eq 0 ] || tail -n 3 "$private/log" >&2 2>/dev/null || true
  rm -rf "$private"
  exit "$status"
}
trap finish EXIT
ask() { "$cli" -s "$socket" "$@"; }

# until_said TEXT COMMAND…: waits until the server's answer contains TEXT.
until_said() {
  local text=$1 deadline=$((SECONDS + WAIT_SECONDS))
  shift
  while ((SECONDS < deadline)); do
    kill -0 "$pid" 2>/dev/null || die "the store ended while it read the backup"
    if ask "$@" 2>/dev/null | grep -q -- "$text"; then return 0; fi
    sleep 0.2
  done
  die "the store needed more than $WAIT_SECONDS seconds"
}

until_said PONG PING
keys=$(ask DBSIZE)
# In a cluster only one node holds the ledger's record; the others have nothing to mark.
if [ -n "$(ask HGET tollgate/store epoch)" ]; then
  ask HSET tollgate/store restored "backup of $at" >/dev/null
  marked=yes
else
  marked=no
fi
# The new store starts from the append-only file, so the snapshot is no longer needed afterwards.
[ "$(ask CONFIG SET appendonly yes)" = OK ] || die "the append-only file was not begun"
until_said 'aof_rewrite_in_progress:0' INFO persistence
until_said 'aof_last_bgrewrite_status:ok' INFO persistence
until_said 'aof_rewrite_scheduled:0' INFO persistence
ask SHUTDOWN NOSAVE >/dev/null 2>&1 || true
wait "$pid" 2>/dev/null || true
[ -s "$directory/appendonlydir/appendonly.aof.manifest" ] || die "the store wrote no append-only file"
rm -f "$directory/dump.rdb"
if [ -n "$archive" ]; then
  mkdir -p "$archive"
  tar --extract --file "$backup/archive.tar" --directory "$archive"
fi
echo "restore: $directory holds the store of $at with $keys keys"
if [ "$marked" = yes ]; then
  echo "restore: every call is denied until the operator accepts it:"
  echo "restore:   tollgate-admin ledger check; tollgate-admin audit verify --account A; tollgate-admin store accept"
else
  echo "restore: this node does not hold the ledger's record; the one that does carries the mark"
fi
