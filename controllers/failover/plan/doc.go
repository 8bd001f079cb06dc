// Package plan decides the failover phase of each cluster.
//
//	verdicts := plan.Decide(clusters, settings, time.Now())
//
// Each verdict has the Cluster's next status.failover, its conditions FailedOver, FailoverSuspended and PartiallyReachable,
// the event to emit, and when to decide again. All state is in the Clusters, so a restart changes nothing and anyone can
// read it.
//
//	Serving ─lost─▶ GracePeriod ─over─▶ FailedOver ─ready─▶ FailingBack 0 % ─stable▶ 10 % ─▶ 50 % ─▶ Serving
//	   ▲               │  └──too many──▶ FailoverSuspended       │
//	   └─────ready─────┘                                         └──lost──▶ FailedOver (0 %) or GracePeriod
//
// The rules:
//   - Evidence: only an API that cannot be reached, or reports that it is unhealthy, is a sign that its workloads may be
//     dead. An API that rejects our credential, or whose certificate we do not trust, is alive: FailoverSuspended.
//   - Several processes: a cluster is lost when the leader and more than half of all processes judge it lost
//     (Settings.Others). A cluster that at least half of them reach is FailoverSuspended.
//   - The grace period is a debt: time away counts up, time back counts down at the same rate. So a cluster that is away
//     20 s of every 25 s is failed over, and one that blinks is not.
//   - Fail static: if more than half of the serving clusters vanish within one window, or none is left, the federation is
//     more likely cut off than all of them dead. Nothing is moved. When enough are back, the rest begin a new grace
//     period: they may need a moment more.
//   - The cap: at most MaxZones zones are failed over at once, in the order of their loss.
//   - Drills: a cluster that a drill isolates is judged like any other, and takes no part in the judgement of others. When
//     the drill is aborted, it serves again as soon as it is ready.
//   - Grace and stable periods count only while this process runs (Settings.Seen): what happened while the federation was
//     away is unknown.
//
// What was traded: a cluster that returns waits the stable period with 0 %, though it is healthy. In return a flapping
// cluster moves its replicas once. The package is pure.
package plan
