# shellcheck shell=bash
# To be sourced by scripts that have a function fail MESSAGE.

# wait_for SECONDS WHAT COMMAND...: runs the command until it succeeds.
wait_for() {
  local limit=$((SECONDS + $1)) what=$2; shift 2
  until "$@"; do
    [ $SECONDS -lt "$limit" ] || fail "$what did not happen in time"
    sleep 0.05
  done
}
