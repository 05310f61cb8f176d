#!/usr/bin/env bash
# Makes the store's users: an ACL file for Redis, and for each program a file with the address it connects to.
# Usage: users.sh DIRECTORY [ADDRESS]     ADDRESS is what follows the password in store.url: 127.0.0.1:6379, or some
#                                         nodes of a cluster (host:port,host:port) with SCHEME=redis-cluster;
#                                         SCHEME=rediss for TLS.
# Writes users.acl, edge.url, admin.url, operator.url, backup.url and administrator.url into DIRECTORY, readable by their owner
# alone; a file that it replaces keeps its mode and owner. A backup is of one node, and who administers talks to one: with
# SCHEME=redis-cluster there are backup-1.url, administrator-1.url and so on, one for each node in ADDRESS, in its order.
#
# What is there stays: a user whose file exists keeps its password, so that running it again (after an upgrade changed the
# template) changes rights and no passwords; users in users.acl that the template does not have (a replica's) stay as they are.
# So do scheme and place: neither needs to be named again. SCHEME must not contradict the files; an ADDRESS is for files that
# are made anew, for a node that a cluster has got, or a password that is rotated.
#
# ROTATE=edge users.sh DIRECTORY [ADDRESS] makes a new password for tollgate-edge. The old one goes on working beside it, until
# users.sh runs again without ROTATE; so do the old ones of other users that are being rotated. Redis reads its own copy of
# the file: docs/guides/deployment.md, "Rotation", has every step.
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
# Two runs at once would each write what the other has not seen.
exec 9<"$directory"
flock 9

# The two parts of the address in a file around user and password.
scheme_in() { sed -n 's|^\([a-z-]*\)://.*|\1|p' "$1"; }
place_in() { sed -n 's|^[a-z-]*://[^@]*@\(.*\)$|\1|p' "$1"; }

# What the installation has: a cluster's has no backup.url, and a single server's no backup-1.url.
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

# addresses NAME: the files of a user, each with the scheme and place that stand in it.
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

# put FILE: what comes in, in its place at once, with mode and owner of the file that is there: containers and services read
# it as other users. -f: the file that is there may be one that nobody may write to.
put() {
  cat >"$1.new"
  if [ -e "$1" ]; then
    # Only root can give a file to somebody else.
    if ! chown --reference="$1" "$1.new" 2>/dev/null && [ "$(stat -c %u:%g "$1")" != "$(stat -c %u:%g "$1.new")" ]; then
      rm -f "$1.new"
      die "$1 belongs to another user, whose file only root can replace"
    fi
    chmod --reference="$1" "$1.new"
  fi
  mv -f "$1.new" "$1"
}

# hashes_of NAME: the hashes of the user's passwords that users.acl has, each with its #.
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
    # A third password would drop the first, which a program may still use.
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
  # Redis keeps the SHA-256 of a password. A rotation drops none: neither the old one of this user, nor those of users whose
  # rotations go on.
  hashes=$({
    echo "#$(hashed "$password")"
    [ -z "$old" ] || echo "#$(hashed "$old")"
    [ -z "$rotate" ] || hashes_of "$name"
  } | awk '!seen[$0]++' | paste -sd ' ')
  acl=${acl//"#${name^^}_PASSWORD"/$hashes}
done

# Users that are not the template's: somebody added them by hand.
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
