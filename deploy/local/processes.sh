# Sourced by up.sh: starting, watching and stopping the processes of `make run`. Each child runs in a session of its
# own, so that Ctrl-C reaches this script alone, which stops the children in order. The kernel terminates them if this
# script is killed. Each child holds the lock on descriptor 8 as long as it runs, so the next run waits for a store
# that is still saving. That store would otherwise remove the new one's socket when it exits.

STOP_SECONDS=120 # the edge lets calls in flight finish
READY_SECONDS=60

declare -A PIDS=()
ORDER=() # order of starting; stopped in reverse

say() { echo "tollgate: $*"; }

die() {
  echo "tollgate: $*" >&2
  exit 1
}

# free_port ADDRESS WHAT VARIABLE: exits if a process listens there.
free_port() {
  local host=${1%:*} port=${1##*:}
  if (exec 3<>"/dev/tcp/${host//[\[\]]/}/$port") 2>/dev/null; then
    die "port $port on $host is taken, and $2 needs it: stop what listens there, or set $3"
  fi
}

# start NAME COMMAND…: starts a child and records its pid.
start() {
  local name=$1
  shift
  local run=(setsid)
  if command -v setpriv >/dev/null; then run+=(setpriv --pdeathsig TERM --); fi
  "${run[@]}" "$@" </dev/null >"$STATE/log/$name.log" 2>&1 9>&- &
  PIDS[$name]=$!
  ORDER+=("$name")
}

alive() { kill -0 "${PIDS[$1]}" 2>/dev/null; }

last_line() { grep -v '^ *$' "$STATE/log/$1.log" | tail -n 1; }

# ready NAME URL: waits until the process answers at URL with success.
ready() {
  local tries
  for tries in $(seq $((READY_SECONDS * 5))); do
    alive "$1" || die "the $1 ended: $(last_line "$1")"
    if curl --silent --fail --max-time 2 --output /dev/null "$2"; then return 0; fi
    sleep 0.2
  done
  die "the $1 is not ready after $READY_SECONDS seconds; see $STATE/log/$1.log"
}

# Waits until any child exits, which is an error.
watch_all() {
  local name
  wait -n "${PIDS[@]}" || true
  for name in "${ORDER[@]}"; do
    alive "$name" || die "the $name ended: $(last_line "$name")"
  done
}

# stop NAME: sends SIGTERM, waits, and kills the process after STOP_SECONDS.
stop() {
  local pid=${PIDS[$1]} tries
  kill -TERM "$pid" 2>/dev/null || return 0
  for tries in $(seq $((STOP_SECONDS * 10))); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
}

# The store stops last, after calls in flight are settled. A second Ctrl-C ends the wait.
stop_all() {
  local status=$? at
  trap 'for name in "${ORDER[@]}"; do kill -KILL "${PIDS[$name]}" 2>/dev/null || true; done; exit 130' INT TERM HUP
  [ "${#ORDER[@]}" -eq 0 ] || say "stopping"
  for ((at = ${#ORDER[@]} - 1; at >= 0; at--)); do stop "${ORDER[$at]}"; done
  wait 2>/dev/null || true
  exit "$status"
}
