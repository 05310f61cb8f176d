#!/usr/bin/env bash
# Installs missing programs from the packages of the distribution (Debian, Ubuntu). The group mutants installs a pinned
# cargo-mutants with cargo.
# Usage: packages.sh GROUP…   with the groups build, store, node, python, browser, nginx, prometheus, mutants
set -euo pipefail

die() {
  echo "packages: $*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

missing=()
need() { have "$1" || missing+=("$2"); }

# Ubuntu's package chromium only installs a snap, which does not run in a container. The script reports that and goes
# on, since all other packages and tests work there.
need_browser() {
  local program
  for program in "${TOLLGATE_CHROMIUM:-chromium}" chromium google-chrome google-chrome-stable chromium-browser; do
    ! have "$program" || return 0
  done
  if grep -qs '^ID=ubuntu' /etc/os-release; then
    echo "packages: no browser: Ubuntu has Chromium as a snap only, and the browser tests fail without one. Install Google Chrome's package or 'snap install chromium', or name a program in TOLLGATE_CHROMIUM; all other tests run" >&2
    return 0
  fi
  missing+=(chromium fonts-dejavu-core)
}

# Only promtool is needed. Installing the package would start a server, so the package is downloaded and unpacked
# below the target folder, which needs no root. The list of packages is fetched first if there is none yet.
unpack_prometheus() {
  ! have promtool || return 0
  local target dir
  target=${CARGO_TARGET_DIR:-$(cd "$(dirname "$0")/../.." && pwd)/target}
  dir=$target/prometheus
  [ ! -x "$dir/usr/bin/promtool" ] || return 0
  have apt-get && have dpkg-deb || die "promtool is not installed, and there is no apt-get to download Debian's package prometheus"
  echo "Downloading prometheus" >&2
  local fresh=$dir.new
  rm -rf "$fresh" && mkdir -p "$fresh"
  if ! (cd "$fresh" && apt-get download prometheus >log 2>&1); then
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update >"$fresh/log" 2>&1 </dev/null || true
    (cd "$fresh" && apt-get download prometheus >log 2>&1) || {
      cat "$fresh/log" >&2
      die "downloading prometheus failed"
    }
  fi
  dpkg-deb -x "$fresh"/prometheus_*.deb "$fresh"
  rm -f "$fresh"/prometheus_*.deb "$fresh/log"
  rm -rf "$dir" && mv "$fresh" "$dir"
}

MUTANTS=27.1.0

install_mutants() {
  ! cargo mutants --version 2>/dev/null | grep -qxF "cargo-mutants $MUTANTS" || return 0
  echo "Installing cargo-mutants $MUTANTS" >&2
  cargo install --locked --quiet cargo-mutants --version "=$MUTANTS"
}

for group in "$@"; do
  case "$group" in
    build)
      have cargo || [ -x "$HOME/.cargo/bin/cargo" ] || die "cargo is not installed; see https://rustup.rs"
      need cc build-essential
      need cmake cmake
      need pkg-config pkg-config
      need curl curl
      ;;
    store) have valkey-server || need redis-server redis-server ;;
    node)
      need node nodejs
      need npm npm
      ;;
    browser) need_browser ;;
    nginx) need nginx nginx ;;
    prometheus) unpack_prometheus ;;
    mutants) install_mutants ;;
    python) python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv) ;;
    *) die "there is no group $group" ;;
  esac
done

[ "${#missing[@]}" -gt 0 ] || exit 0
have apt-get || die "these packages are missing, and there is no apt-get to install them: ${missing[*]}"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  have sudo || die "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
  as_root=(sudo)
fi
echo "Installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  die "installing ${missing[*]} failed"
fi
