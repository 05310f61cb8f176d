#!/usr/bin/env bash
# Prints the commit of a build for tollgate_build_info: TOLLGATE_COMMIT, or else the checkout's commit, with -dirty if
# files differ from it. Prints nothing if the sources are no checkout, or if git does not trust the owner of the
# checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
echo "${TOLLGATE_COMMIT:-$(git describe --always --dirty --exclude '*' 2>/dev/null || true)}"
