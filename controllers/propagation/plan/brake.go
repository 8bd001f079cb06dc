package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// Brake decides whether the copies in a member may be deleted whose objects the federation does not know: they do not
// exist, and no deletion of them is recorded (ADR 85). A few may. If very many would go at once, something is wrong
// with the federation rather than with them, as after a restore from an old backup: they are held until a person
// approves. The zero value is ready to use.
type Brake struct {
	// granted are those that may go without approval, and since when; approved those with approval.
	granted  map[types.UID]time.Time
	approved map[types.UID]bool
	held     map[types.UID]string
	set      string
	of       int
}

const (
	// Deletions without approval: so many copies, or such a share of a member's copies, whichever is more.
	brakeCopies  = 10
	brakePercent = 20
	// atOnce is the time within which deletions count together.
	atOnce = 10 * time.Minute
)

// Judge takes in all copies of unknown objects, by UID, with a name for messages. copies is the number of all copies in
// the member, including these.
func (b *Brake) Judge(unknown map[types.UID]string, copies int, now time.Time) {
	maps.DeleteFunc(b.granted, func(uid types.UID, at time.Time) bool {
		_, there := unknown[uid]
		return !there && now.Sub(at) > atOnce
	})
	going, fresh := len(b.granted), map[types.UID]string{}
	b.of = copies
	for uid := range b.granted {
		if _, there := unknown[uid]; !there {
			b.of++
		}
	}
	for uid, name := range unknown {
		if _, granted := b.granted[uid]; !granted && !b.approved[uid] {
			fresh[uid] = name
		}
	}
	b.held, b.set = nil, ""
	if len(fresh) == 0 {
		return
	}
	if going+len(fresh) > max(brakeCopies, b.of*brakePercent/100) {
		b.held, b.set = fresh, setOf(fresh)
		return
	}
	if b.granted == nil {
		b.granted = map[types.UID]time.Time{}
	}
	for uid := range fresh {
		b.granted[uid] = now
	}
}

// setOf returns the name of a set of copies.
func setOf(copies map[types.UID]string) string {
	sum := sha256.New()
	for _, uid := range slices.Sorted(maps.Keys(copies)) {
		sum.Write([]byte(uid + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// Approve releases the held copies if sets has their set, and reports whether it does.
func (b *Brake) Approve(sets []string) bool {
	if b.set == "" || !slices.Contains(sets, b.set) {
		return false
	}
	if b.approved == nil {
		b.approved = map[types.UID]bool{}
	}
	for uid := range b.held {
		b.approved[uid] = true
	}
	b.held, b.set = nil, ""
	return true
}

// May reports whether a copy may be deleted, and whether that is known: if not, it must be judged first.
func (b *Brake) May(uid types.UID) (may, known bool) {
	_, granted := b.granted[uid]
	_, held := b.held[uid]
	may = granted || b.approved[uid]
	return may, may || held
}

// Held returns what is held: how many copies, of how many, the name of the set, and some of them, sorted.
func (b *Brake) Held(most int) (copies, of int, set string, some []string) {
	some = slices.Sorted(maps.Values(b.held))
	return len(b.held), b.of, b.set, some[:min(most, len(some))]
}

// SayHeld sets in a Cluster's status what is held of a custom kind, or of all built-in kinds (""); nil: nothing. It
// returns the message of an event, if one is due.
func SayHeld(c *v1beta1.Cluster, resource string, now *v1beta1.PendingDeletions, at time.Time) (news string) {
	all := slices.DeleteFunc(slices.Clone(c.Status.DeletionsPendingApproval), func(h v1beta1.PendingDeletions) bool { return h.Resource == resource })
	if now != nil {
		all = append(all, *now)
		slices.SortFunc(all, func(a, b v1beta1.PendingDeletions) int { return strings.Compare(a.Resource, b.Resource) })
	}
	c.Status.DeletionsPendingApproval = all
	was := c.Condition(v1beta1.ClusterDeletionsPendingApproval)
	if len(all) == 0 {
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(c v1beta1.ClusterCondition) bool { return c.Type == v1beta1.ClusterDeletionsPendingApproval })
		return ""
	}
	is := v1beta1.ClusterCondition{
		Type: v1beta1.ClusterDeletionsPendingApproval, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonUnknownObjects, Message: whyHeld(c.Name, all),
		LastProbeTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
	}
	if was == nil {
		c.Status.Conditions = append(c.Status.Conditions, is)
		return is.Message
	}
	is.LastTransitionTime = was.LastTransitionTime
	*was = is
	return ""
}

func whyHeld(cluster string, all []v1beta1.PendingDeletions) string {
	copies, of := int32(0), int32(0)
	var examples []string
	for _, h := range all {
		copies, of, examples = copies+h.Copies, of+h.Of, append(examples, h.Examples...)
	}
	return fmt.Sprintf("%d of %d copies are not deleted, though the federation does not know their objects, such as %s: was it restored from an old backup? "+
		"To have them deleted: kubectl federation approve-deletions %s", copies, of, strings.Join(examples[:min(3, len(examples))], ", "), cluster)
}
