# What the build reads of a toolchain folder: assay-toolchain.cmake, env and the stamp. Sourced; needs report.sh.

# links_between FOLDER NOW LATER: FOLDER/include and FOLDER/lib/lib*.so* become links into LATER; NOW is where LATER's
# files are at this moment. A library that has only a versioned name gets the plain one too, which linkers look for.
links_between() {
  local folder=$1 now=$2 later=$3 library name
  mkdir -p "$folder/lib"
  ln -sfn "$later/include" "$folder/include"
  for library in "$now"/lib/lib*.so*; do
    name=$(basename "$library")
    ln -sfn "$later/lib/$name" "$folder/lib/$name"
    [[ -e $now/lib/${name%%.so*}.so ]] || ln -sfn "$later/lib/$name" "$folder/lib/${name%%.so*}.so"
  done
}

# describe_toolchain FOLDER FINAL TORCH CUDA PREFIX
#   FOLDER now, FINAL later; TORCH relative to FOLDER or absolute; CUDA the toolkit; PREFIX carried headers, or empty.
describe_toolchain() {
  local folder=$1 final=$2 torch=$3 cuda=$4 prefix=$5 packages nvidia directories=
  local torch_now=$torch torch_later=$torch
  [[ $torch == /* ]] || { torch_now=$folder/$torch; torch_later=$final/$torch; }
  packages=$(dirname "$torch_later")
  for nvidia in "$(dirname "$torch_now")"/nvidia/*/lib; do
    directories+="
    \"$packages/nvidia/$(basename "$(dirname "$nvidia")")/lib\""
  done
  for nvidia in nccl cudnn; do
    [[ -d $(dirname "$torch_now")/nvidia/$nvidia/lib ]] || continue
    links_between "$folder/$nvidia" "$(dirname "$torch_now")/nvidia/$nvidia" "$packages/nvidia/$nvidia"
  done
  cat > "$folder/assay-toolchain.cmake" <<END
# Written by ci/setup. CMake reads it as the toolchain file of the presets release and debug.
set(ASSAY_TORCH_ROOT "$torch_later")
set(ASSAY_NVIDIA_LIBRARY_DIRS$directories)
set(ASSAY_NCCL_ROOT "$final/nccl")
set(ASSAY_CUDNN_ROOT "$final/cudnn")
set(CUDAToolkit_ROOT "$cuda")
set(CMAKE_CUDA_COMPILER "$cuda/bin/nvcc")
END
  [[ -z $prefix ]] || echo "list(PREPEND CMAKE_PREFIX_PATH \"$prefix\")" >> "$folder/assay-toolchain.cmake"
  cat > "$folder/env" <<END
# Written by ci/setup, for sh: ". .toolchain/env" puts the toolchain first on PATH.
export PATH="$final/bin:$cuda/bin:\$PATH"
export CUDA_HOME="$cuda"
END
  [[ -z $prefix ]] || echo "export CMAKE_PREFIX_PATH=\"$prefix\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}\"" >> "$folder/env"
  printf 'nvcc=%s\n' "$cuda/bin/nvcc" > "$folder/stamp"
}
