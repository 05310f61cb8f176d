#!/usr/bin/env bash
# The commit that a build is of, for tollgate_build_info: what TOLLGATE_COMMIT says, or else the checkout's, with -dirty where files
# differ from it. Nothing where the sources are no checkout, or belong to somebody whose git may not be trusted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
echo "${TOLLGATE_COMMIT:-$(git describe --always --dirty --exclude '*' 2>/dev/null || true)}"
