# The distribution and its packages. Sourced; needs report.sh.
# Sets: distribution (debian-12, ubuntu-24.04 or other), distribution_name, packages_file.

detect_distribution() {
  local id version
  id=$(. /etc/os-release 2>/dev/null && echo "${ID:-}") || id=
  version=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") || version=
  distribution_name=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-unknown}") || distribution_name=unknown
  packages_file=$pins/packages/$id-$version
  distribution=$id-$version
  [[ -f $packages_file ]] || distribution=other
}

require_known_distribution() {
  [[ $(uname -m) == x86_64 ]] ||
    fail "set up this machine" "$(uname -m) processor" "the pinned torch and CUDA packages are for x86_64" \
      "use an x86_64 machine"
  [[ $distribution == other && $any_distribution == no ]] || return 0
  fail "set up this machine" "$distribution_name" "only Debian 12 and Ubuntu 24.04 are known here, with tested packages" \
    "install the packages of ci/toolchain/packages/debian-12 under your distribution's names, then run ci/setup --any-distribution"
}

# wanted_packages: lines "name recorded minimum" of the groups in use.
wanted_packages() {
  awk -v full="$([[ $mode == spec ]] && echo no || echo yes)" \
    '!/^#/ && NF == 4 && ($4 == "spec" || full == "yes") { print $1, $2, $3 }' "$packages_file"
}

# missing_packages: names that are not installed.
missing_packages() {
  local names
  mapfile -t names < <(wanted_packages | cut -d' ' -f1)
  comm -23 <(printf '%s\n' "${names[@]}" | sort) \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${names[@]}" 2>/dev/null | sed -n 's/^ii *//p' | sort)
}

as_root() {
  if (( EUID == 0 )); then "$@"; else sudo -- "$@"; fi
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  (( ${#missing[@]} > 0 )) || return 0
  if (( EUID != 0 )) && ! command -v sudo >/dev/null; then
    fail "install ${missing[*]}" "$distribution_name" "this needs root, and sudo is not here" \
      "as root: apt-get install ${missing[*]}; then run ci/setup again"
  fi
  step "package lists" "check the network and /etc/apt; then run ci/setup again" \
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update
  step "${#missing[@]} packages of $distribution_name" \
    "on Ubuntu the packages are in 'universe' (add-apt-repository universe); then run ci/setup again" \
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"
}

# check_package_versions: each installed version is at least the minimum, epoch and revision aside.
check_package_versions() {
  local name recorded minimum installed
  declare -A have=()
  while read -r name installed; do have[$name]=$installed; done < <(
    dpkg-query -W -f '${Package} ${Version}\n' $(wanted_packages | cut -d' ' -f1))
  while read -r name recorded minimum; do
    installed=${have[$name]#*:}
    installed=${installed#*+really}
    dpkg --compare-versions "$installed" ge "$minimum" ||
      fail "use $name $installed" "$packages_file" "at least $minimum is needed (recorded: $recorded)" \
        "apt-get install --only-upgrade $name; then run ci/setup again"
  done < <(wanted_packages)
}
