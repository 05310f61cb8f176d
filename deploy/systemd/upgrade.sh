#!/usr/bin/env bash
# Replaces the running edge by a new one without dropping a call (as root, on a machine with systemd). Install the new
# /usr/local/bin/tollgate-proxy first, with mv, since a running binary cannot be overwritten. The script starts the
# other instance of tollgate-proxy@, which waits. Then it sends SIGQUIT to the running one, which hands over its
# listening sockets, finishes its calls and exits. If the new one does not start, the old one keeps serving
# (docs/guides/upgrading.md).
#
# The script checks that the binary runs before it starts anything. The new instance checks its configuration,
# certificate and tables before it requests the sockets: on an error it exits with 2, and the old one is not affected.
set -euo pipefail

WAIT_SECONDS=5    # until the new process requests the sockets
READY_SECONDS=60  # until it is ready
DRAIN_SECONDS=130 # until the old one exits: slightly more than proxy.drain_ms
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
# The new process keeps the note beside the upgrade socket locked while it waits, for six seconds.
waits() { [ -e "$NOTE" ] && ! flock --nonblock "$NOTE" true; }
if ! until_true "$WAIT_SECONDS" waits; then
  # Stop it, since systemd would keep restarting a process that fails, for example on a full disk.
  systemctl stop "tollgate-proxy@$new"
  die "tollgate-proxy@$new does not wait for the sockets, and @$old still serves: journalctl -u tollgate-proxy@$new"
fi
systemctl kill --kill-who=main --signal=QUIT "tollgate-proxy@$old"
# Checks the health of the new process, which also took over the ops listener. The unit's environment (a drop-in, an
# EnvironmentFile) may set the address, so the function reads it from the process. It also passes the address of the
# other listener, since the configuration is valid only if the two differ.
healthy() {
  local pid one environment ours=()
  pid=$(systemctl show --property MainPID --value "tollgate-proxy@$new")
  mapfile -d '' environment <"/proc/$pid/environ" || return 1
  for one in "${environment[@]}"; do
    # No other variable is passed: they may contain the edge's secrets or name them.
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
