#!/usr/bin/env bash
# Puts a new edge in the place of the running one without dropping a call (as root, on a machine with systemd).
# Install the new /usr/local/bin/tollgate-proxy first (mv it into place: a running binary cannot be written over).
# The other instance of tollgate-proxy@ is started and waits; the running one gets SIGQUIT, hands over its listening sockets,
# finishes its calls and ends. If the new one does not come up, the old one goes on serving (docs/guides/upgrading.md).
#
# A binary that does not run is found before anything is started. A wrong configuration, certificate or table is found by the new
# instance before it asks for the sockets: it ends with 2, and the old one was not disturbed.
set -euo pipefail

WAIT_SECONDS=5    # for the new process to ask for the sockets
READY_SECONDS=60  # for it to be ready
DRAIN_SECONDS=130 # for the old one to end: proxy.drain_ms and a little
NOTE=/var/lib/tollgate/proxy/upgrade.sock.note

die() {
  echo "upgrade: $*" >&2
  exit 1
}

active() { systemctl is-active --quiet "tollgate-proxy@$1"; }

# until_true SECONDS COMMAND…
until_true() {
  local tries=$(($1 * 5)) try
  shift
  for try in $(seq "$tries"); do
    if "$@"; then return 0; fi
    sleep 0.2
  done
  return 1
}

if active a && active b; then die "both instances run: an upgrade is under way, or one was interrupted; stop the older one"; fi
if active a; then old=a new=b; elif active b; then old=b new=a; else die "no edge runs: systemctl start tollgate-proxy@a"; fi

/usr/local/bin/tollgate-proxy --version >/dev/null || die "the new binary does not run"

systemctl start "tollgate-proxy@$new"
# It keeps the note beside the upgrade socket locked as long as it waits, which is six seconds.
waits() { [ -e "$NOTE" ] && ! flock --nonblock "$NOTE" true; }
if ! until_true "$WAIT_SECONDS" waits; then
  # It may be one that is started again and again, for a full disk.
  systemctl stop "tollgate-proxy@$new"
  die "tollgate-proxy@$new does not wait for the sockets, and @$old still serves: journalctl -u tollgate-proxy@$new"
fi
systemctl kill --kill-who=main --signal=QUIT "tollgate-proxy@$old"
# The health of whoever listens: the old one lets go of its ops listener as well. The address may stand in the unit's environment
# (a drop-in, an EnvironmentFile), so the process is asked for its own, and for that of its other listener, since the two must
# differ.
healthy() {
  local pid one environment ours=()
  pid=$(systemctl show --property MainPID --value "tollgate-proxy@$new")
  mapfile -d '' environment <"/proc/$pid/environ" || return 1
  for one in "${environment[@]}"; do
    # Nothing else: its secrets are for itself, and other settings may name them.
    case "$one" in TOLLGATE_PROXY__LISTEN=* | TOLLGATE_PROXY__OPS_LISTEN=*) ours+=("$one") ;; esac
  done
  env -i "${ours[@]}" /usr/local/bin/tollgate-admin health edge --config /etc/tollgate/tollgate.toml
}
until_true "$READY_SECONDS" healthy >/dev/null 2>&1 ||
  die "the edge is not ready: journalctl -u tollgate-proxy@$new"
gone() { ! active "$old"; }
until_true "$DRAIN_SECONDS" gone || die "tollgate-proxy@$old still runs: journalctl -u 'tollgate-proxy@*' says why"
active "$new" || die "tollgate-proxy@$new ended: journalctl -u tollgate-proxy@$new"
systemctl disable --quiet "tollgate-proxy@$old"
systemctl enable --quiet "tollgate-proxy@$new"
echo "upgrade: tollgate-proxy@$new serves"
