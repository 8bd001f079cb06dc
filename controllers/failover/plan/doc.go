// Package plan decides where each cluster stands between serving and failed over.
//
//	verdicts := plan.Decide(clusters, settings, time.Now())
//
// Each verdict has the Cluster's next status.failover and its conditions FailedOver, FailoverSuspended and PartiallyReachable, what to
// tell people, and when to look again. All that is remembered is in the Clusters themselves, so a restart
// changes nothing and anyone can read it.
//
//	Serving ─lost─▶ GracePeriod ─over─▶ FailedOver ─ready─▶ FailingBack 0 % ─stable▶ 10 % ─▶ 50 % ─▶ Serving
//	   ▲               │  └──too many──▶ FailoverSuspended       │
//	   └─────ready─────┘                                         └──lost──▶ FailedOver (0 %) or GracePeriod
//
// How it is judged:
//   - Evidence: only an API that cannot be reached, or says that it is not well, is a sign that what runs there
//     may be dead. One that refuses our credential or whose certificate we do not trust is alive: FailoverSuspended.
//   - Several processes: a cluster is lost when the one that leads and more than half of all judge it lost (Settings.Others). One that at least
//     half of them reach is FailoverSuspended.
//   - The grace period is a debt: time away counts up, time back counts down at the same pace. So a cluster that
//     is away 20 s of every 25 s is failed over, and one that blinks is not.
//   - Fail static: where more than half of the serving clusters vanish within one window, or none is left, it is more
//     likely that we are cut off than that they are all dead. Nothing is moved. When enough are back, the rest begin a
//     new grace period: they may need a moment more.
//   - The cap: of the zones, at most so many are out at once; those that were lost first go first.
//   - Drills: a cluster that a drill isolates is judged like any other, and takes no part in the judgement of others. When the drill is
//     aborted it serves again as soon as it is ready.
//   - Grace and stable time count only while this process looks (Settings.Seen): what happened while the
//     federation was away is not known.
//
// What was traded: a cluster that returns waits the stable time with 0 %, though it is well; in return one that flaps
// moves its replicas once. The package is pure.
package plan
