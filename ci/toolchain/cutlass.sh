# CUTLASS's headers beside the toolchain, in a folder of the cache that the version names. Sourced; needs report.sh.

build_cutlass() {
  local final temporary
  final=$cache_home/cutlass-$(sed -n 's/^nvidia-cutlass==//p' "$pins/cutlass.txt")
  if [[ -f $final/include/cutlass/cutlass.h ]]; then say "CUTLASS: present"; return; fi
  temporary=$final.building.$$
  remove_at_exit "$temporary"
  step "CUTLASS's headers" "check the network; then run ci/setup again" \
    "$python" -m pip --disable-pip-version-check install --no-input --no-deps --no-compile --only-binary :all: \
    --target "$temporary/wheel" -r "$pins/cutlass.txt"
  mv "$temporary/wheel/cutlass_library/source/include" "$temporary/include"
  rm -rf "$temporary/wheel"
  rm -rf -- "$final"
  mv -T -- "$temporary" "$final"
  remove_at_exit
}
