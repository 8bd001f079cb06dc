package mcs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a namespace in all clusters, with a client pod in each.
type world struct {
	*testing.T
	clusters  []string
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clusters: strings.Fields(os.Getenv("MEMBERS")), namespace: fmt.Sprintf("mcs-%d", rand.Uint32())}
	if len(w.clusters) < 2 {
		t.Skip("MEMBERS names no clusters: make e2e-mcs does")
	}
	for _, c := range w.clusters {
		w.apply(c, "{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+"}}")
		t.Cleanup(func() { _, _ = w.run(c, "", "delete", "namespace", w.namespace, "--wait=false") })
	}
	return w
}

// run runs kubectl in the namespace of a cluster, and returns what it printed.
func (w *world) run(cluster, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", append([]string{"--context", cluster, "-n", w.namespace}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, problem.String())
	}
	return out.String(), nil
}

func (w *world) apply(cluster, text string) {
	w.Helper()
	if _, err := w.run(cluster, "---\n"+text, "apply", "-f", "-"); err != nil { // else kubectl takes a flow mapping for JSON
		w.Fatalf("%s: %v", cluster, err)
	}
}

// service is the Service hello, with the fields that are given beside type, selector and ports.
func (w *world) service(cluster, fields string, ports ...string) {
	w.Helper()
	var list []string
	for _, p := range ports {
		name, number, _ := strings.Cut(p, ":")
		number, protocol, _ := strings.Cut(number, "/")
		list = append(list, fmt.Sprintf("{name: %s, port: %s, protocol: %s, targetPort: 8080}", name, number, cmp.Or(protocol, "TCP")))
	}
	w.apply(cluster, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: hello, labels: {own: label}, annotations: {own: annotation}}, spec: {selector: {app: hello}, %s ports: [%s]}}`, fields, strings.Join(list, ", ")))
}

// export exports hello; spec may be empty.
func (w *world) export(cluster, spec string) {
	w.Helper()
	w.apply(cluster, "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: hello}, spec: {"+spec+"}}")
}

func (w *world) unexport(cluster string) {
	w.Helper()
	if _, err := w.run(cluster, "", "delete", "serviceexport", "hello"); err != nil {
		w.Fatal(err)
	}
}

const podSpec = `{terminationGracePeriodSeconds: 1, containers: [{name: pod, image: "local/pod:1", args: [web], readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}, env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]}`

// pods starts pods of hello: a Deployment, or a StatefulSet, whose pods have host names.
func (w *world) pods(cluster, kind string, replicas int) {
	w.Helper()
	more := ""
	if kind == "StatefulSet" {
		more = "serviceName: hello, "
	}
	w.apply(cluster, fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: hello}, spec: {%sreplicas: %d, selector: {matchLabels: {app: hello}}, template: {metadata: {labels: {app: hello}}, spec: %s}}}`, kind, more, replicas, podSpec))
}

// clients starts the client pods, and waits for them.
func (w *world) clients() {
	w.Helper()
	for _, c := range w.clusters {
		w.apply(c, `{apiVersion: v1, kind: Pod, metadata: {name: client}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: client, image: "nicolaka/netshoot:v0.15", command: [sleep, "3600"]}]}}`)
	}
	for _, c := range w.clusters {
		if _, err := w.run(c, "", "wait", "pod/client", "--for=condition=Ready", "--timeout=25s"); err != nil {
			w.Fatal(err)
		}
	}
}

// is waits until a field of an object is as wanted.
func (w *world) is(cluster, object, path, want string) {
	w.Helper()
	w.eventually(func() string {
		if got, err := w.run(cluster, "", "get", object, "-o", "jsonpath="+path); err != nil || got != want {
			return fmt.Sprintf("%s: %s of %s is %q, want %q: %v", cluster, path, object, got, want, err)
		}
		return ""
	})
}

func (w *world) eventually(check func() string) {
	w.Helper()
	last := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if last = check(); last == "" {
			return
		}
	}
	w.Fatal(last)
}

// gone waits until no cluster has an import.
func (w *world) gone() {
	w.Helper()
	for _, c := range w.clusters {
		w.eventually(func() string {
			if out, err := w.run(c, "", "get", "serviceimports,endpointslices", "-l", "federation.kubernetes.io/managed-by", "-o", "name"); err != nil || out != "" {
				return fmt.Sprintf("%s has %s still: %v", c, out, err)
			}
			return ""
		})
	}
}

func (w *world) imported(path, want string) {
	w.Helper()
	for _, c := range w.clusters {
		w.is(c, "serviceimport/hello", path, want)
	}
}

// conflict waits until the exports of two clusters say so.
func (w *world) conflict(reason string) {
	w.Helper()
	for _, c := range w.clusters[:2] {
		w.is(c, "serviceexport/hello", `{.status.conditions[?(@.type=="Conflict")].status}{" "}{.status.conditions[?(@.type=="Conflict")].reason}`, "True "+reason)
	}
}

// second exports hello from the second cluster, later than from the first. The age of an object is in seconds.
func (w *world) second(spec, fields string, ports ...string) {
	w.Helper()
	w.imported("{.metadata.name}", "hello")
	time.Sleep(1100 * time.Millisecond)
	w.service(w.clusters[1], fields, ports...)
	w.export(w.clusters[1], spec)
}

// name is what clients call hello.
func (w *world) name() string { return "hello." + w.namespace + ".svc.clusterset.local" }

// answers waits until a client in each cluster gets so many answers in a row at a port from these clusters only, and at least one of each.
func (w *world) answers(port int, from ...string) {
	w.Helper()
	for _, c := range w.clusters {
		w.answersIn(c, port, from...)
	}
}

func (w *world) answersIn(c string, port int, from ...string) {
	w.Helper()
	w.eventually(func() string {
		seen := map[string]bool{}
		for range 10 {
			out, _ := w.run(c, "", "exec", "client", "--", "sh", "-c", fmt.Sprintf(`printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 2 %s %d`, w.name(), port)) // what it printed tells
			i := strings.LastIndex(out, " on ")
			if i < 0 {
				return fmt.Sprintf("a client in %s is answered %q at port %d", c, out, port)
			}
			seen[strings.TrimSuffix(strings.TrimSpace(out[i+4:]), "-node-1")] = true
		}
		for cluster := range seen {
			if !slices.Contains(from, cluster) {
				return fmt.Sprintf("a client in %s is answered by %s at port %d, want %v", c, cluster, port, from)
			}
		}
		if len(seen) < len(from) {
			return fmt.Sprintf("a client in %s is answered by %v only at port %d, want %v", c, seen, port, from)
		}
		return ""
	})
}

// lookup waits until a client in each cluster gets these answers to a question, in any order.
func (w *world) lookup(kind, name string, want ...string) {
	w.Helper()
	for _, c := range w.clusters {
		w.lookupIn(c, kind, name, want...)
	}
}

func (w *world) lookupIn(cluster, kind, name string, want ...string) {
	w.Helper()
	w.eventually(func() string {
		out, _ := w.run(cluster, "", "exec", "client", "--", "nslookup", "-type="+kind, name+".") // it fails where the name is not there
		var got []string
		_, answer, _ := strings.Cut(out, "#53") // behind what the server is
		for _, line := range strings.Split(answer, "\n") {
			if _, address, is := strings.Cut(line, "Address: "); is {
				got = append(got, strings.TrimSpace(address))
			}
			if _, target, is := strings.Cut(line, "service = "); is {
				got = append(got, strings.TrimSuffix(strings.TrimSpace(target), "."))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("%s: %s %s is %q, want %q: %s", cluster, kind, name, got, want, out)
		}
		return ""
	})
}

// fields returns a field of all objects of a kind, once there are so many.
func (w *world) fields(cluster string, count int, path string, args ...string) (all []string) {
	w.Helper()
	w.eventually(func() string {
		out, err := w.run(cluster, "", append([]string{"get"}, append(args, "-o", "jsonpath="+path)...)...)
		if all = strings.Fields(out); err != nil || len(all) != count {
			return fmt.Sprintf("%s: %v are %q: %v", cluster, args, all, err)
		}
		return ""
	})
	return all
}

// plain are fields of a Service as the suite has it.
const plain = "sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}},"

func inParallel(t *testing.T, clauses map[string]func(w *world)) {
	for name, clause := range clauses {
		t.Run(name, func(t *testing.T) { t.Parallel(); clause(newWorld(t)) })
	}
}

func TestImports(t *testing.T) {
	inParallel(t, map[string]func(w *world){
		"an import exists as long as a cluster exports": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			w.second("", plain, "tcp:80")
			w.imported("{.status.clusters[*].cluster}", strings.Join(w.clusters[:2], " "))
			w.unexport(w.clusters[0])
			w.imported("{.status.clusters[*].cluster}", w.clusters[1])
			w.unexport(w.clusters[1])
			w.gone()
		},
		"only exported labels and annotations are imported": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "exportedLabels: {a: l}, exportedAnnotations: {a: m}")
			w.imported("{.metadata.labels.a}{.metadata.annotations.a}{.metadata.labels.own}{.metadata.annotations.own}", "lm")
		},
		"conflicting labels and annotations": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "exportedLabels: {a: l}, exportedAnnotations: {a: m}")
			w.second("exportedLabels: {b: l}, exportedAnnotations: {b: m}", plain, "tcp:80")
			w.conflict("AnnotationsConflict,LabelsConflict")
			w.imported("{.metadata.labels.a}{.metadata.annotations.a}{.metadata.labels.b}{.metadata.annotations.b}", "lm")
		},
		"a ClusterIP Service is of type ClusterSetIP, and unexporting ends its imports": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			w.is(w.clusters[0], "serviceexport/hello", `{.status.conditions[?(@.type=="Valid")].status}`, "True")
			w.imported("{.spec.type}", "ClusterSetIP")
			w.unexport(w.clusters[0])
			w.gone()
		},
	})
}

func TestFieldsOfImports(t *testing.T) {
	inParallel(t, map[string]func(w *world){
		"session affinity": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			w.imported("{.spec.sessionAffinity} {.spec.sessionAffinityConfig.clientIP.timeoutSeconds}", "ClientIP 10")
		},
		"internal traffic policy": func(w *world) {
			w.service(w.clusters[0], "internalTrafficPolicy: Cluster,", "tcp:80")
			w.export(w.clusters[0], "")
			w.imported("{.spec.internalTrafficPolicy}", "Cluster")
		},
		"traffic distribution": func(w *world) {
			w.service(w.clusters[0], "trafficDistribution: PreferClose,", "tcp:80")
			w.export(w.clusters[0], "")
			w.imported("{.spec.trafficDistribution}", "PreferClose")
		},
		"an address of each family": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			for _, c := range w.clusters {
				both := w.fields(c, 2, "{.spec.ips[*]} {.spec.ipFamilies[*]}", "serviceimport/hello")
				if a, err := netip.ParseAddr(both[0]); err != nil || a.Is4() != (both[1] == "IPv4") {
					w.Errorf("%s: %v", c, both)
				}
			}
		},
		"ports": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80", "udp:80/UDP")
			w.export(w.clusters[0], "")
			w.imported("{range .spec.ports[*]}{.name}:{.port}/{.protocol} {end}", "tcp:80/TCP udp:80/UDP ")
		},
	})
}

func TestConflictsAndTypes(t *testing.T) {
	inParallel(t, map[string]func(w *world){
		"the union of ports is a conflict": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			w.second("", plain, "tcp:80", "stcp:142/SCTP")
			w.conflict("PortConflict")
			w.imported("{range .spec.ports[*]}{.name}:{.port}/{.protocol} {end}", "tcp:80/TCP stcp:142/SCTP ")
		},
		"conflicting ports": func(w *world) {
			w.service(w.clusters[0], plain, "tcp:80")
			w.export(w.clusters[0], "")
			w.second("", plain, "tcp:81")
			w.conflict("PortConflict")
			w.imported("{range .spec.ports[*]}{.name}:{.port}/{.protocol} {end}", "tcp:80/TCP ")
		},
		"a headless Service is of type Headless, without address": func(w *world) {
			w.service(w.clusters[0], "clusterIP: None,", "tcp:80")
			w.export(w.clusters[0], "")
			w.imported("{.spec.type}{.spec.ips}", "Headless")
			w.unexport(w.clusters[0])
			w.gone()
		},
		"no address for a headless Service later": func(w *world) {
			w.service(w.clusters[0], "clusterIP: None,", "tcp:80")
			w.export(w.clusters[0], "")
			w.imported("{.metadata.name}", "hello")
			time.Sleep(5 * time.Second)
			w.imported("{.spec.ips}", "")
		},
		"an ExternalName Service is not exported": func(w *world) {
			w.service(w.clusters[0], "type: ExternalName, externalName: example.com,", "tcp:80")
			w.export(w.clusters[0], "")
			w.is(w.clusters[0], "serviceexport/hello", `{.status.conditions[?(@.type=="Valid")].status} {.status.conditions[?(@.type=="Valid")].reason}`, "False InvalidServiceType")
			w.gone()
		},
		"conflicting headlessness": func(w *world) {
			w.service(w.clusters[0], "", "tcp:80")
			w.export(w.clusters[0], "")
			w.second("", "clusterIP: None,", "tcp:80")
			w.conflict("TypeConflict")
			w.imported("{.spec.type}", "ClusterSetIP")
		},
	})
}

func TestConnections(t *testing.T) {
	withClients(t, map[string]func(w *world){
		"what is not exported is not reached": func(w *world) {
			for _, c := range w.clusters {
				for range 5 {
					if out, _ := w.run(c, "", "exec", "client", "--", "sh", "-c", "echo | nc -w 2 "+w.name()+" 80"); strings.Contains(out, " on ") { // it fails
						w.Fatalf("%s: %s", c, out)
					}
				}
			}
		},
		"what is exported is reached by its name": func(w *world) {
			w.export(w.clusters[0], "")
			w.answers(80, w.clusters[0])
		},
		"a Service that one of two clusters exports": func(w *world) {
			w.service(w.clusters[1], "", "tcp:80")
			w.pods(w.clusters[1], "Deployment", 1)
			w.export(w.clusters[0], "")
			w.answers(80, w.clusters[0])
		},
		"one name of a port with two numbers": func(w *world) {
			w.export(w.clusters[0], "")
			w.pods(w.clusters[1], "Deployment", 1)
			w.second("", "", "tcp:4242")
			w.answers(80, w.clusters[0])
		},
		"two names with two numbers": func(w *world) {
			w.export(w.clusters[0], "")
			w.pods(w.clusters[1], "Deployment", 1)
			w.second("", "", "tcp2:4242")
			w.answers(80, w.clusters[0])
			w.answers(4242, w.clusters[1])
		},
		"two clusters that export answer both": func(w *world) {
			w.export(w.clusters[0], "")
			w.pods(w.clusters[1], "Deployment", 1)
			w.second("", "", "tcp:80")
			w.answers(80, w.clusters[0], w.clusters[1])
		},
	})
}

// TestClusterSelectors is about KEP-5939, which the suite has nothing of.
func TestClusterSelectors(t *testing.T) {
	withClients(t, map[string]func(w *world){
		"the cluster that a selector selects answers, as long as it has a ready pod": func(w *world) {
			spec := fmt.Sprintf(`exportedAnnotations: {federation.kubernetes.io/cluster-selectors: '[{"propertySelector": {"matchProperties": {"cluster.clusterset.k8s.io": %q}}}]'}`, w.clusters[1])
			w.export(w.clusters[0], spec)
			w.pods(w.clusters[1], "Deployment", 1)
			w.second(spec, "", "tcp:80")
			w.answers(80, w.clusters[1])
			w.pods(w.clusters[1], "Deployment", 0)
			w.answers(80, w.clusters[0])
		},
		"by a selector of the importing cluster its own pods answer, and others where it has none": func(w *world) {
			const spec = `exportedAnnotations: {federation.kubernetes.io/cluster-selectors: '[{"propertySelector": {"matchProperties": {"cluster.clusterset.k8s.io": "@SameAsImporter@"}}}]'}`
			w.export(w.clusters[0], spec)
			w.pods(w.clusters[1], "Deployment", 1)
			w.second(spec, "", "tcp:80")
			w.answersIn(w.clusters[0], 80, w.clusters[0])
			w.answersIn(w.clusters[1], 80, w.clusters[1])
			w.is(w.clusters[1], "serviceimport/hello", `{.metadata.annotations.federation\.kubernetes\.io/cluster-selector-results}`, fmt.Sprintf(`[[%q]]`, w.clusters[1]))
			if len(w.clusters) > 2 {
				w.answersIn(w.clusters[2], 80, w.clusters[0], w.clusters[1])
			}
		},
	})
}

// withClients runs clauses one after another, each with a client in each cluster, and Service and pod in the first.
func withClients(t *testing.T, clauses map[string]func(w *world)) {
	for name, clause := range clauses {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.service(w.clusters[0], "", "tcp:80")
			w.pods(w.clusters[0], "Deployment", 1)
			w.clients()
			clause(w)
		})
	}
}

func TestSlices(t *testing.T) {
	w := newWorld(t)
	w.service(w.clusters[0], "", "tcp:80")
	w.pods(w.clusters[0], "Deployment", 1)
	w.export(w.clusters[0], "")
	for _, c := range w.clusters {
		got := w.fields(c, 3, `{range .items[*]}{.metadata.labels.endpointslice\.kubernetes\.io/managed-by} {.metadata.labels.multicluster\.kubernetes\.io/source-cluster} {.endpoints[*].addresses[0]} {end}`,
			"endpointslices", "-l", "multicluster.kubernetes.io/service-name=hello")
		if got[0] == "endpointslice-controller.k8s.io" || got[1] != w.clusters[0] {
			t.Errorf("%s: %v", c, got)
		}
	}
	w.unexport(w.clusters[0])
	w.gone()
}

func TestNames(t *testing.T) {
	t.Run("headless", func(t *testing.T) {
		w := newWorld(t)
		w.service(w.clusters[0], "clusterIP: None,", "tcp:80")
		w.pods(w.clusters[0], "StatefulSet", 2)
		w.clients()
		w.export(w.clusters[0], "")
		pods := w.fields(w.clusters[0], 2, "{.items[*].status.podIP}", "pods", "-l", "app=hello")
		w.lookup("A", w.name(), pods...)
		var targets []string
		for i, address := range pods {
			host := fmt.Sprintf("hello-%d.%s.%s", i, w.clusters[0], w.name())
			w.lookup("A", host, address)
			targets = append(targets, "0 50 8080 "+host) // the pods' own port, as that of any headless Service
		}
		w.lookup("SRV", w.name(), targets...)
		w.lookup("A", w.clusters[0]+"."+w.name())
	})
	t.Run("ClusterIP", func(t *testing.T) {
		w := newWorld(t)
		w.service(w.clusters[0], "", "tcp:80")
		w.clients()
		w.export(w.clusters[0], "")
		for _, c := range w.clusters {
			w.lookupIn(c, "A", w.name(), w.fields(c, 1, "{.spec.ips[*]}", "serviceimport/hello")...)
		}
		w.lookup("SRV", w.name(), "0 100 80 "+w.name())
		local := "hello." + w.namespace + ".svc.cluster.local"
		w.lookupIn(w.clusters[0], "A", local, w.fields(w.clusters[0], 1, "{.spec.clusterIPs[*]}", "service/hello")...)
		w.lookupIn(w.clusters[1], "A", local)
	})
}
