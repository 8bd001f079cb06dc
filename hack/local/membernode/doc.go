// Command membernode is one real node of a member: it is the first process of namespaces of its own (processes, mounts,
// network, host name, IPC), in which it starts containerd, kubelet and what makes Services work. The member starts it,
// plugs it into the internet as eth0, and kills it: nothing of what ran on it outlives it, no process, mount or interface.
// Who kills it removes its cgroups, which are empty then.
//
// What is on the disk stays, as over a reboot: below --data-dir, which is /run/node inside. All else that programs write
// (/run, /var/lib, /var/log) is in memory and gone.
//
// Pods are routed, each by a veth of its own (the CNI plugin ptp), without a bridge, which could lead replies
// past the rules. No address is translated on the way to other nodes or out: the internet has routes to all pods.
package main
