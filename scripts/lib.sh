# shellcheck shell=bash
# What the scripts share. Sourced, never run.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# ---- talking: people read stderr, programs read stdout

say() { printf '%s\n' "$*" >&2; }
hint() { printf 'hint: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# ---- who and where we are

is_linux() { [ "$(uname -s)" = Linux ]; }
is_root() { [ "$(id -u)" = 0 ]; }

as_root() {
  if is_root; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root, and there is no sudo: $*"
  fi
}

# await SECONDS COMMAND…: polls until the command succeeds.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

# ---- the container engine
# Asked with Node because it is the one program that is sure to be there and can speak HTTP over a
# Unix socket; the engine's own command line may be missing.

engine_candidates() {
  if [ -n "${DOCKER_HOST:-}" ]; then
    echo "$DOCKER_HOST"
    return
  fi
  local socket
  for socket in /var/run/docker.sock "$HOME/.docker/run/docker.sock" "$HOME/.orbstack/run/docker.sock" \
    "$HOME/.colima/default/docker.sock" "${XDG_RUNTIME_DIR:-/nonexistent}/docker.sock"; do
    [ ! -S "$socket" ] || echo "unix://$socket"
  done
}

# engine_pings ENDPOINT
engine_pings() {
  node -e '
    const url = new URL(process.argv[1]);
    const where = url.protocol === "unix:" ? { socketPath: url.pathname }
      : { host: url.hostname, port: url.port || 2375 };
    const call = require("http").get({ ...where, path: "/_ping", timeout: 5000 },
      (answer) => process.exit(answer.statusCode === 200 ? 0 : 1));
    call.on("timeout", () => process.exit(1)).on("error", () => process.exit(1));
  ' "$1"
}

# Prints the endpoint of the first engine that answers.
engine_host() {
  local host
  while read -r host; do
    if engine_pings "$host"; then
      echo "$host"
      return
    fi
  done < <(engine_candidates)
  return 1
}

# The engine runs, but not for us.
engine_is_locked() { is_linux && [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; }

say_how_to_join() {
  say "The engine runs, but $(id -un) may not use it."
  hint "join its group (this is as much power as root has), log in again, and repeat:"
  hint "  sudo usermod -aG $(stat -Lc %G /var/run/docker.sock) $(id -un)"
}

# start_detached LOG COMMAND…: as root. It outlives this shell and holds none of its files.
start_detached() {
  local log=$1
  shift
  # shellcheck disable=SC2016 # the inner shell expands these
  as_root sh -c 'log=$1; shift; exec setsid "$@" >>"$log" 2>&1' sh "$log" "$@" \
    </dev/null >/dev/null 2>&1 9>&- &
}

# Private engines for tests: their own bridge, data and socket, so that they never disturb another one.
# The data stays between runs, because the layers of the box image are in it. TEST_ENGINE is the number of
# the first; those after it let several tests run at once, because boxes have names, and a name can be had
# once on an engine. Two engines change the same firewall rules under each other's hands, so each of the others
# has a network of its own, with nothing in it but what runs there. So has a further one, whose disk is small:
# tests fill it up.
TEST_ENGINE=${TEST_ENGINE:-1}
# Tests wait more than they compute: two processors are not busy with three of them.
MORE_ENGINES=($((TEST_ENGINE + 1)) $((TEST_ENGINE + 2)))
SMALL_ENGINE=$((TEST_ENGINE + 50))
test_engine_run() { echo "/run/agentbox-test$1"; }
test_engine_data() { echo "/var/lib/agentbox-test$1"; }
test_engine_host() { echo "unix://$(test_engine_run "$1")/docker.sock"; }
# The second number of its addresses; the one after it is for the networks it makes.
test_engine_net() { echo $((211 + 2 * ($1 % 20))); }
TEST_ENGINE_HOST=$(test_engine_host "$TEST_ENGINE")

# in_net_of NUMBER: the words before a command that is to see what that engine's boxes publish.
in_net_of() {
  [[ " ${MORE_ENGINES[*]} $SMALL_ENGINE " != *" $1 "* ]] || echo "nsenter --net=/run/netns/agentbox-test$1"
}

# The group that may use the socket.
engine_group() {
  is_root || { id -gn; return; }
  getent group docker >/dev/null || groupadd --system docker
  echo docker
}

# start_test_engine NUMBER GROUP
start_test_engine() {
  local n=$1 group=$2 run data net at bridge=agentbox-test$1
  run=$(test_engine_run "$n") data=$(test_engine_data "$n") net=$(in_net_of "$n") at=$(test_engine_net "$n")
  stop_test_engine "$n" # what a killed run left behind
  as_root mkdir -p "$run" "$data"
  as_root rm -f "$data/dockerd.log"
  [ -z "$net" ] || as_root ip netns add "agentbox-test$n"
  # shellcheck disable=SC2086 # words
  as_root $net sh -ec "ip link set lo up; ip link add name $bridge type bridge
    ip addr add 10.$at.0.1/24 dev $bridge; ip link set $bridge up"
  run_test_engine "$n" --host "unix://$run/docker.sock" --group "$group" \
    --bridge "$bridge" --default-address-pool "base=10.$((at + 1)).0.0/16,size=24" \
    --data-root "$data/data" --exec-root "$run/exec" --pidfile "$run/docker.pid"
  await 60 engine_pings "unix://$run/docker.sock" || {
    as_root tail -n 30 "$data/dockerd.log" >&2
    die "the engine for the tests did not start; its log is $data/dockerd.log"
  }
}

# start_small_engine GROUP: its data is on a disk of its own, beside a folder for what fills it. A file that
# takes as much as is written to it holds the disk; memory does where no file can.
start_small_engine() {
  local data disk
  data=$(test_engine_data "$SMALL_ENGINE") disk=$(small_engine_disk)
  stop_small_engine
  as_root mkdir -p "$disk"
  mountpoint -q "$disk" || as_root sh -ec "[ -e '$data/disk.img' ] || {
      truncate -s 2G '$data/disk.new'; mkfs.ext4 -q -m 0 '$data/disk.new'; mv '$data/disk.new' '$data/disk.img'
    }; mount -o loop,discard '$data/disk.img' '$disk'" ||
    as_root mount -t tmpfs -o size=1g,mode=0755 agentbox-small-engine "$disk"
  as_root rm -rf "$disk/filler"
  as_root mkdir -p "$disk/data"
  as_root ln -sfn disk/data "$data/data"
  start_test_engine "$SMALL_ENGINE" "$1"
}

stop_small_engine() {
  local disk
  disk=$(small_engine_disk)
  stop_test_engine "$SMALL_ENGINE"
  ! mountpoint -q "$disk" || as_root umount -l "$disk"
}

small_engine_disk() { echo "$(test_engine_data "$SMALL_ENGINE")/disk"; }

# run_test_engine NUMBER ARG…
run_test_engine() {
  local n=$1
  shift
  # shellcheck disable=SC2046 # words
  start_detached "$(test_engine_data "$n")/dockerd.log" $(in_net_of "$n") dockerd "$@"
}

# By pid file: nobody else's engine has this one.
test_engine_pid() {
  local pid
  pid=$(cat "$(test_engine_run "$1")/docker.pid" 2>/dev/null) && runs "$pid" &&
    [ "$(cat "/proc/$pid/comm")" = dockerd ] && echo "$pid"
}

# Not gone, and not merely waiting to be collected by its parent.
runs() { grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null; }
ended() { ! runs "$1"; }

# stop_test_engine NUMBER
stop_test_engine() {
  local n=$1 pid bridge run
  run=$(test_engine_run "$n")
  [ -d "$run" ] || return 0
  if pid=$(test_engine_pid "$n"); then
    as_root kill "$pid"
    await 60 ended "$pid" || as_root kill -9 "$pid"
  fi
  end_leftovers "$run"
  as_root rm -rf "$run"
  # An engine leaves bridges and firewall rules in the kernel.
  if [ -n "$(in_net_of "$n")" ]; then
    [ ! -e "/run/netns/agentbox-test$n" ] || as_root ip netns delete "agentbox-test$n"
    return
  fi
  # All of its own are in two address ranges.
  ip -o -4 addr show | awk -v ours="^10[.]($(test_engine_net "$n")|$(($(test_engine_net "$n") + 1)))[.]" '$4 ~ ours { print $2 }' | sort -u | while read -r bridge; do
    remove_firewall_rules "$bridge"
    as_root ip link delete "$bridge"
  done
}

# end_leftovers RUN: what an engine leaves that could not end in order, because a box of it hung: those who keep
# its boxes, the boxes, and mounts. A box that is frozen cannot even be killed.
end_leftovers() {
  local keeper box mount
  for keeper in $(grep -lzF "$1/exec/containerd/" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
    # It may be about to end by itself.
    box=$({ tr '\0' '\n' <"/proc/$keeper/cmdline" | sed -n '/^-id$/{n;p}'; } 2>/dev/null || true)
    as_root sh -c 'state=/sys/fs/cgroup/freezer/docker/$1/freezer.state
      [ ! -e "$state" ] || echo THAWED >"$state"
      kill -9 $(ps -o pid= --ppid "$2") "$2"' sh "$box" "$keeper" 2>/dev/null || true
  done
  awk -v run="$1/" 'index($2, run) == 1 { print $2 }' /proc/mounts | while read -r mount; do
    as_root umount -l "$mount"
  done
}

remove_firewall_rules() {
  local table rule
  for table in nat filter; do
    as_root iptables -t "$table" -S | { grep -wF -e "$1" || true; } | sed -n 's/^-A/-D/p' | while read -r rule; do
      # shellcheck disable=SC2086 # a rule is a list of words
      as_root iptables -t "$table" $rule
    done
  done
}

# ensure_image AGENTBOX…: builds the smallest box image with the given command line of `agentbox`. Exit
# code 3 means that its base can be had from nowhere; then the base is made here.
ensure_image() {
  local rc=0 base
  "$@" prepare --stage core || rc=$?
  [ "$rc" = 3 ] || return "$rc"
  say "The base of the box image cannot be pulled; making it from Debian packages."
  base=$("$ROOT/scripts/base-image")
  "$@" prepare --stage core --import-base - <"$base"
}

# ---- running things as a person without privileges
# Tests start here, not as root: what works for root only would look fine otherwise.

TEST_USER=agentbox-test

# The user tests run as: ourselves, or a system user when we are root.
tester() { if is_root; then echo "$TEST_USER"; else id -un; fi; }

# ensure_tester ENGINE: makes the user, and lets it use the engine's socket.
ensure_tester() {
  is_root || return 0
  local uid=4242
  if ! getent passwd "$TEST_USER" >/dev/null; then
    while getent passwd "$uid" >/dev/null; do uid=$((uid + 1)); done
    say "Adding the system user $TEST_USER ($uid), as which the tests run."
    useradd --system --key SYS_UID_MAX=60000 --uid "$uid" --user-group --no-create-home --home-dir /nonexistent \
      --shell /usr/sbin/nologin "$TEST_USER"
  fi
  # Users for boxes of an engine without root's rights.
  if ! grep -q "^$TEST_USER:" /etc/subuid; then
    local first
    first=$(awk -F: '{ if ($2 + $3 > most) most = $2 + $3 } END { print (most > 100000 ? most : 100000) }' /etc/subuid /etc/subgid)
    usermod --add-subuids "$first-$((first + 65535))" --add-subgids "$first-$((first + 65535))" "$TEST_USER"
  fi
  # Everybody's, as udev has it; where no udev runs it is root's.
  [ ! -c /dev/net/tun ] || [ "$(stat -c %a /dev/net/tun)" = 666 ] || chmod 666 /dev/net/tun
  local socket=${1#unix://} group
  [ -S "$socket" ] || return 0
  group=$(stat -Lc %G "$socket")
  case $group in
    root | UNKNOWN) die "$socket belongs to the group $group; give it to the group docker, so that $TEST_USER may use it" ;;
  esac
  id -nG "$TEST_USER" | grep -qwF -e "$group" || usermod -aG "$group" "$TEST_USER"
}

# as_tester NAME=VALUE… COMMAND…: with a clean environment, as the user of the tests; in the network of
# engine number IN_NET_OF.
as_tester() {
  local clean=(env -i "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" LC_ALL=C.UTF-8
    RUST_BACKTRACE=1)
  local name
  for name in DOCKER_HOST SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS http_proxy https_proxy no_proxy \
    HTTP_PROXY HTTPS_PROXY NO_PROXY AGENTBOX_UPDATE_PICTURES; do
    [ -z "${!name:-}" ] || clean+=("$name=${!name}")
  done
  if is_root; then
    # shellcheck disable=SC2046 # words
    $(in_net_of "${IN_NET_OF:-}") setpriv --reuid "$TEST_USER" --regid "$TEST_USER" --init-groups "${clean[@]}" "$@"
  else
    "${clean[@]}" "$@"
  fi
}

# A folder every user can enter, with the programs in it; a clone may lie where only its owner gets in.
# make_stage PROFILE_DIR: prints the folder. `home` and `artifacts` in it belong to the tester.
make_stage() {
  local from=$1 stage
  [ -x "$from/agentbox-window" ] || die "there are no programs in $from; run scripts/build"
  stage=$(mktemp -d /tmp/agentbox-e2e.XXXXXX)
  chmod 755 "$stage"
  install -m 755 "$from/agentbox" "$from/agentbox-desktop" "$from/agentbox-window" "$stage/"
  install -D -m 755 "$from/box/agentbox-ctl" "$stage/box/agentbox-ctl"
  [ ! -d ui/dist-browser ] || cp -r ui/dist-browser "$stage/page"
  install -d -m 700 "$stage/home"
  install -d -m 755 "$stage/artifacts"
  ! is_root || chown "$TEST_USER:" "$stage/home" "$stage/artifacts"
  small_disk "$stage/small"
  small_engine "$stage"
  keep_engines "$stage"
  # The folder for display sockets must be root's; a server started without privileges cannot make it so.
  [ -d /tmp/.X11-unix ] || as_root install -d -m 1777 /tmp/.X11-unix
  echo "$stage"
}

# A disk that is soon full.
small_disk() {
  install -d "$1"
  as_root mount -t tmpfs -o "size=12m,mode=0700,uid=$(id -u "$(tester)"),gid=$(id -g "$(tester)")" agentbox-small "$1"
}

# Where tests find the engine with the small disk, and the folder in which they fill that.
small_engine() {
  local disk
  disk=$(small_engine_disk)
  test_engine_pid "$SMALL_ENGINE" >/dev/null || return 0
  as_root install -d -m 700 -o "$(id -u "$(tester)")" -g "$(id -g "$(tester)")" "$disk/filler"
  ln -s "$disk/filler" "$1/small-engine.filler"
  ln -s "$(test_engine_run "$SMALL_ENGINE")/docker.sock" "$1/small-engine.sock"
}

# The ways to kill the tests' own engines and to start them again, which takes root: a pipe for each that
# takes the words `kill` and `start`. There is none for an engine that is somebody else's.
keep_engines() {
  local n pid pipe command
  for n in "$TEST_ENGINE" "${MORE_ENGINES[@]}"; do
    pid=$(test_engine_pid "$n") || continue
    pipe=$1/$(basename "$(test_engine_run "$n")").restart
    mapfile -d '' -t command <"/proc/$pid/cmdline"
    mkfifo -m 600 "$pipe"
    ! is_root || chown "$TEST_USER:" "$pipe"
    restart_engine "$n" "$pipe" "${command[@]:1}" </dev/null >/dev/null 2>&1 9>&- &
  done
}

# restart_engine NUMBER PIPE ARG…: until the pipe is gone.
restart_engine() {
  local n=$1 pipe=$2 word pid
  shift 2
  exec 7<>"$pipe"
  while [ -p "$pipe" ]; do
    read -r -t 5 -u 7 word || continue
    case $word in
      kill) ! pid=$(test_engine_pid "$n") || { as_root kill -9 "$pid"; await 30 ended "$pid"; } ;;
      start)
        # What it left behind may be in the way of the first try, as after any crash.
        for _ in 1 2 3; do
          test_engine_pid "$n" || run_test_engine "$n" "$@"
          ! await 25 engine_pings "$(test_engine_host "$n")" || break
        done
        ;;
    esac
  done
}

# ---- the package of the tests, which only root can install

# There while the one that is installed is the tests' own.
PACKAGE_MARK=/run/agentbox-test.package

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"; }

package_is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' agentbox 2>/dev/null)" = installed ]; }

install_test_package() {
  as_root touch "$PACKAGE_MARK"
  apt_get install --no-install-recommends "$1"/agentbox_*.deb
}

remove_test_package() {
  [ -e "$PACKAGE_MARK" ] || return 0
  ! package_is_installed || apt_get remove agentbox || return
  as_root rm -f "$PACKAGE_MARK"
}

# keep_package FOLDER: a pipe in it that takes `install NUMBER` and `remove NUMBER`, as the tests say it. What
# came of it is in said.NUMBER, whose last line is the exit code.
keep_package() {
  mkfifo -m 600 "$1/ask"
  ! is_root || chown "$TEST_USER:" "$1/ask"
  manage_package "$1" </dev/null >/dev/null 2>&1 9>&- &
}

# Until the pipe is gone.
manage_package() {
  local folder=$1 word number rc
  exec 7<>"$folder/ask"
  while [ -p "$folder/ask" ]; do
    read -r -t 5 -u 7 word number || continue
    [[ $number =~ ^[0-9]+$ ]] || continue
    rc=0
    case $word in
      install) install_test_package "$folder" ;;
      remove) remove_test_package ;;
      *) false ;;
    esac >"$folder/saying" 2>&1 || rc=$?
    printf '\n%s\n' "$rc" >>"$folder/saying"
    mv "$folder/saying" "$folder/said.$number"
  done
}

# Ends what runs from a stage and removes it.
remove_stage() {
  local exe pids=()
  for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe" 2>/dev/null) in
      "$1"/*) pids+=("$(echo "$exe" | cut -d/ -f3)") ;;
    esac
  done
  [ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null || true
  ! mountpoint -q "$1/small" || as_root umount -l "$1/small"
  as_root rm -rf "$1"
}
