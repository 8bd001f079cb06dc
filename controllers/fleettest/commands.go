package fleettest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// player carries out the commands of a script.
type player struct {
	*Fleet
	files   map[string]string
	seen    int                                   // events shown so far
	saved   map[string]*unstructured.Unstructured // backups of objects in members
	backups map[string]memapi.Snapshot            // of all that an API holds, by cluster or "fed"
	drilled int                                   // drills made so far
}

// command is what a word does with the words after it. What it returns first is shown.
type command func(p *player, args []string) ([]string, error)

// The commands by their first word, and by what they are about.
var (
	clusterCommands = map[string]command{
		"cluster": addOrRemoveCluster, "rejoin": silent(rejoinCluster), "alias": silent(joinAlias), "rebuild": silent(rebuildCluster),
		"taint": silent(taintCluster), "untaint": silent(untaintCluster), "dns-weight": silent(setDNSWeight),
		"drain": silent(drainCluster), "undrain": silent(undrainCluster), "approve": silent(approveDeletions),
	}
	objectCommands = map[string]command{
		"apply": silent(applyFile), "delete": silent(deleteObject), "forget": silent(forgetObject), "scale": silent(scaleObject),
		"annotate": silent(annotateObject), "label": silent(labelObject), "patch": silent(patchObject),
	}
	memberCommands = map[string]command{
		"member": silent(actInMember), "pods": silent(setPodsReady), "nodes": silent(setNodesStart), "quota": silent(setQuota),
		"clock": silent(setClock), "load": silent(setLoad),
	}
	// What goes wrong with members and on the way to them.
	faultCommands = map[string]command{
		"partition": fault(Partitioned), "hang": fault(Hung), "kill": fault(Dead), "sicken": fault(Unhealthy), "expire": fault(Expired), "heal": fault(Well),
		"slow": silent(setLatency), "refuse": silent(refuseWrites), "accept": silent(acceptWrites), "lose": silent(loseAnswers),
		"cut": silent(cutProcessOff),
	}
	// What goes wrong with the federation's API and processes.
	federationCommands = map[string]command{
		"stall": silent(stallAPI), "fed": silent(setAPIFaults), "snapshot": silent(takeSnapshot), "restore": silent(restoreSnapshot),
		"restart":   silent(func(p *player, _ []string) error { p.processes.restart(); return nil }),
		"processes": silent(runProcesses), "crash": silent(crashAfterWrites), "panic": silent(injectPanic), "pause": silent(pauseProcess),
		"readiness": silent(func(p *player, _ []string) error { p.readiness.Store(true); p.processes.restart(); return nil }),
	}
	drillCommands = map[string]command{"drill": silent(drillCluster)}
	timeCommands  = map[string]command{
		"wait": silent(passTime), "settle": silent(settleFleet), "rest": silent(func(p *player, _ []string) error { return p.CheckIdle() }),
	}
	checkCommands = map[string]command{"show": show, "expect": silent(expect), "core": silent(checkCore)}

	commands = merged(clusterCommands, objectCommands, memberCommands, faultCommands, federationCommands, drillCommands, timeCommands, checkCommands)
)

// merged has the commands of all tables. No word is in two.
func merged(tables ...map[string]command) map[string]command {
	all := map[string]command{}
	for _, table := range tables {
		for word, c := range table {
			if all[word] != nil {
				panic(word + " is the word of two commands")
			}
			all[word] = c
		}
	}
	return all
}

func silent(do func(*player, []string) error) command {
	return func(p *player, args []string) ([]string, error) { return nil, do(p, args) }
}

// do carries out one command.
func (p *player) do(words []string) ([]string, error) {
	c := commands[words[0]]
	if c == nil {
		return nil, fmt.Errorf("there is no command %q", words[0])
	}
	return c(p, words[1:])
}

func need(args []string, n int, usage string) error {
	if len(args) < n {
		return fmt.Errorf("usage: %s", usage)
	}
	return nil
}

// addOrRemoveCluster carries out cluster add NAME [region=R] [zone=Z] [nodes=N] [pods=N] [LABEL=VALUE…] · cluster remove NAME
func addOrRemoveCluster(p *player, args []string) ([]string, error) {
	if err := need(args, 2, "cluster add|remove NAME …"); err != nil {
		return nil, err
	}
	if args[0] == "remove" {
		return nil, p.Unjoin(args[1])
	}
	place := Place{Name: args[1], Nodes: 3, Labels: map[string]string{}}
	for _, arg := range args[2:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "region":
			place.Region = value
		case "zone":
			place.Zone = value
		case "nodes":
			place.Nodes, err = strconv.Atoi(value)
		case "pods":
			place.Pods, err = strconv.Atoi(value)
		default:
			place.Labels[key] = value
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, p.Join(place)
}

func fault(f Fault) command {
	return silent(func(p *player, args []string) error {
		for _, name := range args {
			m, err := p.find(name)
			if err != nil {
				return err
			}
			m.Wire.Set(f)
		}
		return need(args, 1, "FAULT CLUSTER…")
	})
}

func (p *player) find(name string) (*Member, error) {
	if m := p.Member(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("there is no cluster %q", name)
}

// objects reads the YAML documents of a file of the script.
func (p *player) objects(file string) (out []*unstructured.Unstructured, err error) {
	text, ok := p.files[file]
	if !ok {
		return nil, fmt.Errorf("the script has no file %q", file)
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// applyFile carries out apply FILE: as kubectl apply --server-side.
func applyFile(p *player, args []string) error {
	if err := need(args, 1, "apply FILE"); err != nil {
		return err
	}
	return p.applyTo(p.Federation, p.user, args[0])
}

func (p *player) applyTo(api *memapi.API, client dynamic.Interface, file string) error {
	all, err := p.objects(file)
	for _, u := range all {
		if u.GetKind() == "CustomResourceDefinition" {
			api.Serve(defined(u))
		}
		r, found := resourceOf(api, u.GroupVersionKind())
		if !found {
			return fmt.Errorf("%s: kind %s is not served", file, u.GetKind())
		}
		if r.Namespaced && u.GetNamespace() == "" {
			u.SetNamespace(metav1.NamespaceDefault)
		}
		_, err := at(client, r, u.GetNamespace()).Apply(p.ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
		if err != nil {
			return err
		}
	}
	return err
}

// defined is the resource that a definition defines.
func defined(u *unstructured.Unstructured) memapi.Resource {
	get := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, fields...)...)
		return s
	}
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	version, _ := versions[0].(map[string]any)["name"].(string)
	return memapi.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: get("group"), Version: version, Resource: get("names", "plural")},
		Kind:                 get("names", "kind"), Namespaced: get("scope") == "Namespaced", Status: true, Generation: true,
	}
}

func resourceOf(api *memapi.API, gvk schema.GroupVersionKind) (memapi.Resource, bool) {
	all := api.Resources()
	i := slices.IndexFunc(all, func(r memapi.Resource) bool { return r.Kind == gvk.Kind && r.GroupVersion() == gvk.GroupVersion() })
	if i < 0 {
		return memapi.Resource{}, false
	}
	return all[i], true
}

func at(c dynamic.Interface, r memapi.Resource, namespace string) dynamic.ResourceInterface {
	if !r.Namespaced {
		return c.Resource(r.GroupVersionResource)
	}
	return c.Resource(r.GroupVersionResource).Namespace(namespace)
}

var shortNames = map[string]string{
	"rs": "replicasets", "deploy": "deployments", "sts": "statefulsets", "ds": "daemonsets", "cm": "configmaps", "sa": "serviceaccounts",
	"svc": "services", "ing": "ingresses", "hpa": "horizontalpodautoscalers", "pdb": "poddisruptionbudgets", "netpol": "networkpolicies",
	"ns": "namespaces", "drill": "failoverdrills", "schedule": "failoverdrillschedules", "policy": "placementpolicies", "crd": "customresourcedefinitions",
}

// target is an object as scripts name it: KIND/NAME or KIND/NAMESPACE/NAME.
type target struct {
	memapi.Resource
	namespace, name string
}

// workload is the key of one that has pods.
func (t target) workload() workloadKey {
	return workloadKey{t.Resource.Resource, t.namespace, t.name}
}

func (p *player) target(text string) (t target, err error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 {
		return t, fmt.Errorf("%q: must be KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
	kind := parts[0]
	if long, ok := shortNames[kind]; ok {
		kind = long
	}
	all := p.Federation.Resources()
	i := slices.IndexFunc(all, func(r memapi.Resource) bool { return r.Resource == kind || r.Resource == kind+"s" })
	if i < 0 {
		return t, fmt.Errorf("%q: there is no kind %q", text, parts[0])
	}
	t = target{Resource: all[i], name: parts[len(parts)-1]}
	if t.Namespaced {
		t.namespace = metav1.NamespaceDefault
		if len(parts) == 3 {
			t.namespace = parts[1]
		}
	}
	return t, nil
}

func (p *player) object(text string) (target, *unstructured.Unstructured, error) {
	t, err := p.target(text)
	if err != nil {
		return t, nil, err
	}
	u := p.Federation.Get(t.GroupVersionResource, t.namespace, t.name)
	if u == nil {
		return t, nil, fmt.Errorf("%s is not there", text)
	}
	return t, u, nil
}

// deleteObject carries out delete KIND/NAME [orphan|foreground]: as kubectl delete --cascade.
func deleteObject(p *player, args []string) error {
	if err := need(args, 1, "delete KIND/NAME [orphan|foreground]"); err != nil {
		return err
	}
	t, err := p.target(args[0])
	if err != nil {
		return err
	}
	policy := metav1.DeletePropagationBackground
	if len(args) > 1 {
		policy = map[string]metav1.DeletionPropagation{"orphan": metav1.DeletePropagationOrphan, "foreground": metav1.DeletePropagationForeground}[args[1]]
	}
	before := p.Federation.Get(t.GroupVersionResource, t.namespace, t.name)
	err = at(p.user, t.Resource, t.namespace).Delete(p.ctx, t.name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err == nil && policy == metav1.DeletePropagationOrphan && before != nil && before.GetDeletionTimestamp() == nil {
		p.laws.foreign.orphaned(p.Fleet, t, before.GetUID())
	}
	for range 100 { // kubectl waits, too
		if p.Federation.Get(t.GroupVersionResource, t.namespace, t.name) == nil {
			break
		}
		p.Pass(tick)
	}
	return err
}

// forgetObject carries out forget KIND/NAME: the federation is restored from a backup in which the object is missing.
func forgetObject(p *player, args []string) error {
	if err := need(args, 1, "forget KIND/NAME"); err != nil {
		return err
	}
	t, err := p.target(args[0])
	if err == nil {
		err = p.merge(args[0], map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
	if err != nil {
		return err
	}
	none := metav1.DeletePropagationBackground
	return at(p.user, t.Resource, t.namespace).Delete(p.ctx, t.name, metav1.DeleteOptions{PropagationPolicy: &none})
}

// merge sends a merge patch as the user.
func (p *player) merge(name string, patch map[string]any) error {
	t, err := p.target(name)
	if err != nil {
		return err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = at(p.user, t.Resource, t.namespace).Patch(p.ctx, t.name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl"})
	return err
}

// scaleObject carries out scale KIND/NAME N
func scaleObject(p *player, args []string) error {
	if err := need(args, 2, "scale KIND/NAME N"); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return p.merge(args[0], map[string]any{"spec": map[string]any{"replicas": n}})
}

// annotateObject carries out annotate KIND/NAME KEY=VALUE, or KEY- to take it off
func annotateObject(p *player, args []string) error { return markObject(p, args, "annotations") }

// labelObject carries out label KIND/NAME KEY=VALUE, or KEY- to take it off
func labelObject(p *player, args []string) error { return markObject(p, args, "labels") }

func markObject(p *player, args []string, what string) error {
	if err := need(args, 2, "annotate|label KIND/NAME KEY=VALUE|KEY-"); err != nil {
		return err
	}
	key, value, set := strings.Cut(strings.Join(args[1:], " "), "=")
	marks := map[string]any{key: value}
	if !set {
		marks = map[string]any{strings.TrimSuffix(key, "-"): nil}
	}
	return p.merge(args[0], map[string]any{"metadata": map[string]any{what: marks}})
}

// patchObject carries out patch KIND/NAME JSON: as kubectl patch --type merge.
func patchObject(p *player, args []string) error {
	if err := need(args, 2, "patch KIND/NAME JSON"); err != nil {
		return err
	}
	patch := map[string]any{}
	if err := json.Unmarshal([]byte(strings.Join(args[1:], " ")), &patch); err != nil {
		return err
	}
	return p.merge(args[0], patch)
}

// actInMember carries out member CLUSTER apply FILE · member CLUSTER patch KIND/NAME JSON · member CLUSTER delete KIND/NAME: what somebody does there; see inMember
// for more.
func actInMember(p *player, args []string) error {
	if err := need(args, 3, "member CLUSTER apply FILE|patch KIND/NAME JSON|delete KIND/NAME"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	client := m.API.Client("somebody", nil)
	if args[1] == "apply" {
		return applyInMember(p, m, client, args[2])
	}
	t, err := p.target(args[2])
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.laws.taken[t.workload()] = time.Now() // what comes of it is not the federation's doing
	p.mu.Unlock()
	if do := inMember[args[1]]; do != nil {
		return do(p, m, client, t, args[3:])
	}
	if args[1] == "delete" {
		p.laws.foreign.unmade(p.Fleet, m, t)
		return at(client, t.Resource, t.namespace).Delete(p.ctx, t.name, metav1.DeleteOptions{})
	}
	_, err = at(client, t.Resource, t.namespace).Patch(p.ctx, t.name, types.MergePatchType, []byte(strings.Join(args[3:], " ")), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// cutProcessOff carries out cut CLUSTER PROCESS|leader|holder KIND/NAME: one process (1, 2, …) can't reach it, until it is healed.
func cutProcessOff(p *player, args []string) error {
	if err := need(args, 2, "cut CLUSTER PROCESS|leader|holder KIND/NAME"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	n, err := p.process(args[1:])
	if err == nil {
		m.Wire.Cut(n)
	}
	return err
}

// setLatency carries out slow CLUSTER DURATION
func setLatency(p *player, args []string) error {
	m, d, err := p.memberAndDuration(args, "slow CLUSTER DURATION")
	if err == nil {
		m.Wire.SetLatency(d)
	}
	return err
}

func (p *player) memberAndDuration(args []string, usage string) (*Member, time.Duration, error) {
	if err := need(args, 2, usage); err != nil {
		return nil, 0, err
	}
	m, err := p.find(args[0])
	if err != nil {
		return nil, 0, err
	}
	if args[1] == "never" {
		return m, Never, nil
	}
	d, err := time.ParseDuration(args[1])
	return m, d, err
}

// memberObjectNumber reads the arguments CLUSTER KIND/NAME N.
func (p *player) memberObjectNumber(args []string, usage string) (m *Member, t target, n int, err error) {
	if err := need(args, 3, usage); err != nil {
		return nil, t, 0, err
	}
	m, err1 := p.find(args[0])
	t, err2 := p.target(args[1])
	n, err3 := strconv.Atoi(args[2])
	return m, t, n, errors.Join(err1, err2, err3)
}

// setPodsReady carries out pods CLUSTER DURATION|never: how long pods take there to get ready. pods CLUSTER fail KIND/NAME N: so many crash.
func setPodsReady(p *player, args []string) error {
	if len(args) == 4 && args[1] == "fail" {
		m, t, n, err := p.memberObjectNumber(slices.Delete(slices.Clone(args), 1, 2), "pods CLUSTER fail KIND/NAME N")
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		m.FailPods(t.workload(), n, time.Now())
		return nil
	}
	m, d, err := p.memberAndDuration(args, "pods CLUSTER DURATION|never|fail KIND/NAME N")
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		m.SetDelay(d, time.Now())
	}
	return err
}

// setNodesStart carries out nodes CLUSTER DURATION: how long its nodes take to start when the cluster has its power again. After 75 s a real cluster itself says that their pods are not
// ready; here nobody does.
func setNodesStart(p *player, args []string) error {
	m, d, err := p.memberAndDuration(args, "nodes CLUSTER DURATION")
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		m.nodes.boot = d
	}
	return err
}

// refuseWrites carries out refuse CLUSTER KIND/NAME CODE MESSAGE…: writes of that object are answered so; NAME * is all of the kind.
func refuseWrites(p *player, args []string) error {
	if err := need(args, 4, "refuse CLUSTER KIND/NAME CODE MESSAGE"); err != nil {
		return err
	}
	m, t, code, err := p.memberObjectNumber(args, "refuse CLUSTER KIND/NAME CODE MESSAGE")
	if err != nil {
		return err
	}
	m.Wire.Refuse(Refusal{Resource: t.Resource.Resource, Name: t.name, Code: code, Message: strings.Join(args[3:], " "), Remaining: -1})
	return nil
}

// acceptWrites carries out accept CLUSTER: it refuses nothing any more.
func acceptWrites(p *player, args []string) error {
	if err := need(args, 1, "accept CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err == nil {
		m.Wire.Accept()
	}
	return err
}

// setQuota carries out quota CLUSTER N: no more than N pods are made there; 0: as many as are asked for.
func setQuota(p *player, args []string) error {
	if err := need(args, 2, "quota CLUSTER N"); err != nil {
		return err
	}
	m, err1 := p.find(args[0])
	n, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.pods.quota, m.seen = n, 0
	return nil
}

// setClock carries out clock CLUSTER DURATION: its clock is as much ahead of ours, or behind.
func setClock(p *player, args []string) error {
	if err := need(args, 2, "clock CLUSTER DURATION"); err != nil {
		return err
	}
	m, err1 := p.find(args[0])
	d, err2 := time.ParseDuration(args[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.pods.ahead = d
	return nil
}

// loseAnswers carries out lose CLUSTER N: the answers of the next N writes there are lost.
func loseAnswers(p *player, args []string) error {
	if err := need(args, 2, "lose CLUSTER N"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[1])
	m.Wire.LoseAnswers(n)
	return err
}

// crashAfterWrites carries out crash N: the federation dies after its N-th write from now, and is started again.
func crashAfterWrites(p *player, args []string) error {
	if err := need(args, 1, "crash N"); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[0])
	p.CrashAfter(n)
	return err
}

// taintCluster carries out taint CLUSTER KEY[=VALUE]:EFFECT
func taintCluster(p *player, args []string) error {
	if err := need(args, 2, "taint CLUSTER KEY[=VALUE]:EFFECT"); err != nil {
		return err
	}
	what, effect, _ := strings.Cut(args[1], ":")
	key, value, _ := strings.Cut(what, "=")
	taints, err := otherTaints(p, args[0], key)
	if err != nil {
		return err
	}
	taint := map[string]any{"key": key, "effect": effect, "timeAdded": time.Now().UTC().Format(time.RFC3339)}
	if value != "" {
		taint["value"] = value
	}
	return p.merge("cluster/"+args[0], map[string]any{"spec": map[string]any{"taints": append(taints, taint)}})
}

// untaintCluster carries out untaint CLUSTER KEY
func untaintCluster(p *player, args []string) error {
	if err := need(args, 2, "untaint CLUSTER KEY"); err != nil {
		return err
	}
	taints, err := otherTaints(p, args[0], args[1])
	if err != nil {
		return err
	}
	return p.merge("cluster/"+args[0], map[string]any{"spec": map[string]any{"taints": taints}})
}

// otherTaints are those of a cluster without those of a key.
func otherTaints(p *player, cluster, without string) ([]any, error) {
	u := p.Federation.Get(v1beta1.ClustersResource, "", cluster)
	if u == nil {
		return nil, fmt.Errorf("there is no Cluster %q", cluster)
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
	return slices.DeleteFunc(all, func(t any) bool { return t.(map[string]any)["key"] == without }), nil
}

// setDNSWeight carries out dns-weight CLUSTER N
func setDNSWeight(p *player, args []string) error {
	if err := need(args, 2, "dns-weight CLUSTER N"); err != nil {
		return err
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return p.merge("cluster/"+args[0], map[string]any{"spec": map[string]any{"dnsWeight": n}})
}

// passTime carries out wait DURATION
func passTime(p *player, args []string) error {
	if err := need(args, 1, "wait DURATION"); err != nil {
		return err
	}
	d, err := time.ParseDuration(args[0])
	p.Pass(d)
	return err
}

// settleFleet carries out settle: until nothing changes; then the laws of a settled fleet must hold.
func settleFleet(p *player, _ []string) error {
	if err := p.Settle(); err != nil {
		return errors.Join(err, p.Failures())
	}
	return errors.Join(p.Check()...)
}
