#!/usr/bin/env bash
# Installs the Debian packages that the demo and the tests need, where they are missing. Go, git and
# make are taken for granted. It says what it installs and why; where it may not, it says that.
set -euo pipefail

# A command that must be there, the package that brings it, and what for.
needs() {
  cat <<'END'
dig   bind9-dnsutils   asks the DNS server for global names
END
}

missing=()
while read -r command package why; do
  command -v "$command" >/dev/null && continue
  echo "missing: $command, which $why (Debian package $package)"
  missing+=("$package")
done < <(needs)
[ ${#missing[@]} -gt 0 ] || exit 0

refuse() {
  echo "error: cannot install ${missing[*]}: $1" >&2
  echo "Install them yourself, on Debian with: apt-get install ${missing[*]}" >&2
  exit 1
}
command -v apt-get >/dev/null || refuse "there is no apt-get on this machine"
[ "$(id -u)" = 0 ] || refuse "that takes root, and you are $(id -un)"

echo "installing ${missing[*]} with apt-get"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
# The package lists of a fresh machine are empty or old: fetch them if it fails without.
install || { apt-get update >"$log" 2>&1 && install; } || { tail -5 "$log" >&2; refuse "apt-get failed"; }
echo "installed ${missing[*]}"
