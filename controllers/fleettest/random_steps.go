package fleettest

import (
	"strings"
)

// steppers are the steps that may be taken; what is to happen more often is in there more often.
func (r *Random) steppers() []func() error {
	return []func() error{
		r.create, r.create, r.create, r.scale, r.scale, r.scale, r.change, r.remove, r.remove,
		r.fall, r.fall, r.rise, r.rise, r.crashPods, r.edit, r.lose, r.restart, r.taint, r.drain, r.delay, r.refuse, r.policy, r.load, r.load,
	}
}

func (r *Random) scale() error {
	if name, ok := r.object("rs", "deploy", "sts", "job"); ok {
		if strings.HasPrefix(name, "job/") {
			return r.do(`patch %s {"spec":{"parallelism":%d}}`, name, r.chance.IntN(40))
		}
		return r.do("scale %s %d", name, r.chance.IntN(40))
	}
	return nil
}

// load changes how many pods of a workload the autoscaler of a member would like to have, if there is one.
func (r *Random) load() error {
	if name, ok := r.object("hpa"); ok {
		return r.do("load %s deploy/%s %d", r.member(), strings.TrimPrefix(name, "hpa/"), 1+r.chance.IntN(15))
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
	return r.delete(name, []string{"", "", "", "foreground"}[r.chance.IntN(4)])
}

func (r *Random) delete(name, how string) error {
	r.objects[name] = false
	return r.do("delete %s %s", name, how)
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
	if name, ok := r.object("rs", "deploy", "sts", "job"); ok {
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
	switch r.chance.IntN(5) {
	case 0:
		return r.processes(1 + r.chance.IntN(3))
	case 1, 2:
		return r.do("restart")
	}
	return r.do("crash %d", 1+r.chance.IntN(5))
}

// processes has so many processes share the work.
func (r *Random) processes(n int) error {
	r.several = n > 1
	return r.do("processes %d", n)
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

// drain drains a cluster, or lets the one that is drained come back.
func (r *Random) drain() error {
	if name := r.drained; name != "" {
		r.drained = ""
		return r.do("undrain %s", name)
	}
	r.drained = r.member()
	return r.do("drain %s", r.drained)
}

func (r *Random) delay() error {
	switch r.chance.IntN(5) {
	case 0:
		return r.do("quota %s %d", r.member(), 10*r.chance.IntN(5))
	case 1, 2:
		return r.do("slow %s %dms", r.member(), 100*r.chance.IntN(20))
	}
	return r.do("pods %s %s", r.member(), []string{"1s", "3s", "20s"}[r.chance.IntN(3)])
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
