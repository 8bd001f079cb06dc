#!/usr/bin/env bash
# Runs the units of hack/manifests under a real systemd, with all their sandbox options: that of one process, then those of three, and that of load balancers. Each is
# installed by the commands at its head. The federation joins a member, its objects go there, names are answered on port 53; killed it comes back, asked it ends within
# seconds and with 0; a load balancer is replaced without a failed request; no system call that they need is refused.
#
# Then the Debian packages of a release, by apt: they start nothing; what the site started, an upgrade restarts, but no load balancer; a removal ends what runs, and a purge
# leaves the data.
#
# systemd boots as process 1 of namespaces of its own, on an overlay of this machine's files that is gone afterwards. Where that cannot be, it says why, and exits with 0.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/wait.sh
export PATH=$PWD/_output/bin:$PATH:/usr/sbin
systemd=/lib/systemd/systemd group=federation-systemd-$$ pid='' machine='' made=''

skip() { echo "skipped: $*"; exit 0; }
fail() {
  [ -z "$pid" ] || inside journalctl --no-pager --lines 60 >&2 || true
  echo "error: $*" >&2
  exit 1
}

# hierarchies: the folders of the cgroups that systemd is to manage: one of version 2, or those of version 1.
hierarchies() {
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then echo /sys/fs/cgroup; return; fi
  local controller
  for controller in systemd cpu cpuacct memory devices freezer blkio pids; do [ ! -d /sys/fs/cgroup/$controller ] || echo /sys/fs/cgroup/$controller; done
}

# boot ROOT: the first thing in the namespaces. It makes the machine's files, and becomes its systemd.
boot() {
  local device hierarchy
  mkdir "$1"/{upper,work,machine}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/machine"
  cd "$1/machine"
  mkdir -p usr/local/bin mnt/manifests
  for program in federation federation-dns federation-lb; do install -m 755 "$bin/$program" usr/local/bin/; done
  cp "$bin"/../../hack/manifests/*.service mnt/manifests/
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  for dir in run tmp dev etc/systemd usr/lib/systemd/system/sysinit.target.wants usr/lib/systemd/system/local-fs.target.wants; do # nothing of the host is set up again
    mount -t tmpfs -o mode=755 tmpfs $dir
  done
  chmod 1777 tmp
  for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
  mkdir dev/{shm,pts} etc/systemd/system
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  for hierarchy in $(hierarchies); do
    case $hierarchy in
    /sys/fs/cgroup) mount -t cgroup2 cgroup2 sys/fs/cgroup ;;
    *)
      mountpoint -q sys/fs/cgroup || mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
      mkdir ".$hierarchy"
      mount -t cgroup -o "$([ "${hierarchy##*/}" != systemd ] && echo "${hierarchy##*/}" || echo none,name=systemd)" cgroup ".$hierarchy"
      ;;
    esac
  done
  rm -f etc/machine-id && touch etc/machine-id
  mkdir old
  pivot_root . old
  umount -l old
  mount --make-rshared / # as systemd itself does where it is in no container; credentials are mounted by one of its children
  cd /
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin $systemd --system --unit=basic.target --log-target=journal
}
if [ "${1:-}" = boot ]; then boot "$2"; fi

inside()   { nsenter --target "$pid" --all -- "$@"; }
sh_inside() { inside sh -ec "$1"; }
booted()   { [ "$(inside systemctl is-active basic.target 2>/dev/null)" = active ]; }
fed()      { inside "$kubectl" --kubeconfig /var/lib/federation/admin.kubeconfig --request-timeout 5s "$@"; }
member()   { inside "$kubectl" --kubeconfig /run/member/kubeconfig --request-timeout 5s "$@"; }
answers()  { fed get --raw /readyz; } >/dev/null 2>&1
member_runs() { member get --raw /readyz; } >/dev/null 2>&1
joined()   { [ "$(fed get clusters -o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
arrived()  { member get configmap "$1" >/dev/null 2>&1; }
balanced() { inside curl -fs -o /dev/null --max-time 2 -H 'Host: www.example.com' http://203.0.113.80/; }
in_dns()   { inside dig +short +tries=1 +time=1 @127.0.0.1 web.default.prod.svc.example.com A | grep -q '^[0-9]'; }
property() { inside systemctl show --value --property "$2" "$1"; }
runs()     { [ "$(property "$1" ActiveState)" = active ] && [ "$(property "$1" MainPID)" != "${2:-0}" ]; }

# installed UNIT: by the commands at the unit's head.
installed() { sh_inside "cd /mnt/manifests; $(sed -n "s/^#   //p" hack/manifests/federation.service | sed "s/federation\.service/$1.service/; s/--now federation\$/--now $1/; ${2:-}")"; }

# head_says N: runs the Nth of the commands at the head of the load balancer's unit.
head_says() { sh_inside "cd /mnt/manifests; $(sed -n 's/^#   //p' 'hack/manifests/federation-lb@.service' | sed -n "$1p")"; }

# credential FILE NAMESPACE ACCOUNT: a kubeconfig file of an account of the federation, in /etc/federation.
credential() {
  sh_inside "mkdir -p /etc/federation; cd /etc/federation; export KUBECONFIG=/var/lib/federation/admin.kubeconfig
'$kubectl' -n $2 create serviceaccount $3
cp \$KUBECONFIG $1
'$kubectl' config --kubeconfig $1 unset users
'$kubectl' config --kubeconfig $1 set-credentials federation --token \"\$('$kubectl' -n $2 create token $3)\""
}

# confined UNIT CAPABILITIES: its process has these and no other, and can neither gain any nor write anything of the machine's but its own.
confined() {
  local main status want
  main=$(property "$1" MainPID)
  status=$(inside cat "/proc/$main/status")
  for want in "CapEff:	$2" "CapBnd:	$2" "NoNewPrivs:	1" "Seccomp:	2"; do
    grep -qF "$want" <<<"$status" || fail "$1: its process has not \"$want\" but: $status"
  done
  ! grep -qE '^Uid:	0' <<<"$status" || fail "$1: its process runs as root"
  inside grep -qE '^[^ ]+ / overlay ro,' "/proc/$main/mounts" || fail "$1: its process could write to /"
  inside nsenter --target "$main" --mount --root -- sh -c '! touch /etc/x && ! touch /usr/local/bin/x' 2>/dev/null || fail "$1: its process could write to the machine's files"
  [ "$(property "$1" MemoryMax)" != infinity ] || fail "$1: its memory is not limited"
}

# packages VERSION: makes the packages of this tree's programs.
packages() {
  local programs
  programs=$(mktemp -d)
  ln -s "$bin"/{federation,federation-dns,federation-lb,kubectl-federation} "$PWD/LICENSE" "$programs"
  mkdir -p "$made"
  hack/deb.sh "$made" "$1" "$(dpkg --print-architecture)" "$programs"
  rm -r "$programs"
}

# apt VERB PACKAGE...: without questions.
apt() { inside env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet --yes -o APT::Sandbox::User=root "$@" >"$machine/apt" 2>&1 || fail "apt-get $*: $(<"$machine/apt")"; }

# state UNIT: as active/enabled.
state() { echo "$(inside systemctl is-active "$1" || true)/$(inside systemctl is-enabled "$1" 2>/dev/null || true)"; }
is() { [ "$(state "$1")" = "$2" ] || fail "$1 is $(state "$1"), not $2, $3"; }

# as_packages: the packages on a machine that has nothing of ours, but credentials.
as_packages() {
  local unit units=(federation federation-dns federation-lb@9154)
  local -A before
  sh_inside "rm -rf /usr/local/bin/federation* /etc/systemd/system/federation* /etc/systemd/system/*.wants/federation* /etc/default/federation* /var/lib/federation; userdel federation; systemctl daemon-reload"
  apt install "$made"/*_0.1.0_*.deb
  for unit in federation federation-apiserver federation-controllers federation-dns; do is $unit inactive/disabled "after the installation"; done
  sh_inside "echo 'FEDERATION_FLAGS=\"--name prod --dns-zone example.com --dns-bind-address 127.0.0.1:53\"' >/etc/default/federation
echo 'FEDERATION_DNS_FLAGS=\"--zone example.com --listen 127.0.0.2:53 --name-server-ips 192.0.2.53\"' >/etc/default/federation-dns
$lb_flags >/etc/default/federation-lb"
  inside systemctl enable --quiet --now federation
  wait_for 60 "a federation that answers" answers
  [ "$(inside stat -c %U:%a /var/lib/federation)" = federation:700 ] || fail "/var/lib/federation is $(inside stat -c %U:%a /var/lib/federation)"
  credential dns.kubeconfig federation-system federation-dns
  fed create clusterrolebinding federation-dns --clusterrole federation-dns --serviceaccount federation-system:federation-dns
  credential lb.kubeconfig federation-load-balancers east
  fed create configmap kept
  inside systemctl enable --quiet --now "${units[@]:1}"
  for unit in "${units[@]}"; do
    confined "$unit" 0000000000000400
    [[ $(inside readlink "/proc/$(property "$unit" MainPID)/exe") == /usr/bin/* ]] || fail "$unit does not run the package's program"
    before[$unit]=$(property "$unit" MainPID)
  done
  apt install "$made"/*_0.1.1_*.deb
  for unit in federation federation-dns; do
    is $unit active/enabled "after an upgrade"
    runs $unit "${before[$unit]}" || fail "an upgrade does not restart $unit"
  done
  runs federation-lb@9154 0 && ! runs federation-lb@9154 "${before[federation-lb@9154]}" || fail "an upgrade restarts the load balancer, or ends it"
  wait_for 60 "a federation that answers after an upgrade" answers
  fed get configmap kept >/dev/null
  inside grep -q 'name prod' /etc/default/federation || fail "an upgrade changes /etc/default/federation"
  apt remove federation federation-dns federation-lb
  for unit in "${units[@]}"; do [[ $(state "$unit") != active/* ]] || fail "$unit runs after its removal"; done
  [ -z "$(sh_inside "find /etc/systemd/system -name 'federation*'; pgrep -a federation || true")" ] || fail "a removal leaves something enabled, or running"
  inside test -e /etc/default/federation || fail "a removal takes the site's flags away"
  apt purge federation federation-dns federation-lb
  ! inside test -e /etc/default/federation || fail "a purge leaves /etc/default/federation"
  inside test -e /var/lib/federation/pki/ca.key || fail "a purge takes the keys away"
  echo "the Debian packages start nothing, an upgrade restarts what runs but load balancers, and a purge leaves the data"
}

# ends UNIT: asked to.
ends() {
  local began=$SECONDS
  inside systemctl stop "$1"
  [ $((SECONDS - began)) -lt 15 ] || fail "$1 took $((SECONDS - began)) s to end"
  [ "$(property "$1" Result) $(property "$1" ExecMainStatus)" = "success 0" ] || fail "$1 ended with $(property "$1" Result), $(property "$1" ExecMainStatus)"
  echo "$1 ended in $((SECONDS - began)) s, with 0"
}

# killed UNIT: it comes back.
killed() {
  local main
  main=$(property "$1" MainPID)
  inside kill -KILL "$main"
  wait_for 30 "the return of $1" runs "$1" "$main"
}

cleanup() {
  local hierarchy
  [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true # process 1: with it ends all that it started
  wait
  for hierarchy in $(hierarchies); do
    [ ! -d "$hierarchy/$group" ] || find "$hierarchy/$group" -depth -type d -exec rmdir {} + || true
  done
  [ -z "$machine" ] || { umount "$machine" 2>/dev/null || true; rmdir "$machine"; }
  [ -z "$made" ] || rm -rf "$made"
}

[ "$(id -u)" = 0 ] || skip "that takes root"
[ -x $systemd ] || skip "there is no $systemd (Debian package systemd)"
go build -o _output/bin/ ./hack/lbclient
kubectl=$(command -v kubectl)
export bin=$PWD/_output/bin
made=$PWD/_output/e2e-systemd
machine=$(mktemp -d)
trap cleanup EXIT
! command -v dpkg-deb >/dev/null || for version in v0.1.0 v0.1.1; do packages $version; done
mount -t tmpfs tmpfs "$machine"
for hierarchy in $(hierarchies); do
  mkdir "$hierarchy/$group" || skip "no cgroup can be made in $hierarchy"
done
(
  for hierarchy in $(hierarchies); do echo "$BASHPID" >"$hierarchy/$group/cgroup.procs"; done
  exec unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --net --cgroup "$PWD/hack/e2e-systemd.sh" boot "$machine"
) >"$machine/log" 2>&1 </dev/null &
unshare=$!
first() { pid=$(pgrep --parent "$unshare") && [ "$(readlink "/proc/$pid/exe")" = "$(realpath $systemd)" ]; }
for _ in {1..100}; do first && break; kill -0 $unshare 2>/dev/null || break; sleep 0.1; done
first || { pid=''; skip "systemd cannot be process 1 of namespaces here: $(tail -1 "$machine/log")"; }
wait_for 60 "the boot of systemd" booted
echo "$(inside systemctl --version | head -1) is process 1, of namespaces of its own"

# A member, and then a federation in one process.
sh_inside "ip link set lo up; nohup '$bin/member' --name east-a --data-dir /run/member --port 6501 --region east --zone a --lb-cidr 192.0.2.0/24 --nodes 1 >/run/member.log 2>&1 </dev/null &"
sh_inside "echo 'FEDERATION_FLAGS=\"--name prod --dns-zone example.com --dns-bind-address :53\"' >/etc/default/federation"
installed federation
wait_for 60 "a federation that answers" answers
confined federation 0000000000000400 # NET_BIND_SERVICE
wait_for 60 "a member" member_runs
sh_inside "KUBECONFIG=/var/lib/federation/admin.kubeconfig '$bin/kubectl-federation' join east-a --member-kubeconfig /run/member/kubeconfig --accept-namespaces default"
wait_for 30 "a ready cluster" joined
fed create configmap one
fed create deployment web --image pod --port 80
fed create service loadbalancer web --tcp 80
wait_for 30 "the ConfigMap one in the member" arrived one
wait_for 60 "an answer on port 53" in_dns
killed federation
wait_for 60 "a federation that answers again" answers
fed create configmap two
wait_for 60 "the ConfigMap two in the member" arrived two
ends federation

# The same data directory, and three processes.
sh_inside "echo 'FEDERATION_CONTROLLERS_FLAGS=\"--name prod --dns-zone example.com\"' >/etc/default/federation-controllers"
sh_inside "echo 'FEDERATION_DNS_FLAGS=\"--zone example.com --listen 127.0.0.1:53 --name-server-ips 192.0.2.53\"' >/etc/default/federation-dns"
installed federation-apiserver /^useradd/d
wait_for 60 "an API that answers" answers
credential dns.kubeconfig federation-system federation-dns
fed create clusterrolebinding federation-dns --clusterrole federation-dns --serviceaccount federation-system:federation-dns
for unit in federation-controllers federation-dns; do installed $unit /^useradd/d; done
wait_for 60 "an answer of federation-dns on port 53" in_dns
confined federation-apiserver 0000000000000000
confined federation-controllers 0000000000000400
confined federation-dns 0000000000000400
fed create configmap three
wait_for 60 "the ConfigMap three in the member" arrived three
killed federation-apiserver
wait_for 60 "an API that answers again" answers
for unit in federation-controllers federation-dns; do wait_for 30 "$unit, which runs" runs $unit; done
fed create configmap four
wait_for 60 "the ConfigMap four in the member" arrived four

# A load balancer, whose clients send 200 GETs a second while another one takes its place. An HTTP server stands for that of the member.
vip=$(member get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}')
sh_inside "ip address add $vip/32 dev lo; ip address add 203.0.113.80/32 dev lo; nohup '$bin/lbclient' serve --address $vip:80 --name east-a >/run/serve.log 2>&1 </dev/null &"
fed create ingress web --class federation --rule 'www.example.com/*=web:80'
credential lb.kubeconfig federation-load-balancers east
lb_flags="echo 'FEDERATION_LB_FLAGS=\"--region east --addresses 203.0.113.80 --http-bind-address 203.0.113.80:80 --https-bind-address 203.0.113.80:443 --local-targets $vip/32 --drain-delay 5s --drain-timeout 5s\"'"
sh_inside "$lb_flags >/etc/default/federation-lb"
head_says 1 || fail "the load balancer did not start"
wait_for 60 "an answer through the load balancer" balanced
confined federation-lb@9154 0000000000000400
killed federation-lb@9154
wait_for 30 "an answer through the load balancer that came back" balanced
exec {visitor}> >(exec nsenter --target "$pid" --all -- "$bin/lbclient" visit --addresses 203.0.113.80:80 --host www.example.com >"$machine/visits")
visits=$!
echo "a load balancer is replaced" >&"$visitor"
sleep 2
head_says 2 || fail "the load balancer was not replaced"
sleep 2
echo end >&"$visitor"
wait "$visits" || fail "the client ended with an error"
cat "$machine/visits"
grep -q ' 0 failed,' "$machine/visits" || fail "requests failed while a load balancer was replaced"
[ "$(inside systemctl is-active federation-lb@9154 federation-lb@9155 | paste -sd' ')" = "inactive active" ] || fail "the load balancer was not replaced"
for unit in federation-lb@9155 federation-dns federation-controllers federation-apiserver; do ends $unit; done
if command -v dpkg-deb >/dev/null; then as_packages; else echo "skipped: the packages, that takes dpkg"; fi
refused=$(inside journalctl --no-pager --grep 'operation not permitted|permission denied|read-only file system' -u 'federation*' -q || true)
[ -z "$refused" ] || fail "something was refused: $refused"
echo "federation runs under systemd in its sandbox, in one process and in three, with a load balancer that is replaced under load"
