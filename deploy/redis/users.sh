#!/usr/bin/env bash
# Creates the store's users: an ACL file for Redis, and for each program a file with the store's address.
# Usage: users.sh DIRECTORY [ADDRESS]     ADDRESS is the part of store.url after the password: 127.0.0.1:6379, or some
#                                         nodes of a cluster (host:port,host:port) with SCHEME=redis-cluster;
#                                         SCHEME=rediss for TLS.
# The script writes users.acl, edge.url, admin.url, operator.url, backup.url and administrator.url into DIRECTORY,
# readable by their owner alone. A replaced file keeps its mode and owner. Backup and administration connect to a
# single node: with SCHEME=redis-cluster there are backup-1.url, administrator-1.url and so on, one for each node in
# ADDRESS, in its order.
#
# A user whose file exists keeps its password. A second run, after an upgrade changed the template, changes
# permissions but no passwords. Users in users.acl that are not in the template (a replica's) stay unchanged. The
# files also keep scheme and address, so neither needs to be given again. SCHEME must not contradict the files.
# ADDRESS applies only to files written by this run: missing ones, those of a new node of a cluster, or that of a
# rotated password.
#
# ROTATE=edge users.sh DIRECTORY [ADDRESS] creates a new password for tollgate-edge. The old one stays valid until
# users.sh runs without ROTATE, and so do the old ones of other users under rotation. Redis reads its own copy of the
# file: docs/guides/deployment.md, "Rotation", describes every step.
set -euo pipefail
umask 077

die() {
  echo "users: $*" >&2
  exit 1
}

[ $# -ge 1 ] && [ $# -le 2 ] || die "usage: users.sh DIRECTORY [ADDRESS]"
directory=$1
rotate=${ROTATE:-}
names=(edge admin operator backup administrator)
template=$(dirname "${BASH_SOURCE[0]}")/users.acl
case "${SCHEME:-redis}" in redis | rediss | redis-cluster) ;; *) die "SCHEME is redis, rediss or redis-cluster, not $SCHEME" ;; esac
[ -z "$rotate" ] || [[ " ${names[*]} " == *" $rotate "* ]] || die "ROTATE is one of: ${names[*]}; not $rotate"
mkdir -p "$directory"
# Two concurrent runs would overwrite each other's passwords.
exec 9<"$directory"
flock 9

# The parts of a file's address before and after user and password.
scheme_in() { sed -n 's|^\([a-z-]*\)://.*|\1|p' "$1"; }
place_in() { sed -n 's|^[a-z-]*://[^@]*@\(.*\)$|\1|p' "$1"; }

# Scheme and address of the existing files. A cluster has no backup.url, a single server no backup-1.url.
has_scheme="" has_place=""
for name in "${names[@]}"; do
  if [ -s "$directory/$name.url" ]; then
    has_scheme=$(scheme_in "$directory/$name.url") has_place=$(place_in "$directory/$name.url")
    break
  fi
done
if [ -z "$has_scheme" ] && [ -s "$directory/backup-1.url" ]; then has_scheme=redis-cluster; fi
[ -z "${SCHEME:-}" ] || [ -z "$has_scheme" ] || [ "$SCHEME" = "$has_scheme" ] ||
  die "the addresses in $directory are $has_scheme://, and SCHEME is $SCHEME: leave it out, or change the addresses there first"
scheme=${SCHEME:-${has_scheme:-redis}}
address=${2:-${has_place:-127.0.0.1:6379}}

# addresses NAME: the files of a user, each with its scheme and address.
addresses() {
  local nodes node number=0
  if [ "$scheme" != redis-cluster ]; then
    echo "$1.url $scheme $address"
  elif [ "$1" = backup ] || [ "$1" = administrator ]; then
    IFS=, read -ra nodes <<<"$address"
    for node in "${nodes[@]}"; do
      number=$((number + 1))
      echo "$1-$number.url redis $node"
    done
  else
    echo "$1.url redis-cluster $address"
  fi
}

# put FILE: replaces FILE by standard input, atomically. Mode and owner stay, since containers and services read it as
# other users. mv needs -f because the old file may be read-only.
put() {
  cat >"$1.new"
  if [ -e "$1" ]; then
    # Only root can change the owner of a file.
    if ! chown --reference="$1" "$1.new" 2>/dev/null && [ "$(stat -c %u:%g "$1")" != "$(stat -c %u:%g "$1.new")" ]; then
      rm -f "$1.new"
      die "$1 belongs to another user, whose file only root can replace"
    fi
    chmod --reference="$1" "$1.new"
  fi
  mv -f "$1.new" "$1"
}

# hashes_of NAME: the hashes of the user's passwords in users.acl, each with its #.
hashes_of() {
  [ ! -e "$directory/users.acl" ] || awk -v user="tollgate-$1" '$1 == "user" && $2 == user { for (i = 3; i <= NF; i++) if ($i ~ /^#/) print $i }' "$directory/users.acl"
}

hashed() { printf '%s' "$1" | sha256sum | cut -d ' ' -f 1; }

# The template without comments, with one line for each user.
acl=$(sed -e '/^#/d' -e '/^$/d' -e ':join' -e '/\\$/{N;s/ *\\\n */ /;b join' -e '}' "$template")
for name in "${names[@]}"; do
  password="" old=""
  while read -r file _; do
    [ -s "$directory/$file" ] || continue
    password=$(sed -n 's|^[a-z-]*://tollgate-[a-z]*:\([^@]*\)@.*|\1|p' "$directory/$file")
    [ -n "$password" ] || die "$directory/$file does not hold an address with a password: remove it to have a new one made"
    break
  done < <(addresses "$name")
  if [ "$rotate" = "$name" ]; then
    [ -n "$password" ] || die "there is no password of $name to be rotated"
    # A second rotation would drop the oldest password, which a program may still use.
    [ "$(hashes_of "$name" | wc -l)" -lt 2 ] ||
      die "$name has two passwords, of a rotation that is not finished: run users.sh without ROTATE first, once its programs have the new one"
    old=$password password=""
  fi
  if [ -z "$password" ]; then password=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n'); fi
  while read -r file how place; do
    if [ -s "$directory/$file" ]; then
      [ -n "$old" ] || continue
      how=$(scheme_in "$directory/$file")
      [ $# -eq 2 ] || place=$(place_in "$directory/$file")
    fi
    printf '%s://tollgate-%s:%s@%s\n' "$how" "$name" "$password" "$place" | put "$directory/$file"
  done < <(addresses "$name")
  # Redis stores the SHA-256 of a password. A rotation drops no hash, neither this user's old one nor those of other
  # users under rotation.
  hashes=$({
    echo "#$(hashed "$password")"
    [ -z "$old" ] || echo "#$(hashed "$old")"
    [ -z "$rotate" ] || hashes_of "$name"
  } | awk '!seen[$0]++' | paste -sd ' ')
  acl=${acl//"#${name^^}_PASSWORD"/$hashes}
done

# Users that are not in the template: an operator added them.
others=""
if [ -e "$directory/users.acl" ]; then
  others=$(awk 'NR == FNR { ours[$2] = 1; next } $1 == "user" && !($2 in ours)' <(printf '%s\n' "$acl") "$directory/users.acl")
fi
printf '%s\n' "$acl" ${others:+"$others"} | put "$directory/users.acl"
echo "users: wrote $directory/users.acl and the addresses of ${names[*]}"
if [ -n "$others" ]; then echo "users: kept $(awk '{ print $2 }' <<<"$others" | paste -sd ' ')"; fi
for name in "${names[@]}"; do
  if [ "$(hashes_of "$name" | wc -l)" -gt 1 ]; then echo "users: both passwords of $name work until this is run again without ROTATE"; fi
done
