#!/usr/bin/env bash
# Builds the edge with a profile of its own work (`make pgo`): once instrumented, which the bench then keeps busy with
# all it knows, and once more with what was counted. The pass-through is built in the same way, to compare with. The
# results are beside each other in target/pgo/bin.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
  echo "pgo: $*" >&2
  exit 1
}

TARGET=$(rustc -vV | sed -n 's/^host: //p')
LLVM=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
DIST=$(realpath -m "${CARGO_TARGET_DIR:-target}")/dist
COMMIT=$(deploy/local/commit.sh)
OUT=$(realpath -m "${CARGO_TARGET_DIR:-target}")/pgo

# The profile's form belongs to a version of LLVM: the tool has to be the compiler's.
profdata=
for tool in "$(rustc --print sysroot)/lib/rustlib/$TARGET/bin/llvm-profdata" "llvm-profdata-$LLVM"; do
  ! command -v "$tool" >/dev/null || profdata=$tool
done
[ -n "$profdata" ] || die "llvm-profdata $LLVM is not installed: 'rustup component add llvm-tools', or the package llvm-$LLVM"

# build FLAG NAME: both programs, with a compiler flag that --target keeps away from build scripts and procedural
# macros.
build() {
  TOLLGATE_COMMIT=$COMMIT RUSTFLAGS="${RUSTFLAGS:-} $1" CARGO_TARGET_DIR="$OUT/$2" "${CARGO:-cargo}" build --locked --profile dist --target "$TARGET" \
    --package tollgate --package gate-bench-rig --bin tollgate-proxy --bin bench-pass-through
  mkdir -p "$OUT/bin"
  cp "$OUT/$2/$TARGET/dist/"{tollgate-proxy,bench-pass-through} "$DIST/"{bench-load,bench-upstream} "$OUT/bin/"
}

bench() {
  "${CARGO:-cargo}" run --locked --package gate-bench --bin gate-bench -- --bin-dir "$OUT/bin" "$@"
}

rm -rf "$OUT/counted" "$OUT/bin"
build "-Cprofile-generate=$OUT/counted" instrumented
bench --quick --only full-load,latency,bodies,protocols,edges,hot-account --out "$OUT/training"
compgen -G "$OUT/counted/*.profraw" >/dev/null || die "the instrumented programs left nothing in $OUT/counted"
"$profdata" merge --output "$OUT/merged.profdata" "$OUT"/counted/*.profraw
build "-Cprofile-use=$OUT/merged.profdata" trained
echo "pgo: $OUT/bin/tollgate-proxy"
