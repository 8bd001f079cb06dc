package fleettest

import (
	"encoding/base64"
	"fmt"
	"strings"
)

const workloadText = `apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {%s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {%[7]scontainers: [{name: web, image: "web:%[5]d"%[6]s}]}
`

const daemonSetText = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {%[4]scontainers: [{name: web, image: "web:%[2]d"%[3]s}]}
`

const jobText = `apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  parallelism: %d
  template: {spec: {restartPolicy: Never, %scontainers: [{name: work, image: "work:1"%s}]}}
`

// indexed is what the Jobs of every other name have besides.
const indexed = "  completions: 40\n  completionMode: Indexed\n"

// claims is what the StatefulSets of every third name have besides: volumes of their cluster.
const claims = "  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"

const autoscalerText = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %s}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}, minReplicas: %d, maxReplicas: %d}
`

const (
	configMapText = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {n: \"%s\"}\n"
	secretText    = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata: {n: \"%s\"}\n"
	accountText   = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}\n%s"
	serviceText   = "apiVersion: v1\nkind: Service\nmetadata: {name: %s, annotations: {%s}}\nspec: {type: LoadBalancer, selector: {app: %[1]s}, ports: [{port: 80}]}\n"
	namespaceText = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	inShopText    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\ndata: {n: \"%d\"}\n"
	widgetText    = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {n: %d}\n"
	definedText   = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true}]
`
	widgetsText = `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: widgets, namespace: default}
spec:
  resourceSelectors: [{apiVersion: example.com/v1, kind: Widget}]
`
)

// drawKind draws a kind.
func drawKind(r *Random) string {
	var all []string
	for _, k := range kinds {
		for range k.often {
			if r.swarm[k.short] {
				all = append(all, k.short)
			}
		}
	}
	return all[r.chance.IntN(len(all))]
}

// createOrChangeObject makes an object of some kind or changes it, perhaps one that was deleted a moment ago.
func createOrChangeObject(r *Random) error {
	number := r.chance.IntN(12)
	name, short := fmt.Sprintf("o%d", number), drawKind(r)
	var text string
	switch short {
	case "cm":
		text = fmt.Sprintf(configMapText, name, fmt.Sprint(r.made))
	case "secret":
		text = fmt.Sprintf(secretText, name, base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(r.made))))
	case "sa":
		pull := ""
		if r.chance.IntN(2) == 0 {
			pull = fmt.Sprintf("imagePullSecrets: [{name: o%d}]\n", r.chance.IntN(12))
		}
		text = fmt.Sprintf(accountText, name, pull)
	case "svc":
		if of, ok := r.object("rs", "deploy", "sts"); ok && strings.Count(of, "/") == 1 { // of a workload, if there is one: else it serves nothing
			_, name, _ = strings.Cut(of, "/")
		}
		text = fmt.Sprintf(serviceText, name, drawAnnotations(r, short))
	case "ds":
		text = fmt.Sprintf(daemonSetText, name, 1+r.chance.IntN(3), drawReference(r), drawAccount(r))
	case "job":
		text = fmt.Sprintf(jobText, name, 1+r.chance.IntN(30), drawAccount(r), drawReference(r))
		switch number % 3 {
		case 0:
			text += indexed
		case 1:
			text += "  completions: 30\n"
		}
	case "hpa":
		least := 1 + r.chance.IntN(3)
		text = fmt.Sprintf(autoscalerText, name, least, least+r.chance.IntN(10))
	case "widgets":
		return applyWidget(r, name)
	case "ns":
		return applyInShop(r, name)
	default:
		kind := map[string]string{"rs": "ReplicaSet", "deploy": "Deployment", "sts": "StatefulSet"}[short]
		text = fmt.Sprintf(workloadText, kind, name, drawAnnotations(r, short), 1+r.chance.IntN(30), 1+r.chance.IntN(3), drawReference(r), drawAccount(r))
		if short == "sts" && number%3 == 2 {
			text += claims
		}
	}
	return r.apply(short+"/"+name, text)
}

// drawReference is what a pod refers to.
func drawReference(r *Random) string {
	if r.chance.IntN(2) == 0 {
		return ""
	}
	kind := "configMapRef"
	if r.swarm["secret"] && r.chance.IntN(2) == 0 {
		kind = "secretRef"
	}
	return fmt.Sprintf(", envFrom: [{%s: {name: o%d}}]", kind, r.chance.IntN(12))
}

// drawAccount is the ServiceAccount of a pod.
func drawAccount(r *Random) string {
	if !r.swarm["sa"] || r.chance.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf("serviceAccountName: o%d, ", r.chance.IntN(12))
}

// applyWidget makes an object of a custom kind, with the definition and the policy that it takes.
func applyWidget(r *Random, name string) error {
	for _, first := range [][2]string{{"crd/widgets.example.com", definedText}, {"policy/widgets", widgetsText}} {
		if !r.objects[first[0]] {
			return r.apply(first[0], first[1])
		}
	}
	return r.apply("widgets/"+name, fmt.Sprintf(widgetText, name, r.made))
}

// applyInShop makes an object in a namespace, which some members may have already.
func applyInShop(r *Random, name string) error {
	if !r.objects["ns/shop"] {
		return r.apply("ns/shop", namespaceText)
	}
	return r.apply("cm/shop/"+name, fmt.Sprintf(inShopText, name, r.made))
}

// apply applies an object. One that is on its way out goes all the same.
func (r *Random) apply(name, text string) error {
	r.age(name)
	r.made++
	file := fmt.Sprintf("%d.yaml", r.made)
	r.player.files[file] = text
	r.latest[name] = r.made
	if err := r.do("apply %s", file); err != nil {
		return err
	}
	t, err := r.player.target(name)
	if err != nil {
		return err
	}
	u := r.player.Federation.Get(t.GroupVersionResource, t.namespace, t.name)
	r.objects[name] = u != nil && u.GetDeletionTimestamp() == nil
	return nil
}

func drawAnnotations(r *Random, short string) string {
	key := map[string]string{"rs": "replica-set-preferences", "deploy": "deployment-preferences"}[short]
	if short == "svc" && r.chance.IntN(4) == 0 {
		return fmt.Sprintf(`federation.alpha.kubernetes.io/cluster-selector: '[{"key": "tier", "operator": "In", "values": ["%s"]}]'`, []string{"east", "west"}[r.chance.IntN(2)])
	}
	if key == "" || r.chance.IntN(2) == 0 {
		return ""
	}
	weights := `"*": {"weight": 1}`
	if r.chance.IntN(3) == 0 {
		weights = fmt.Sprintf(`"east-a": {"weight": 2, "minReplicas": 2}, "*": {"weight": 1, "maxReplicas": %d}`, 5+r.chance.IntN(20))
	}
	return fmt.Sprintf(`federation.kubernetes.io/%s: '{"rebalance": %t, "clusters": {%s}}'`, key, r.chance.IntN(2) == 0, weights)
}

const policyText = `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: p, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: ReplicaSet}
  - {apiVersion: apps/v1, kind: Deployment, names: [o1, o2, o3, o4]}
  - {apiVersion: apps/v1, kind: StatefulSet, names: [o1, o2, o3, o4]}
  - {apiVersion: apps/v1, kind: DaemonSet}
  - {apiVersion: v1, kind: ConfigMap, names: [o1, o2, o3]}
  - {apiVersion: v1, kind: Service, names: [o1, o2, o3, o4, o5, o6]}
  clusters: {regions: [%s]}
  spreadConstraints: [{spreadBy: Cluster, minGroups: %d}]
  tolerations: [{key: example.com/t, operator: Exists}]
%s`

// furthers are what policies may say besides.
var furthers = []string{
	"", "", "  propagateReferences: true\n", "  rollout: {strategy: OneClusterAtATime}\n", "  rollout: {strategy: OneClusterAtATime, order: [west-a], paused: true}\n",
	"  failover: {disabled: true}\n", "  failover: {gracePeriodSeconds: 90, failback: Immediate}\n", "  failover: {failback: Never}\n",
	"  replicaPreferences: {rebalance: true, clusters: {east-a: {weight: 3}, \"*\": {weight: 1}}}\n  priority: 5\n",
	"  workloadAffinity: Required\n",
}

// changePolicy makes, changes or deletes the one policy.
func changePolicy(r *Random) error {
	if r.objects["policy/p"] && r.chance.IntN(2) == 0 {
		return r.delete("policy/p", "")
	}
	regions := []string{"east", "west", "east, west"}[r.chance.IntN(3)]
	return r.apply("policy/p", fmt.Sprintf(policyText, regions, 1+r.chance.IntN(3), furthers[r.chance.IntN(len(furthers))]))
}
