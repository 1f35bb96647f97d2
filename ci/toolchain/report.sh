# What the set-up prints: one line per step with its seconds, and errors that say what, where, why and what next.
# Sourced. The output of a step's command goes to $log and is shown only when the step fails.

now() { local t=$EPOCHREALTIME; t=${t/,/.}; echo $(( ${t%.*} * 1000 + 10#${t#*.} / 1000 )); }
seconds_since() { local ms=$(( $(now) - $1 )); printf '%d.%d' $(( ms / 1000 )) $(( ms % 1000 / 100 )); }

say() { printf 'setup: %s\n' "$*"; }

# fail WHAT WHERE WHY NEXT
fail() {
  printf '\nsetup: cannot %s\n  where: %s\n  why:   %s\n  next:  %s\n' "$1" "$2" "$3" "$4" >&2
  exit 1
}

# step TITLE NEXT COMMAND...: runs the command; NEXT is the advice when it fails.
step() {
  local title=$1 next=$2 start status=0
  shift 2
  start=$(now)
  printf 'setup: %s ... ' "$title"
  "$@" </dev/null >"$log" 2>&1 || status=$?
  if (( status != 0 )); then
    printf 'failed after %s s\n' "$(seconds_since "$start")"
    tail -n 15 "$log" | sed 's/^/  | /' >&2
    fail "do the step '$title'" "the command: $*" "it ended with status $status; its last lines are above" "$next"
  fi
  printf '%s s\n' "$(seconds_since "$start")"
}

# remove_at_exit PATH...: removed when this script ends, however it ends; without paths, nothing is removed any more.
remove_at_exit() {
  trap 'exit 130' INT
  trap 'exit 143' TERM
  if (( $# == 0 )); then trap - EXIT; else trap "rm -rf --one-file-system --$(printf ' %q' "$@")" EXIT; fi
}
