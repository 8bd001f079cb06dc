// Command local brings up, on one machine, a federation with real member clusters, and takes it
// down again:
//
//	local up [--clusters=3] [--nodes=3] [--members-only] [--pull]
//	local status
//	local down
//
// up starts what does not run, on the data and the ports of the last time, joins the members, and
// returns when all of it is ready. All that it makes lies below --root (_output/local):
//
//	env                        KEY=VALUE lines for scripts, to be sourced
//	members/NAME/kubeconfig    of a member cluster; members/NAME/pid is its process
//	members/NAME/agent/        of its agent, with --pull: its bootstrap token, certificate and pid
//	federation.pid             the federation's process; its data in federation/
//	logs/                      one file a process
//	state.json                 names and ports, chosen at the first up
//
// Processes are detached: they survive the shell, and down ends them. A pid counts as ours only if
// its command line in /proc is one of our programs on a path below --root, so neither a pid that was given to
// somebody else nor another checkout's stack is ever touched. The cost: Linux only.
package main
