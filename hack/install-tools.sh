#!/usr/bin/env bash
# Installs the Debian packages that the demo needs, and with an argument also those that only
# tests, a bench, real nodes, Kubernetes' tests of Services or the site need, where they are missing. Go, git and make are taken for granted. It says what it installs
# and why; where it may not, it says that.
set -euo pipefail

# A command or file that must be there, the package that brings it, and what for.
needs() {
  cat <<'END'
dig   bind9-dnsutils   asks the DNS server for global names
END
  [ "${1:-}" != bench-dns ] || cat <<'END'
named   bind9   is a DNS server that ours is measured beside
knotd   knot    is a DNS server that ours is measured beside
nsd     nsd     is a DNS server that ours is measured beside
END
  [ "${1:-}" != bench-lb ] || cat <<'END'
haproxy haproxy   is a load balancer that ours is measured beside
nginx   nginx     is a load balancer that ours is measured beside
caddy   caddy     is a load balancer that ours is measured beside
/usr/lib/nginx/modules/ngx_stream_module.so   libnginx-mod-stream   is the part of nginx that passes connections on
END
  [ "${1:-}" != real ] || cat <<'END'
containerd    containerd      runs containers on real nodes
runc          runc            starts them
/usr/lib/cni/ptp   containernetworking-plugins   gives pods their network
iptables-nft-restore   iptables   brings rules into the kernel of real nodes
curl          curl            is a client outside
conntrack     conntrack       is what kube-proxy, where it is measured beside ours, ends flows with
END
  [ "${1:-}" != bench-dataplane ] || cat <<'END'
nft                  nftables   is what kube-proxy writes its rules with in one of its modes
iptables-nft-restore iptables   is what it writes them with in the other, and our node agent too
END
  [ "${1:-}" != services ] || cat <<'END'
nc     netcat-openbsd    is called in pods by Kubernetes' tests
wget   wget              is called in pods by Kubernetes' tests
curl   curl              is called in pods by Kubernetes' tests
ss     iproute2          is called in pods by Kubernetes' tests
END
  [ "${1:-}" != mcs ] || cat <<'END'
nc     netcat-openbsd    is called in pods by tests of the Multi-Cluster Services API
socat  socat             is what pods of their conformance suite answer with
nslookup   bind9-dnsutils   asks for names in pods
END
  [ "${1:-}" != firefox ] || cat <<'END'
firefox-esr   firefox-esr   shows the console, in its tests
END
  [ "${1:-}" != site ] || cat <<'END'
node   nodejs   builds the site of docs
npm    npm      fetches what builds it
END
  [ "${1:-}" != tests ] || cat <<'END'
nft           nftables      loads rules by hand, and shows ours, in tests of the node agent
named         bind9         is a DNS server that tests compare ours with, and keep records in
knotd         knot          is a DNS server that tests compare ours with, and keep records in
nsd           nsd           is a DNS server that tests have follow ours
ldns-verify-zone   ldnsutils   checks signed zones in tests
dnssec-verify   bind9-utils   checks signed zones in tests
delv          bind9-dnsutils   checks signed answers in tests
pdns_server   pdns-server   is a DNS server that tests keep records in
sqlite3       sqlite3       makes that one's database
chromium      chromium   shows the console, in its tests
ssh-keygen    openssh-client   signs the checksums of a release
promtool      prometheus       tests the rules of alerts
systemd-analyze   systemd   checks the units of systemd
/usr/lib/*/pdns/libgsqlite3backend.so   pdns-backend-sqlite3   has that one keep them in a file
iptables-nft-restore   iptables   brings rules into the kernel, in tests of the node agent
END
}

PATH=$PATH:/usr/sbin # of servers
missing=()
while read -r command package why; do
  command -v "$command" >/dev/null || compgen -G "$command" >/dev/null && continue
  echo "missing: $command, which $why (Debian package $package)"
  missing+=("$package")
done < <(needs "$@")
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
trap 'rm -f "$log" ${policy:-}' EXIT
# No server is to run because a test may start one: Debian asks this file whether to start what it installs.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  policy=/usr/sbin/policy-rc.d
  install -m 755 /dev/stdin $policy <<<$'#!/bin/sh\nexit 101'
fi
fetch() { apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
# Another apt-get is waited for. The package lists of a fresh machine are empty or old, and an installation may have been interrupted: see to both if it
# fails without.
fetch || { dpkg --configure -a >"$log" 2>&1; apt-get update >"$log" 2>&1 && fetch; } || { tail -5 "$log" >&2; refuse "apt-get failed"; }
echo "installed ${missing[*]}"
