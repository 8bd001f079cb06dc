package fleettest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// Random drives a fleet by chance: each step is a command of the script language, so that what it did can be kept
// as a scenario.
type Random struct {
	player  *player
	chance  *rand.Rand
	members []string
	objects map[string]string // KIND/NAME → file
	sick    map[string]bool   // members with a fault
	tainted map[string]bool
	made    int
	log     []string
}

// NewRandom makes a driver of a fleet without members: equal seeds take equal steps.
func NewRandom(f *Fleet, seed uint64) *Random {
	return &Random{
		player: &player{Fleet: f, files: map[string]string{}}, chance: rand.New(rand.NewPCG(seed, seed)),
		objects: map[string]string{}, sick: map[string]bool{}, tainted: map[string]bool{},
	}
}

// Log returns the steps since the fleet last was in order, as a scenario.
func (r *Random) Log() string {
	out := strings.Join(r.log, "\n")
	for name, text := range r.player.files {
		if strings.Contains(out, name) {
			out += "\n-- " + name + " --\n" + strings.TrimSpace(text)
		}
	}
	return out
}

// Begin adds members.
func (r *Random) Begin() error {
	for _, name := range []string{"east-a", "east-b", "west-a", "west-b"} {
		region, zone, _ := strings.Cut(name, "-")
		r.members = append(r.members, name)
		if err := r.do("cluster add %s region=%s zone=%s nodes=3 pods=40 tier=%s", name, region, zone, region); err != nil {
			return err
		}
	}
	return r.do("settle")
}

func (r *Random) do(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	r.log = append(r.log, line)
	if _, err := r.player.do(strings.Fields(line)); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}

// Step takes one step, lets a little time pass, and returns what went against the laws.
func (r *Random) Step() error {
	steps := []func() error{
		r.create, r.create, r.scale, r.scale, r.scale, r.change, r.remove, r.remove,
		r.fall, r.fall, r.rise, r.rise, r.crashPods, r.edit, r.lose, r.restart, r.taint, r.delay, r.refuse, r.policy,
	}
	err := steps[r.chance.IntN(len(steps))]()
	if err == nil {
		err = r.do("wait %dms", 100*(1+r.chance.IntN(80)))
	}
	return errors.Join(err, r.player.Failures())
}

// Order makes everything well and checks the laws of a fleet that has settled.
func (r *Random) Order() error {
	for _, name := range r.members {
		for _, line := range []string{"heal " + name, "slow " + name + " 0s", "accept " + name, "pods " + name + " 2s"} {
			if err := r.do("%s", line); err != nil {
				return err
			}
		}
	}
	clear(r.sick)
	if err := errors.Join(r.do("settle"), r.player.CheckIdle()); err != nil {
		return err
	}
	r.log = r.log[:0]
	return nil
}

func (r *Random) member() string { return r.members[r.chance.IntN(len(r.members))] }

// object picks one of those there are; false where there is none.
func (r *Random) object() (string, bool) {
	names := make([]string, 0, len(r.objects))
	for name := range r.objects {
		if t, err := r.player.target(name); err == nil && r.player.Federation.Get(t.GroupVersionResource, t.namespace, t.name) != nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	slices.Sort(names)
	return names[r.chance.IntN(len(names))], true
}

const workloadText = `apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {%s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

// create makes an object of some kind, perhaps one that was deleted a moment ago.
func (r *Random) create() error {
	name := fmt.Sprintf("o%d", r.chance.IntN(12))
	short := []string{"rs", "rs", "deploy", "sts", "cm", "svc"}[r.chance.IntN(6)]
	var text string
	switch short {
	case "cm":
		text = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {n: \"%d\"}\n", name, r.made)
	case "svc":
		text = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: LoadBalancer, selector: {app: %[1]s}, ports: [{port: 80}]}\n", name)
	default:
		kind := map[string]string{"rs": "ReplicaSet", "deploy": "Deployment", "sts": "StatefulSet"}[short]
		text = fmt.Sprintf(workloadText, kind, name, r.annotations(short), 1+r.chance.IntN(30))
	}
	r.made++
	file := fmt.Sprintf("%s-%s-%d.yaml", short, name, r.made)
	r.player.files[file] = text
	r.objects[short+"/"+name] = file
	return r.do("apply %s", file)
}

func (r *Random) annotations(short string) string {
	key := map[string]string{"rs": "replica-set-preferences", "deploy": "deployment-preferences"}[short]
	if key == "" || r.chance.IntN(2) == 0 {
		return ""
	}
	weights := `"*": {"weight": 1}`
	if r.chance.IntN(3) == 0 {
		weights = fmt.Sprintf(`"east-a": {"weight": 2, "minReplicas": 2}, "*": {"weight": 1, "maxReplicas": %d}`, 5+r.chance.IntN(20))
	}
	return fmt.Sprintf(`federation.kubernetes.io/%s: '{"rebalance": %t, "clusters": {%s}}'`, key, r.chance.IntN(2) == 0, weights)
}

func (r *Random) scale() error {
	for range 5 {
		if name, ok := r.object(); ok && (strings.HasPrefix(name, "rs/") || strings.HasPrefix(name, "deploy/") || strings.HasPrefix(name, "sts/")) {
			return r.do("scale %s %d", name, r.chance.IntN(40))
		}
	}
	return nil
}

// change changes labels, or to which clusters an object goes.
func (r *Random) change() error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	switch r.chance.IntN(3) {
	case 0:
		return r.do(`annotate %s federation.alpha.kubernetes.io/cluster-selector=[{"key":"tier","operator":"In","values":["%s"]}]`, name, []string{"east", "west"}[r.chance.IntN(2)])
	case 1:
		return r.do("annotate %s federation.alpha.kubernetes.io/cluster-selector-", name)
	}
	return r.do("label %s n=%d", name, r.chance.IntN(100))
}

func (r *Random) remove() error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	return r.do("delete %s %s", name, []string{"", "", "", "foreground"}[r.chance.IntN(4)])
}

// fall makes a member sick, but for the last two that are well.
func (r *Random) fall() error {
	name := r.member()
	if len(r.sick) >= 2 || r.sick[name] {
		return r.rise()
	}
	r.sick[name] = true
	return r.do("%s %s", []string{"partition", "hang", "kill", "sicken", "expire"}[r.chance.IntN(5)], name)
}

func (r *Random) rise() error {
	for _, name := range r.members {
		if r.sick[name] {
			delete(r.sick, name)
			return r.do("heal %s", name)
		}
	}
	return nil
}

func (r *Random) crashPods() error {
	if name, ok := r.object(); ok && strings.HasPrefix(name, "rs/") {
		return r.do("pods %s fail %s %d", r.member(), name, 1+r.chance.IntN(5))
	}
	return nil
}

// edit has somebody change or delete a copy in a member.
func (r *Random) edit() error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	t, err := r.player.target(name)
	m := r.player.Member(r.member())
	if err != nil || m.API.Get(t.GroupVersionResource, t.namespace, t.name) == nil {
		return err
	}
	if r.chance.IntN(2) == 0 {
		return r.do("member %s delete %s", m.Name, name)
	}
	return r.do(`member %s patch %s {"metadata":{"labels":{"theirs":"%d","n":"theirs"}}}`, m.Name, name, r.chance.IntN(100))
}

func (r *Random) lose() error { return r.do("lose %s %d", r.member(), 1+r.chance.IntN(3)) }

func (r *Random) restart() error {
	if r.chance.IntN(2) == 0 {
		return r.do("restart")
	}
	return r.do("crash %d", 1+r.chance.IntN(5))
}

func (r *Random) taint() error {
	name := r.member()
	if r.tainted[name] {
		delete(r.tainted, name)
		return r.do("untaint %s example.com/t", name)
	}
	if len(r.tainted) > 0 {
		return nil
	}
	r.tainted[name] = true
	return r.do("taint %s example.com/t:%s", name, []string{"NoSchedule", "NoExecute"}[r.chance.IntN(2)])
}

func (r *Random) delay() error {
	if r.chance.IntN(2) == 0 {
		return r.do("slow %s %dms", r.member(), 100*r.chance.IntN(20))
	}
	return r.do("pods %s %s", r.member(), []string{"1s", "3s", "20s"}[r.chance.IntN(3)])
}

const policyText = `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: p, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: ReplicaSet}
  - {apiVersion: v1, kind: ConfigMap, names: [o1, o2, o3]}
  clusters: {regions: [%s]}
  spreadConstraints: [{spreadBy: Cluster, minGroups: %d}]
  tolerations: [{key: example.com/t, operator: Exists}]
`

// policy makes, changes or deletes the one policy.
func (r *Random) policy() error {
	if r.player.Federation.Get(v1beta1.PoliciesResource, "default", "p") != nil && r.chance.IntN(2) == 0 {
		return r.do("delete policy/p")
	}
	r.made++
	file := fmt.Sprintf("policy-%d.yaml", r.made)
	r.player.files[file] = fmt.Sprintf(policyText, []string{"east", "west", "east, west"}[r.chance.IntN(3)], 1+r.chance.IntN(3))
	return r.do("apply %s", file)
}

func (r *Random) refuse() error {
	name, ok := r.object()
	if !ok {
		return nil
	}
	if r.chance.IntN(2) == 0 {
		return r.do("accept %s", r.member())
	}
	return r.do("refuse %s %s %d not now", r.member(), name, []int{403, 422, 429, 500, 503}[r.chance.IntN(5)])
}
