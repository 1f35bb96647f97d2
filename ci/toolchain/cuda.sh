# Which CUDA 13.0 compiler is used. Sourced; needs report.sh.
# Sets: cuda_root (folder of a usable toolkit of this machine, or empty), cuda_note (one clause for the user).

cuda_wanted=13.0

# toolkit_release FOLDER: "13.0", or nothing when there is no nvcc that answers.
toolkit_release() {
  "$1/bin/nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\),.*/\1/p'
}

toolkit_lacks() {
  local part
  for part in include/cuda_runtime.h lib64/libcudart.so; do
    [[ -e $1/$part ]] || { echo "$part"; return; }
  done
}

find_cuda_toolkit() {
  cuda_root= cuda_note='no CUDA toolkit on this machine'
  local candidate release lacks on_path seen=
  on_path=$(command -v nvcc || true)
  [[ -n $on_path ]] && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
  for candidate in "${CUDA_HOME:-}" /usr/local/cuda "$on_path"; do
    [[ -n $candidate && -x $candidate/bin/nvcc ]] || continue
    candidate=$(readlink -f "$candidate")
    # The compiler inside a toolchain folder of ours is not a toolkit of the machine.
    [[ $candidate == "$cache_home"/* || ":$seen:" == *":$candidate:"* ]] && continue
    seen+=:$candidate
    release=$(toolkit_release "$candidate")
    lacks=$(toolkit_lacks "$candidate")
    if [[ $release == "$cuda_wanted" && -z $lacks ]]; then
      cuda_root=$candidate cuda_note="CUDA $release at $candidate"
      return
    fi
    cuda_note="CUDA ${release:-of unknown version} at $candidate is not used (${lacks:+it lacks $lacks; }${cuda_wanted} is wanted)"
  done
}
