#!/usr/bin/env bash
# Plants faults in the Rust of money and gate, one at a time (.cargo/mutants.toml says where), and lists those that no test
# notices and equivalent.txt does not explain.
# Usage: run.sh unit [OPTION of cargo-mutants]…         by the unit tests of the crate that the fault is in
#        run.sh end-to-end [OPTION of cargo-mutants]…   what the run before left, by the end-to-end tests in TESTS
# Output: target/mutants; exit code 1 when a fault went unnoticed, or one that is listed was noticed.
set -euo pipefail
cd "$(dirname "$0")/../.."

die() {
  echo "mutants: $*" >&2
  exit 1
}

stage=${1:-}
shift || true
out=${CARGO_TARGET_DIR:-target}/mutants
mkdir -p "$out"
list=tests/mutants/equivalent.txt

# The baseline (no fault) must pass, or nothing is learned; cargo-mutants ends with 2 when it left survivors, 3 on time-outs.
run() {
  local status=0
  cargo mutants --workspace --output "$out" --no-shuffle "$@" || status=$?
  case $status in
    0 | 2 | 3) ;;
    *) die "cargo-mutants ended with $status" ;;
  esac
}

case $stage in
  unit) run "$@" -- --lib ;;
  end-to-end)
    [ -s "$out/mutants.out/missed.txt" ] || die "the run before left nothing"
    tests=()
    for test in ${TESTS:-edge faults ledger}; do tests+=(--test "$test"); done
    run --iterate --test-package tollgate "$@" -- "${tests[@]}"
    ;;
  *) die "say unit or end-to-end" ;;
esac

# A fault by its file, its line's text, where in it, and what is done: numbers of lines change with each commit.
named() {
  local line file row column what text trimmed
  while IFS= read -r line; do
    IFS=: read -r file row column what <<<"$line"
    text=$(sed -n "${row}p" "$file")
    trimmed=${text#"${text%%[![:space:]]*}"}
    echo "$file: $trimmed | $((column - ${#text} + ${#trimmed})):$what"
  done
}

# The reasons are indented.
listed() { grep -v -e '^#' -e '^ ' -e '^$' "$list" || true; }

results=$out/mutants.out
unnoticed=$(named <"$results/missed.txt" | grep -vxFf <(listed) || true)
wrong=$(cat "$results/caught.txt" "$results/timeout.txt" | named | grep -xFf <(listed) || true)
echo "$(wc -l <"$results/caught.txt") noticed, $(wc -l <"$results/timeout.txt") timed out, $(wc -l <"$results/missed.txt") not, of which $(grep -c . <<<"$unnoticed" || true) are not explained"
[ -z "$wrong" ] || printf 'listed as equivalent, but noticed:\n%s\n' "$wrong"
[ -z "$unnoticed" ] || printf 'went unnoticed:\n%s\n' "$unnoticed"
[ -z "$wrong$unnoticed" ]
