#!/usr/bin/env bash
# Makes what compose.yaml needs and git must not have: secrets/ and .env. What is there stays.
# The directory is closed to others; the files in it are not, since the containers' users are no users of this machine.
set -euo pipefail
umask 077
cd "$(dirname "${BASH_SOURCE[0]}")"

mkdir -p secrets
chmod 700 secrets
../redis/users.sh secrets redis:6379
# Stored provider keys do not open without it: keep a copy elsewhere.
[ -s secrets/master.key ] || head -c 32 /dev/urandom | base64 >secrets/master.key
[ -s secrets/grafana.password ] || od -An -N18 -tx1 /dev/urandom | tr -d ' \n' >secrets/grafana.password
# What containers are shown; the address of whoever administers the store is not.
for name in users.acl edge.url admin.url operator.url backup.url master.key grafana.password; do chmod 444 "secrets/$name"; done
[ -e .env ] || cp .env.example .env
echo "prepare: made secrets/ and .env; keep a copy of secrets/master.key away from this machine"
