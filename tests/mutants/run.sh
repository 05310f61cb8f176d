#!/usr/bin/env bash
# Plants faults in the Rust of money and calls, one at a time (.cargo/mutants.toml says where), and lists those that no
# test notices and equivalent.txt does not explain.
# Usage: run.sh unit [OPTION of cargo-mutants]…         by the unit tests of the crate that the fault is in
#        run.sh end-to-end [OPTION of cargo-mutants]…   what the run before left, by the end-to-end tests in TESTS
# SAMPLE=FIRST,LAST takes only these places of a random order of all faults, which SEED (1) chooses: 1,150 and 151,300
# are two samples without a common fault. The order does not change with what changes elsewhere in a file.
# SLOW=1 runs the slow unit tests too: for what is left of chat without them.
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
list=tests/mutants/equivalent.txt
# Nobody looks at a backtrace here, and without the lines for one the tests are linked in half the time.
export CARGO_PROFILE_DEV_DEBUG=0
# Maximum seconds of a run of unit tests: some five, or a minute on a busy machine. A run that hangs noticed the fault.
LONGEST=90
# Seconds of calculation for each fault, which only the reader of bodies (chat) needs.
slow=(tests::properties::every_prefix_is_refused tests::properties::large_bodies)
skipped=()
[ -n "${SLOW:-}" ] || skipped=("${slow[@]/#/--skip=}")

# Faults that cargo-mutants 27.1 plants whatever was chosen: they are in no sample and do not count for one.
always=': delete field '
uncounted=${SAMPLE:+$always}

# cargo-mutants ends with 2 when it left survivors, 3 on time-outs.
run() {
  local status=0
  cargo mutants --workspace --output "$out" --no-shuffle "$@" || status=$?
  case $status in
    0 | 2 | 3) ;;
    *) die "cargo-mutants ended with $status" ;;
  esac
}

# Its own first run, without a fault, would build all packages together, and so every dependency once more: features
# differ. The tests of each package by itself must pass, or nothing is learned.
run_unit() {
  run --baseline=skip --timeout "$LONGEST" --cargo-arg=--lib "$@"
}

# The crates that the files on stdin belong to.
packages() {
  local folder
  while IFS= read -r folder; do
    until [ -e "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
    sed -n '/^name = /{s/.*"\(.*\)"/\1/p;q}' "$folder/Cargo.toml"
  done | sort -u
}

pass_without_fault() {
  local package
  for package in $(faults "$@" | cut -d: -f1 | packages); do
    cargo test --quiet --locked --package "$package" --lib >"$out/without.txt" 2>&1 || die "without a fault $package fails: $out/without.txt"
  done
}

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

# The options that choose the faults of the sample, each by its whole name.
sampled() {
  [ -n "${SAMPLE:-}" ] || return 0
  local fault name
  paste -d '\t' <(faults "$@" | named) <(faults "$@") | grep -v "$always" | while IFS=$'\t' read -r fault name; do
    printf '%s %s\n' "$(sha256sum <<<"${SEED:-1} $fault")" "$name"
  done | sort -u | sed -n "${SAMPLE}p" | sed -e 's/^[0-9a-f]*  - //' -e 's/[][\\.*^$+?(){}|/&-]/\\&/g' -e 's/.*/--re=^&$/'
}

faults() { cargo mutants --workspace --list "$@"; }

case $stage in
  # For a test: the crates of the files on stdin.
  packages)
    packages
    exit
    ;;
  unit)
    mkdir -p "$out"
    mapfile -t chosen < <(sampled "$@")
    [ -z "${SAMPLE:-}" ] || [ "${#chosen[@]}" -gt 0 ] || die "no fault is in that sample"
    pass_without_fault "$@" "${chosen[@]}"
    run_unit "$@" "${chosen[@]}" -- -- "${skipped[@]}"
    ;;
  end-to-end)
    [ -s "$out/mutants.out/missed.txt" ] || die "the run before left nothing"
    tests=()
    for test in ${TESTS:-edge faults ledger}; do tests+=(--test "$test"); done
    run --iterate --test-package tollgate "$@" -- "${tests[@]}"
    ;;
  *) die "say unit or end-to-end" ;;
esac

# The reasons are indented.
listed() { grep -v -e '^#' -e '^ ' -e '^$' "$list" || true; }

results=$out/mutants.out
unnoticed=$(named <"$results/missed.txt" | grep -vxFf <(listed) || true)
wrong=$(cat "$results/caught.txt" "$results/timeout.txt" | named | grep -xFf <(listed) || true)
counted() { grep -vc "${uncounted:-^$}" "$results/$1.txt" || true; }
echo "$(counted caught) noticed, $(counted timeout) timed out, $(counted missed) not, $(counted unviable) do not compile; not explained: $(grep -c . <<<"$unnoticed" || true)"
[ -z "$wrong" ] || printf 'listed as equivalent, but noticed:\n%s\n' "$wrong"
[ -z "$unnoticed" ] || printf 'went unnoticed:\n%s\n' "$unnoticed"
[ -z "$wrong$unnoticed" ]
