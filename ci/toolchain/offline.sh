# Set-up without network: the toolchain is put together from what the machine has. Sourced; needs report.sh, cuda.sh
# and describe.sh. What is missing can be carried: `ci/setup --pack DIR` on a connected machine collects it.

# carried_has NAME-OF-HEADER LIBRARY PREFIX...: true when one of the prefixes holds both.
carried_has() {
  local header=$1 library=$2 prefix
  shift 2
  for prefix in "$@"; do
    [[ -e $prefix/include/$header ]] || continue
    [[ $library == - || -e $prefix/lib/$library || -e $prefix/lib/x86_64-linux-gnu/$library ||
       -e $prefix/lib64/$library ]] && return
  done
  return 1
}

# missing_carried PREFIX...: names from the table that no prefix holds.
missing_carried() {
  local name header library package prefixes
  IFS=: read -ra prefixes <<< "${ASSAY_HEADER_PREFIXES:-/usr/local:/usr}"
  while read -r name header library package; do
    [[ $name == \#* || -z $package ]] && continue
    carried_has "$header" "$library" "$@" "${prefixes[@]}" || echo "$name"
  done < "$pins/carried"
}

report_missing_carried() {
  local missing=("$@")
  printf 'setup: missing here: %s\n' "${missing[*]}"
  printf '  with a network:  ci/setup\n'
  printf '  without:         on a connected machine with the same processor, in a clone that is set up:\n'
  printf '                     ci/setup --pack carried %s\n' "${missing[*]}"
  printf '                   bring the folder "carried" here, then: ci/setup --offline --from carried\n'
  printf '  without tests:   rapidcheck, googletest and googlemock are not needed with -DASSAY_TESTS=OFF\n'
}

# find_torch: sets python, torch_root, torch_version from python3's torch, without importing it.
find_torch() {
  python=${ASSAY_PYTHON:-python3}
  torch_root=$("$python" -c 'import importlib.util as u; s = u.find_spec("torch"); print(list(s.submodule_search_locations)[0] if s else "")' 2>/dev/null) || torch_root=
  [[ -n $torch_root ]] ||
    fail "use python3's torch" "$(command -v "$python" || echo "$python: not found")" "it has no torch" \
      "set ASSAY_PYTHON to the python3 that has torch 2.11.0 for CUDA 13.0; then run ci/setup --offline again"
  torch_version=$(sed -n "s/^__version__ = '\(.*\)'.*/\1/p" "$torch_root/version.py")
  python=$(command -v "$python")
  [[ ${torch_version%%+*} == 2.11.0 ]] && grep -q "^cuda.*= '13\.0'" "$torch_root/version.py" && return
  fail "use python3's torch" "$torch_root" "it is $torch_version; 2.11.0 for CUDA 13.0 is wanted" \
    "set ASSAY_PYTHON to a python3 with that torch; then run ci/setup --offline again"
}

# require_tool NAME LEAST ADVICE: NAME on PATH with at least version LEAST.
require_tool() {
  local version
  command -v "$1" >/dev/null || fail "find $1" "PATH" "it is not there" "$3"
  version=$("$1" --version 2>/dev/null | head -n 1 | grep -oE '[0-9]+(\.[0-9]+)+' | tail -n 1)
  [[ $(printf '%s\n' "$2" "$version" | sort -V | head -n 1) == "$2" ]] ||
    fail "use $1 $version" "$(command -v "$1")" "at least $2 is needed" "$3"
}

require_machine_tools() {
  require_tool g++ 12 "install g++ 12 or newer; then run ci/setup --offline again"
  require_tool cmake 3.31 "CUDA sources need CMake 3.31 or newer: carry PyPI's cmake wheel, pip install it; then run ci/setup --offline again"
  require_tool ninja 1.10 "carry PyPI's ninja wheel, pip install it; then run ci/setup --offline again"
  [[ -n $cuda_root ]] || fail "find the CUDA compiler" "CUDA_HOME, /usr/local/cuda, PATH" "$cuda_note" \
    "set CUDA_HOME to a CUDA 13.0 toolkit; then run ci/setup --offline again"
}

offline_name() {
  { echo "layout $toolchain_layout; offline; $python; $torch_root $torch_version; $cuda_root; $(command -v cmake ninja g++)"
    [[ -z $from ]] || find "$from" -type f -printf '%P %s\n' | sort; } | sha256sum | cut -c1-16
}

build_offline() {
  local final=$1 temporary=$1.building.$$ tool prefix=
  remove_at_exit "$temporary"
  mkdir -p "$temporary/bin"
  for tool in cmake ctest cpack ninja; do ln -s "$(command -v "$tool")" "$temporary/bin/$tool"; done
  # A link would hide the virtual environment from Python; a script does not.
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" > "$temporary/bin/python3"
  chmod +x "$temporary/bin/python3"
  if [[ -n $from ]]; then
    cp -a -- "$from" "$temporary/prefix"
    prefix=$final/prefix
  fi
  describe_toolchain "$temporary" "$final" "$torch_root" "$cuda_root" "$prefix"
  rm -rf -- "$final"
  mv -T -- "$temporary" "$final"
  remove_at_exit
}

setup_offline() {
  local name missing
  [[ -z $from || -d $from/include ]] || fail "use what was carried" "$from" "there is no folder include in it" \
    "make the folder with ci/setup --pack on a connected machine"
  find_torch
  find_cuda_toolkit
  require_machine_tools
  say "offline: torch $torch_version at $torch_root; $cuda_note"
  name=offline-$(offline_name)
  mkdir -p "$cache_home"
  if toolchain_answers "$cache_home/$name"; then
    say "toolchain: present"
  else
    build_offline "$cache_home/$name"
    say "toolchain: written"
  fi
  link_toolchain "$cache_home/$name"
  mapfile -t missing < <(missing_carried ${from:+"$from"})
  (( ${#missing[@]} == 0 )) && return
  report_missing_carried "${missing[@]}"
  exit 1
}

# pack_files PACKAGE: its headers, libraries and CMake files, as paths below /usr; libraries behind links too.
pack_files() {
  local path
  dpkg -L "$1" | grep -E '^/usr/(include|lib|share/(cmake|eigen3|pkgconfig))/' | while read -r path; do
    [[ -f $path ]] || continue
    echo "${path#/usr/}"
    while [[ -L $path ]]; do
      path=$(dirname "$path")/$(readlink "$path")
      [[ $path == /usr/* ]] && echo "${path#/usr/}"
    done
  done
}

setup_pack() {
  local target=$1 wanted name header library package
  shift
  wanted=" $* "
  mkdir -p "$target"
  for name in "$@"; do
    grep -q "^${name//+/\\+} " "$pins/carried" || grep -qF "$name " "$pins/carried" ||
      fail "pack $name" "ci/toolchain/carried" "no such name there" \
        "choose from: $(awk '!/^#/ && NF == 4 { printf "%s ", $1 }' "$pins/carried")"
  done
  while read -r name header library package; do
    [[ $name == \#* || -z $package ]] && continue
    [[ $wanted == "  " || $wanted == *" $name "* ]] || continue
    dpkg-query -W "$package" >/dev/null 2>&1 ||
      fail "pack $name" "this machine" "package $package is not installed" "run ci/setup here first"
    pack_files "$package" | sort -u | tar -C /usr -cf - -T - | tar -C "$target" -xf -
    say "packed $name ($(dpkg-query -W -f '${Package} ${Version}' "$package"))"
  done < "$pins/carried"
  say "$target: $(du -sh "$target" | cut -f1); on the other machine: ci/setup --offline --from $(basename "$target")"
}
