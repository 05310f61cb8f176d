#!/usr/bin/env bash
# Creates the files that compose.yaml needs and that git must not contain: secrets/ and .env. Existing files stay.
# Other users cannot enter the directory. Its files are world-readable, since the containers run as users unknown here.
set -euo pipefail
umask 077
cd "$(dirname "${BASH_SOURCE[0]}")"

mkdir -p secrets
chmod 700 secrets
../redis/users.sh secrets redis:6379
# Stored provider keys cannot be decrypted without it: keep a copy elsewhere.
[ -s secrets/master.key ] || head -c 32 /dev/urandom | base64 >secrets/master.key
[ -s secrets/grafana.password ] || od -An -N18 -tx1 /dev/urandom | tr -d ' \n' >secrets/grafana.password
# Files that containers mount. The administrator's address is not among them.
for name in users.acl edge.url admin.url operator.url backup.url master.key grafana.password; do chmod 444 "secrets/$name"; done
[ -e .env ] || cp .env.example .env
echo "prepare: made secrets/ and .env; keep a copy of secrets/master.key away from this machine"
