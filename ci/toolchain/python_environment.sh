# The cached toolchain: a Python virtual environment with torch, CMake, ninja and, when the machine has no CUDA 13.0
# toolkit, the CUDA compiler. Sourced; needs report.sh. It is built in a temporary folder and renamed when complete,
# so a folder of the final name is always whole; clones with the same pins share it.

# Raise this when what a finished folder holds changes for another reason than the pins.
toolchain_layout=1

find_python() {
  local candidate
  for candidate in "${ASSAY_PYTHON:-}" /usr/bin/python3 python3; do
    [[ -n $candidate ]] && command -v "$candidate" >/dev/null || continue
    python=$(command -v "$candidate")
    python_version=$("$python" -c 'import platform; print(platform.python_version())') || continue
    "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' && return
  done
  fail "find Python" "ASSAY_PYTHON, /usr/bin/python3 and PATH" "3.11 to 3.13 is needed by the pinned packages" \
    "set ASSAY_PYTHON to such a python3; then run ci/setup again"
}

# toolchain_name: the folder's name, a hash of all that decides its content.
toolchain_name() {
  { echo "layout $toolchain_layout; $mode; python $python $python_version; cuda ${cuda_root:-from-packages}"
    cat "$pins"/requirements*.txt "$@"; } | sha256sum | cut -c1-16
}

toolchain_answers() {
  [[ -f $1/stamp && -f $1/assay-toolchain.cmake ]] &&
    "$1/bin/cmake" --version >/dev/null 2>&1 && "$1/bin/ninja" --version >/dev/null 2>&1 &&
    "$1/bin/python3" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null &&
    "$(sed -n 's/^nvcc=//p' "$1/stamp")" --version >/dev/null 2>&1
}

# pip_install ENVIRONMENT REQUIREMENTS...
pip_install() {
  local environment=$1 requirements=()
  shift
  for file in "$@"; do requirements+=(-r "$file"); done
  "$environment/bin/python3" -m pip --disable-pip-version-check install --no-input --no-deps --no-compile \
    --only-binary :all: "${requirements[@]}" && "$environment/bin/python3" -m pip --disable-pip-version-check check
}

# settle ENVIRONMENT FINAL: scripts name the interpreter by path; make them name the final one. CMake and ninja become
# links to the real programs, which start without Python.
settle() {
  local environment=$1 final=$2 site=$3 tool
  grep -rlIZ -- "$environment" "$environment/bin" | xargs -0 -r sed -i "s|$environment|$final|g"
  sed -i "s|$environment|$final|g" "$environment/pyvenv.cfg"
  for tool in cmake ctest cpack; do ln -sfn "../$site/cmake/data/bin/$tool" "$environment/bin/$tool"; done
  for tool in "$site/ninja/data/bin/ninja" "$site/bin/ninja"; do
    [[ -x $environment/$tool ]] && ln -sfn "../$tool" "$environment/bin/ninja"
  done
  return 0
}

# prepare_cuda_packages NVIDIA: gives the compiler's packages the shape of an installed toolkit.
prepare_cuda_packages() {
  local root=$1/cu13 library
  ln -sfn lib "$root/lib64"
  for library in "$root"/lib/lib*.so.*; do
    [[ -e ${library%%.so.*}.so ]] || ln -s "$(basename "$library")" "${library%%.so.*}.so"
  done
}

build_toolchain() {
  local final=$1 temporary site torch_root cuda
  mkdir -p "$cache_home"
  exec 9>"$final.lock"
  flock -n 9 || { say "another ci/setup is building $final; waiting for it"; flock 9; }
  if toolchain_answers "$final"; then return; fi
  rm -rf -- "$final" "$final".building.*
  temporary=$final.building.$$
  remove_at_exit "$temporary"
  log=$temporary.log
  step "virtual environment of Python $python_version" "install python3-venv; then run ci/setup again" \
    "$python" -m venv "$temporary"
  site=$(cd "$temporary" && echo lib/python3*/site-packages)
  local requirements=("$pins/requirements.txt")
  [[ -n $cuda_root ]] || requirements+=("$pins/requirements-cuda.txt")
  step "torch 2.11.0, CMake, ninja${cuda_root:+}$([[ -n $cuda_root ]] || echo ', CUDA 13.0 compiler') (about 2.5 GB)" \
    "check the network and free space under $cache_home; what was fetched is kept, so run ci/setup again" \
    pip_install "$temporary" "${requirements[@]}"
  settle "$temporary" "$final" "$site"
  cuda=$cuda_root
  if [[ -z $cuda ]]; then
    prepare_cuda_packages "$temporary/$site/nvidia"
    cuda=$final/$site/nvidia/cu13
  fi
  describe_toolchain "$temporary" "$final" "$site/torch" "$cuda" ""
  rm -f "$log"
  mv -T -- "$temporary" "$final"
  log=$cache_home/last.log
  remove_at_exit
}

# build_golden TOOLCHAIN: the generators' packages in an environment of their own that sees the toolchain's.
build_golden() {
  local toolchain=$1 final=$1/golden temporary=$1/golden.building.$$ site
  if [[ -f $final/stamp ]] && "$final/bin/python3" -c 'import importlib.util as u, sys; sys.exit(
      any(u.find_spec(m) is None for m in ("torch", "transformers", "safetensors", "mpmath")))'; then
    say "golden generators: present"
    return
  fi
  rm -rf -- "$final" "$toolchain"/golden.building.*
  remove_at_exit "$temporary"
  step "virtual environment of the golden generators" "install python3-venv; then run ci/setup --golden again" \
    "$python" -m venv "$temporary"
  site=$(cd "$temporary" && echo lib/python3*/site-packages)
  echo "$(readlink -f "$toolchain")/$site" > "$temporary/$site/assay_toolchain.pth"
  step "transformers, safetensors" "check the network; then run ci/setup --golden again" \
    pip_install "$temporary" "$pins/requirements-golden.txt"
  grep -rlIZ -- "$temporary" "$temporary/bin" | xargs -0 -r sed -i "s|$temporary|$final|g"
  touch "$temporary/stamp"
  mv -T -- "$temporary" "$final"
  remove_at_exit
}
