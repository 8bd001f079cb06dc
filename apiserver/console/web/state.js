// What the objects say, arranged for pages. All functions are pure: objects in, rows out. Nothing is planned here.

/** The pages, each with its key and its path. */
export const pages = [
  {key: "o", path: "", word: "Overview"},
  {key: "w", path: "workloads", word: "Workloads"},
  {key: "s", path: "services", word: "Services"},
  {key: "f", path: "failover", word: "Failover"},
  {key: "d", path: "drills", word: "Drills"},
  {key: "e", path: "events", word: "Events"},
];

const drainAnnotation = "federation.kubernetes.io/drain";
const tainted = (cluster, key) => (cluster.spec?.taints ?? []).some((t) => t.key === `federation.kubernetes.io/${key}`);

/** Returns the condition of a type, or undefined. */
export const condition = (object, type) => (object.status?.conditions ?? []).find((c) => c.type === type);

/** The states of a cluster, in the order in which they are counted: key, word, whether it is a problem. */
export const states = [
  ["serving", "serving", false],
  ["returning", "failing back", true],
  ["lost", "not ready", true],
  ["held", "failover suspended", true],
  ["out", "failed over", true],
  ["cordoned", "cordoned", false],
  ["drained", "drained", false],
];
const words = new Map(states.map(([key, word]) => [key, word]));

const phases = {GracePeriod: "lost", FailoverSuspended: "held", FailedOver: "out", FailingBack: "returning"};

/** Reports whether a cluster is drained, or is being drained, whatever else is the matter with it. */
export const isDrained = (cluster) => Boolean(cluster.spec?.drain) || tainted(cluster, "drain");

/** Reports whether a cluster gets no new replicas. */
export const isCordoned = (cluster) => tainted(cluster, "unschedulable");

function stateKey(cluster, phase) {
  if (phases[phase]) return phases[phase];
  if (condition(cluster, "Ready")?.status !== "True") return "lost";
  if (isDrained(cluster)) return "drained";
  if (isCordoned(cluster)) return "cordoned";
  return "serving";
}

/** Reports whether a drain of the cluster is still under way. */
function isDraining(cluster) {
  if (cluster.spec?.drain && cluster.status?.drain?.phase !== "Drained") return true;
  if (!tainted(cluster, "drain")) return false;
  if (!tainted(cluster, "unschedulable")) return true;
  try {
    const drain = JSON.parse(cluster.metadata.annotations?.[drainAnnotation] ?? "null");
    return Boolean(drain && !drain.empty && drain.cordoned);
  } catch {
    return false;
  }
}

/** @type {WeakMap<any, ReturnType<typeof stand>>} an object that changes is another one */
const stood = new WeakMap();

/**
 * Returns how a cluster stands.
 * @returns {{name: string, key: string, word: string, since: string | undefined, message: string, weight: number, region: string, zone: string}}
 */
export function standing(cluster) {
  let s = stood.get(cluster);
  if (!s) stood.set(cluster, (s = stand(cluster)));
  return s;
}

function stand(cluster) {
  const failover = cluster.status?.failover ?? {};
  const ready = condition(cluster, "Ready");
  const key = stateKey(cluster, failover.phase ?? "Serving");
  const share = key === "returning" ? ` ${failover.percent ?? 0} %` : "";
  const lost = key === "lost" && !phases[failover.phase];
  return {
    name: cluster.metadata.name,
    key,
    word: (key === "drained" && isDraining(cluster) ? "draining" : words.get(key)) + share,
    since: lost ? ready?.lastTransitionTime : failover.since,
    message: lost ? (ready?.message ?? "not checked yet") : (failover.message ?? ready?.message ?? ""),
    weight: cluster.spec?.dnsWeight ?? 100,
    region: cluster.status?.region ?? "",
    zone: (cluster.status?.zones ?? []).join(", "),
  };
}

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/**
 * Returns regions with their zones with their clusters, by name; what has no place is last.
 * @param {Iterable<any>} clusters
 */
export function places(clusters) {
  const regions = new Map();
  for (const one of [...clusters].map(standing).sort(byName)) {
    const zones = regions.get(one.region) ?? new Map();
    const zone = zones.get(one.zone) ?? [];
    zone.push(one);
    regions.set(one.region, zones.set(one.zone, zone));
  }
  const last = ([a], [b]) => (a === "") - (b === "") || (a < b ? -1 : 1);
  return [...regions].sort(last).map(([region, zones]) => ({
    region,
    size: [...zones.values()].reduce((n, z) => n + z.length, 0),
    zones: [...zones].sort(last).map(([zone, all]) => ({zone, clusters: all})),
  }));
}

/** Returns the zones that clusters are in, as REGION/ZONE; a cluster in several is in none alone. @param {Iterable<any>} clusters */
export const zonesOf = (clusters) => [...new Set([...clusters].map(standing).filter((c) => c.region && c.zone && !c.zone.includes(",")).map((c) => `${c.region}/${c.zone}`))].sort();

/** Returns the number of clusters in each state that at least one is in. */
export function counts(clusters) {
  const n = new Map();
  for (const c of clusters) {
    const {key} = standing(c);
    n.set(key, (n.get(key) ?? 0) + 1);
  }
  return states.filter(([key]) => n.has(key)).map(([key, word]) => ({key, word, count: n.get(key)}));
}

/** Returns the name of a zone or region that a FailoverReadiness is about, and whether its loss would be survived. */
export function readinessOf(one) {
  const survivable = condition(one, "Survivable");
  return {domain: one.spec.zone || one.spec.region, level: one.spec.zone ? "zone" : "region", ok: survivable?.status === "True", known: survivable !== undefined && survivable.status !== "Unknown",
    reason: survivable?.reason ?? "NotEvaluated", message: survivable?.message ?? "", since: survivable?.lastTransitionTime, status: one.status ?? {}};
}

/**
 * Returns how much is not well, and what has been so for longest: {kind, name, href, word, message, since, key}.
 * @param {Iterable<any>} clusters @param {any[] | undefined} readiness @param {any} status as `kubectl federation status` says it, or undefined
 * @param {number} most how many are returned
 */
export function problems(clusters, readiness, status, most) {
  const problem = new Map(states.map(([key, , bad]) => [key, bad]));
  const all = [];
  for (const s of [...clusters].map(standing)) {
    if (problem.get(s.key)) all.push({...s, kind: "cluster", cluster: s.name});
  }
  for (const r of (readiness ?? []).map(readinessOf)) {
    if (r.known && !r.ok) all.push({kind: r.level, name: r.domain, word: "would not be survived", message: r.message, since: r.since, key: "held", href: `#/failover?${r.level}=${encodeURIComponent(r.domain)}`});
  }
  for (const p of status?.dnsProviders ?? []) {
    if (!p.published) all.push({kind: "DNS provider", name: p.name, word: p.reason, message: p.message, since: p.since, key: "lost"});
  }
  for (const c of status?.components ?? []) {
    all.push({kind: "component", name: `${c.component} on ${c.host}`, word: c.running ? "restarted" : "failed", message: c.message, since: c.since, key: "lost"});
  }
  const outOfSync = status?.outOfSync ?? []; // oldest first
  for (const o of outOfSync.slice(0, most)) {
    all.push({kind: o.kind.toLowerCase(), name: o.namespace ? `${o.namespace}/${o.name}` : o.name, word: o.reason, message: o.message ?? "", since: o.since, key: "held", href: objectLink(o.kind, o.namespace, o.name)});
  }
  const at = all.map((p) => (p.since ? Date.parse(p.since) : Infinity)); // once each: they may be many
  const oldest = [...all.keys()].sort((i, j) => at[i] - at[j] || byName(all[i], all[j])).slice(0, most).map((i) => all[i]);
  return {count: all.length + Math.max(0, outOfSync.length - most), oldest};
}

/** The kinds that have pages: the word that explain takes, where they are listed, and what makes one. */
export const kinds = [
  {kind: "Deployment", resource: "deployments.apps", path: "apps/v1", plural: "deployments", make: "create deployment web --image=IMAGE --replicas=3"},
  {kind: "StatefulSet", resource: "statefulsets.apps", path: "apps/v1", plural: "statefulsets", make: "apply -f FILE"},
  {kind: "ReplicaSet", resource: "replicasets.apps", path: "apps/v1", plural: "replicasets", make: "apply -f FILE"},
  {kind: "Job", resource: "jobs.batch", path: "batch/v1", plural: "jobs", make: "create job once --image=IMAGE"},
  {kind: "DaemonSet", resource: "daemonsets.apps", path: "apps/v1", plural: "daemonsets", make: "apply -f FILE"},
];

/** The kinds by which clients reach workloads. */
export const served = [
  {kind: "Service", word: "Services", path: "v1", plural: "services", make: "expose deployment web --port=80 --type=LoadBalancer"},
  {kind: "Ingress", word: "Ingresses", path: "networking.k8s.io/v1", plural: "ingresses", make: "create ingress web --class=federation --rule='www.example.com/*=web:80'"},
];

/** Returns the link to the page of an object. */
export function objectLink(kind, namespace, name) {
  if (served.some((k) => k.kind === kind)) return `#/${kind.toLowerCase()}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const resource = kinds.find((k) => k.kind === kind)?.resource ?? kind.toLowerCase();
  return `#/workload/${encodeURIComponent(resource)}/${encodeURIComponent(namespace ?? "")}/${encodeURIComponent(name)}`;
}

/** Returns the object that a page is about: {kind, namespace, name}; {} where it is about none. */
export function objectOf({path: [page, ...rest]}) {
  if (page === "workload") return {kind: kinds.find((k) => k.resource === rest[0])?.kind ?? rest[0], namespace: rest[1], name: rest[2]};
  const kind = served.find((k) => k.kind.toLowerCase() === page)?.kind;
  return kind ? {kind, namespace: rest[0], name: rest[1]} : {};
}

const placeholders = ["cluster", "kind", "namespace", "name"];

/** The most links that are shown. */
const maxLinks = 20;

/**
 * Returns the links for what is known of a page: {text, url}, or {problem} for one that cannot be made. One that needs more than is known is left out.
 * @param {Record<string, string>} data of the ConfigMap console-links: titles with URL templates @param {Record<string, string>} known by placeholder
 */
export function linksOf(data, known) {
  const all = [];
  for (const [key, value] of Object.entries(data).sort()) {
    const [, text, template] = /^\s*(\S.*?)\s+(https?:\/\/\S+)\s*$/i.exec(value) ?? [];
    const names = [...(template ?? "").matchAll(/\{(\w*)\}/g)].map(([, name]) => name);
    const strange = names.find((name) => !placeholders.includes(name));
    if (!template) all.push({problem: `${key}: ${JSON.stringify(value)} must be a title and a URL, as Grafana https://grafana.example.com/d/x?var-name={name}`});
    else if (strange !== undefined) all.push({problem: `${key}: {${strange}} must be {cluster}, {kind}, {namespace} or {name}`});
    else if (names.every((name) => known[name]) && (!known.cluster || names.includes("cluster"))) all.push({text, url: template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(known[name]))});
  }
  return all.slice(0, maxLinks);
}

/** Returns the drill that is under way, or undefined. */
export const runningDrill = (drills) => [...drills].find((d) => !["", "Pending", "Finished"].includes(d.status?.phase ?? ""));

/**
 * Takes a hash apart: "#/workload/a/b?show=c" is {path: ["workload", "a", "b"], query: {show: "c"}}.
 * @param {string} hash
 */
export function route(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const decoded = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return {path: decoded, query: Object.fromEntries(new URLSearchParams(query))};
}

/** Returns the hash of a route, with some of its query changed; "" and undefined remove. */
export function hashOf({path, query}, changes = {}) {
  const q = new URLSearchParams(Object.entries({...query, ...changes}).filter(([, v]) => v));
  return `#/${path.map(encodeURIComponent).join("/")}${q.size ? `?${q}` : ""}`;
}
