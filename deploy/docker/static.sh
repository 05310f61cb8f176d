#!/usr/bin/env bash
# Builds both programs as static binaries (`make static`), for an empty image or a machine of any distribution, and runs
# each in a root file system that contains nothing else.
# Usage: static.sh [PROGRAM…]     given built programs, only runs them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TARGET=$(uname -m)-unknown-linux-gnu

die() {
  echo "static: $*" >&2
  exit 1
}

if [ $# -eq 0 ]; then
  # With --target the flag does not apply to build scripts and procedural macros, which cannot be static.
  TOLLGATE_COMMIT=$(deploy/local/commit.sh) RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
    "${CARGO:-cargo}" build --profile dist --locked --bins --package tollgate --target "$TARGET"
  built=${CARGO_TARGET_DIR:-target}/$TARGET/dist
  set -- "$built/tollgate-proxy" "$built/tollgate-admin"
fi

for program in "$@"; do
  [ -x "$program" ] || die "$program is not there"
  # ldd prints a different message for each of the two kinds of static binary.
  ldd "$program" 2>&1 | grep -q -e 'statically linked' -e 'not a dynamic executable' || die "$program needs libraries: $(ldd "$program")"
  root=$(mktemp -d)
  cp "$program" "$root/program"
  # As root, or in a user namespace of our own where the kernel allows that.
  change=(chroot)
  [ "$(id -u)" -eq 0 ] || change=(unshare --user --map-root-user chroot)
  said=$("${change[@]}" "$root" /program --version) || die "$program does not run alone"
  rm -rf "$root"
  echo "static: $program: $said, $(($(stat -c %s "$program") / 1048576)) MB"
done
