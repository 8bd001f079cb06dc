#!/usr/bin/env bash
# Makes Debian packages of the programs of a release, for hosts without Kubernetes: hack/deb.sh OUT VERSION ARCH PROGRAMS
#
#   OUT is the folder for them, VERSION as v0.1.0, ARCH amd64 or arm64, PROGRAMS the folder with the programs and the LICENSE.
#
# federation, federation-dns and federation-lb come with their units of systemd and with a file for their flags in /etc/default, which is the site's (conffile).
# Nothing is enabled or started by the installation: without flags it would be another federation than is meant. An upgrade restarts what runs, but no load balancer,
# which is replaced without a lost request (its unit says how). A purge leaves /var/lib/federation: the keys are there.
#
# The same commit and programs make the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 4 ] || { echo "deb: want OUT VERSION ARCH PROGRAMS" >&2; exit 1; }
out=$1 version=${2#v} arch=$3 programs=$4
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# control PACKAGE DESCRIPTION: what the package says of itself.
control() {
  cat <<EOF
Package: $1
Version: $version
Architecture: $arch
Maintainer: The federation authors <federation@example.com>
Section: admin
Priority: optional
Installed-Size: $(du -k --apparent-size -s "$root/$1" | cut -f1)
Description: $2
 One API for many Kubernetes clusters: objects are spread over them, names in
 DNS lead to those that work.
EOF
}

# scripts DIR STOPPED DISABLED RESTARTED USER: the maintainer scripts of a package with units. STOPPED and DISABLED are those that a removal ends, RESTARTED those that an
# upgrade restarts if they run; USER is made.
scripts() {
  local running='[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]'
  {
    printf '%s\n' '#!/bin/sh' 'set -e' '[ "$1" = configure ] || exit 0'
    [ -z "$5" ] || echo "grep -q '^$5:' \"\$DPKG_ROOT/etc/passwd\" || useradd --prefix \"\$DPKG_ROOT/\" --system --user-group --home-dir /var/lib/$5 --no-create-home --shell /usr/sbin/nologin $5"
    echo "if $running; then systemctl daemon-reload; fi"
    [ -z "$4" ] || echo "if $running && [ -n \"\$2\" ]; then systemctl try-restart $4; fi"
  } >"$1/postinst"
  printf '%s\n' '#!/bin/sh' 'set -e' "if [ \"\$1\" = remove ] && $running; then systemctl stop $2; systemctl disable $3; fi" >"$1/prerm"
  printf '%s\n' '#!/bin/sh' 'set -e' "if $running; then systemctl daemon-reload; fi" >"$1/postrm"
  chmod 755 "$1"/{postinst,prerm,postrm}
}

# package NAME DESCRIPTION PROGRAM UNIT...: a package of a program and its units.
package() {
  local dir=$root/$1 unit name
  local -a running=() stopped=() units=()
  mkdir -p "$dir"/{DEBIAN,usr/bin,"usr/share/doc/$1"}
  install -m 755 "$programs/$3" "$dir/usr/bin/"
  install -m 644 "$programs/LICENSE" "$dir/usr/share/doc/$1/copyright"
  for unit in "${@:4}"; do
    install -d "$dir"/{usr/lib/systemd/system,etc/default}
    sed 's|/usr/local/bin/|/usr/bin/|; s|^Documentation=file:.*/\(.*\)$|Documentation=file:/usr/share/doc/'"$1"'/\1|' "hack/manifests/$unit.service" >"$dir/usr/lib/systemd/system/$unit.service"
    name=${unit%@}
    { echo "# Flags of $name: see $(basename "$3") --help, and the head of /usr/lib/systemd/system/$unit.service."; echo "#$(sed -n 's/^# Put the flags of your site into [^:]*: //p' "hack/manifests/$unit.service")"; } >"$dir/etc/default/$name"
    echo "/etc/default/$name" >>"$dir/DEBIAN/conffiles"
    install -m 644 docs/operations.md docs/load-balancer.md "$dir/usr/share/doc/$1/"
    units+=("$unit.service")
    case $unit in
    *@) stopped+=("'$unit*.service'") ;;
    *) running+=("$unit.service"); stopped+=("$unit.service") ;;
    esac
  done
  [ $# = 3 ] || scripts "$dir/DEBIAN" "${stopped[*]}" "${units[*]}" "${running[*]}" "$([ "$1" != federation ] || echo federation)"
  control "$1" "$2" >"$dir/DEBIAN/control"
  find "$dir" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  chmod -R go=u,go-w "$dir"
  dpkg-deb --root-owner-group --uniform-compression -Zgzip -z6 --build "$dir" "$out/$1_${version}_$arch.deb" >/dev/null
}

package federation "control plane of a federation of clusters" federation federation federation-apiserver federation-controllers
package federation-dns "name server of a federation of clusters" federation-dns federation-dns
package federation-lb "load balancer over the clusters of a federation" federation-lb federation-lb@
package kubectl-federation "plugin of kubectl for a federation of clusters" kubectl-federation
