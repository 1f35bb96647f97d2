# Proves ci/setup where nothing is installed: a minimal root made by debootstrap, a clone of HEAD, no CUDA toolkit.
# Sourced; needs report.sh. Everything that mounts runs in mount and process namespaces of its own, so that mounts and
# processes end with the command and removing the root touches nothing else.
# How this machine reaches the network (name servers, certificates, proxies, package sources) is copied from it.

# namespace COMMAND...: in namespaces that end with it.
namespace() { unshare --mount --pid --fork --kill-child --propagation private "$@"; }

require_bare_tools() {
  (( EUID == 0 )) || fail "make a root" "user $(id -un)" "debootstrap and chroot need root" "sudo ci/setup --check-bare"
  local packages=()
  command -v debootstrap >/dev/null || packages+=(debootstrap)
  if [[ $suite == noble && ! -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]]; then
    not_run "/usr/share/keyrings/ubuntu-archive-keyring.gpg is missing, so its packages cannot be verified here"
  fi
  (( ${#packages[@]} == 0 )) || step "${packages[*]}" "install debootstrap by hand" bash -c \
    'apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"' - "${packages[@]}"
}

# not_run WHY: says that nothing was proved; status 3.
not_run() {
  say "bare $suite: NOT RUN, $1"
  exit 3
}

# host_mirror: where this machine's apt takes the same suite from, or nothing (debootstrap then knows a default).
host_mirror() {
  [[ -z $mirror ]] || { echo "$mirror"; return; }
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
    awk -v suite="$suite" '$1 == suite && $2 == "main" { print $3; exit }'
}

copy_network() {
  local base=$1 file
  cp -L /etc/resolv.conf "$base/etc/resolv.conf"
  cp -L /etc/hosts "$base/etc/hosts"
  mkdir -p "$base/etc/ssl/certs" "$base/usr/local/share/ca-certificates"
  for file in "${SSL_CERT_FILE:-}" "${PIP_CERT:-}" /etc/ssl/certs/ca-certificates.crt; do
    [[ -f $file ]] || continue
    mkdir -p "$base$(dirname "$file")"
    cp -L "$file" "$base$file"
  done
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -L {} "$base/usr/local/share/ca-certificates/" \; 2>/dev/null || true
  apt-config dump 2>/dev/null | grep -iE '^Acquire::(https?|Check|Retries|ForceIPv4)' > "$base/etc/apt/apt.conf.d/90network" || true
  for file in "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf" /etc/pip.conf; do
    [[ -f $file ]] && cp "$file" "$base/etc/pip.conf"
  done
  return 0
}

# network_environment: the variables that say how to reach the network, NAME=VALUE, one a line.
network_environment() {
  env | grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|CERT|DEFAULT_TIMEOUT|RETRIES)|SSL_CERT_FILE|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY)=' || true
}

# in_bare BASE COMMAND: runs a shell command in the clone, with nothing of this machine but its network.
in_bare() {
  local base=$1 command=$2 network
  mapfile -t network < <(network_environment)
  namespace bash -c '
    set -e
    base=$1 command=$2
    shift 2
    mount -t proc proc "$base/proc"
    mount --rbind /dev "$base/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$base/dev/shm" 2>/dev/null || true
    exec chroot "$base" env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      "$@" bash -c "cd /root/assay && $command"' - "$base" "$command" "${network[@]}"
}

# bare_step BASE TITLE COMMAND: its output indented, its seconds recorded.
bare_step() {
  local begin status=0
  begin=$(now)
  say "bare $suite: $2"
  { in_bare "$1" "$3" </dev/null 2>&1 | sed -u 's/^/  | /'; } || status=$?
  bare_record+=("$(printf '%8s s  %s' "$(seconds_since "$begin")" "$2")")
  (( status == 0 )) || fail "prove the bare case" "$2" "it ended with status $status; its output is above" \
    "mend it, commit, and run ci/setup --check-bare again"
}

default_then() {
  if [[ -x $root/ci/demo ]]; then
    echo ci/demo
  else
    echo '.toolchain/bin/cmake --preset release && .toolchain/bin/cmake --build --preset release --target assay && build/release/bin/assay --version'
  fi
}

check_bare() {
  local begin from_mirror components=main script=
  bare_record=()
  [[ $suite == bookworm || $suite == noble ]] || fail "make a root of $suite" "--suite" "bookworm and noble are known" \
    "ci/setup --check-bare --suite bookworm"
  log=$(mktemp)
  require_bare_tools
  base=$(mktemp -d "${TMPDIR:-/var/tmp}/assay-bare.XXXXXX")
  remove_at_exit "$base" "$log"
  [[ -z $(git -C "$root" status --porcelain) ]] || say "note: uncommitted changes are not part of this check"
  [[ $suite == noble ]] && components=main,universe
  from_mirror=$(host_mirror)
  # A debootstrap older than the suite has no script of its name; every Ubuntu since 2007 shares this one.
  [[ $suite == noble && ! -e /usr/share/debootstrap/scripts/noble ]] && script=gutsy
  begin=$(now)
  printf 'setup: debootstrap %s ... ' "$suite"
  if ! namespace debootstrap --variant=minbase --components="$components" "$suite" "$base" \
      ${from_mirror:+"$from_mirror"} ${script:+${from_mirror:+"$script"}} >"$log" 2>&1; then
    printf 'failed\n'
    tail -n 5 "$log" | sed 's/^/  | /'
    not_run "its packages cannot be had from here (--mirror URL names another mirror)"
  fi
  printf '%s s\n' "$(seconds_since "$begin")"
  bare_record+=("$(printf '%8s s  debootstrap %s, minbase, %s' "$(seconds_since "$begin")" "$suite" "$(du -sh "$base" | cut -f1)")")
  copy_network "$base"
  git clone -q --no-local "$root" "$base/root/assay"
  bare_step "$base" "ci/setup" "ci/setup"
  bare_step "$base" "ci/setup, second run" "ci/setup"
  bare_record+=("$(du -sh "$base/root/.cache/assay" | cut -f1 | awk '{ printf "%8s    cached toolchain", $1 }')")
  then_run=${then_run:-$(default_then)}
  bare_step "$base" "$then_run" "$then_run"
  bare_record+=("$(du -sh "$base" | cut -f1 | awk '{ printf "%8s    the whole root", $1 }')")
  say "bare $suite passed at $(git -C "$root" rev-parse --short HEAD), $(nproc) cores, $(seconds_since "$start") s in all:"
  printf '  %s\n' "${bare_record[@]}"
}
