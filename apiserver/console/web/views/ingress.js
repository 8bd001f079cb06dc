// How the federation's load balancers serve an Ingress: what `kubectl federation explain ingress/NAME` says.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, objectOf} from "../state.js";
import {answered, badge, bar, cli, empty, failure, links, since, table, title} from "./parts.js";
import {explainCommand, explanation} from "./workload.js";

const share = html`<span class="hidden">Share</span>`; // as a bar
const heads = (words) => words.map((word) => html`<th scope="col" class=${word === "Share" ? "n" : word === share ? "wide" : ""}>${word}</th>`);
const clusterLink = (state, name) => html`<a href=${hashOf(state.route, {show: name})}>${name}</a>`;

const hostOf = (r) => (r.host ? html`<span class="mono datum">${r.host}</span>` : r.ownHostsOnly ? "all hosts of the namespace" : "hosts that nobody has");

/** The page of a Service, by NAMESPACE/SERVICE:PORT. */
function poolLink(name) {
  const [namespace, service] = name.split(/[/:]/);
  return html`<a href=${hashOf({path: ["service", namespace, service], query: {}})}>${name}</a>`;
}

const routeRow = (r) => html`<tr><th scope="row">${hostOf(r)}</th><td>${r.passthrough ? html`<span class="kind">TLS, passed on</span>` : r.pathType ? html`<span class="mono">${r.path}</span> <span class="kind">${r.pathType}</span>` : html`<span class="kind">default backend</span>`}</td>
  <td>${r.secret ?? html`<span class="hint">none</span>`}</td><td>${r.pool ? poolLink(r.pool) : badge("out", r.passthrough ? "there is no such backend" : "503: there is no such backend")}</td></tr>`;

const targetRow = (state, t) => html`<tr><th scope="row">${clusterLink(state, t.cluster)}</th><td class="n">${t.address ? `${t.percent.toFixed(1)} %` : "–"}</td><td class="wide">${t.address ? bar(t.percent, 100) : nothing}</td>
  <td class="mono">${t.address ?? ""}</td><td class="why">${t.why}</td></tr>`;

function shares(state, pool, from) {
  const by = from.loadBalancers?.length ? html` <span class="kind">by ${from.loadBalancers.join(", ")}</span>` : nothing;
  const head = ["Cluster", "Share", share, "Address", "Why"];
  return html`<h3>${pool.name} <span class="kind">${pool.protocol}</span>${by}</h3>
    ${from.targets.length ? table(`${pool.protocol === "tls" ? "Connections" : "Requests"} to ${pool.name}`, heads(head), from.targets.map((t) => targetRow(state, t))) : empty("No cluster has it.")}
    ${(from.notes ?? []).map((n) => html`<p class="remark">${n}</p>`)}`;
}

const balancerRow = (state, b) => html`<tr><th scope="row">${b.name}</th><td><span class="datum">${[b.region, b.zone].filter(Boolean).join("/") || "not known"}</span></td>
  <td class="mono">${(b.addresses ?? []).join(" ")}</td><td>${b.alive ? badge(b.published ? "serving" : "held", b.published ? "serves" : "not in DNS yet") : badge("lost", "away")}${b.problem ? html`<p class="why">${b.problem}</p>` : nothing}</td><td>${since(b.renewed, state.now)}</td></tr>`;

/** What is said of the routes of an Ingress. @param {any} state @param {any} r */
export function routes(state, r) {
  if (r.notServed) return empty("The federation's load balancers do not serve it.", r.notServed);
  return html`${(r.problems ?? []).map((p) => html`<p class="remark">${p}</p>`)}
    ${r.routes?.length ? html`<h2>Hosts and paths</h2>${table("Hosts and paths", heads(["Host", "Path", "Certificate", "Goes to"]), r.routes.map(routeRow))}` : nothing}
    ${r.pools?.length ? html`<h2>Where requests go</h2>${r.pools.map((p) => p.from.map((from) => shares(state, p, from)))}` : nothing}
    ${r.loadBalancers?.length ? html`<h2>Load balancers of the federation</h2>${table("Load balancers", heads(["Name", "Place", "Addresses", "State", "Seen"]), r.loadBalancers.map((b) => balancerRow(state, b)))}` : nothing}
    ${(r.unknown ?? []).map((u) => html`<p class="hint">Not known, as you may not read it: ${u}</p>`)}`;
}

/** The page of an Ingress, #/ingress/NAMESPACE/NAME. */
export function ingress(state) {
  const [, namespace = "", name = ""] = state.route.path;
  return html`${title(html`<span class="kind">Ingress </span>${namespace}/${name}`)}
    ${cli(explainCommand(`ingress/${name}`, namespace), state.act.copy)}${links(state, objectOf(state.route))}
    ${answered(state.store.page, "how it is served", (x) => html`${x.routes ? routes(state, x.routes) : nothing}<h2>Where it is</h2>${explanation(state, x)}`)}`;
}

/** The Services that an Ingress sends requests to. */
const backends = (i) => [i.spec.defaultBackend, ...(i.spec.rules ?? []).flatMap((rule) => (rule.http?.paths ?? []).map((p) => p.backend))].map((b) => b?.service?.name);

/** The Ingresses in front of a Service. @param {{items: any[]} | undefined} list of its namespace @param {Error | undefined} error */
export function inFront(list, error, name) {
  const found = (list?.items ?? []).filter((i) => backends(i).includes(name));
  if (!found.length) return error && error.code !== 403 ? failure(error) : nothing;
  const hosts = (i) => [...new Set((i.spec.rules ?? []).map((rule) => rule.host || "any host"))];
  return html`<h2>Ingresses in front of it</h2>${table("Ingresses", heads(["Ingress", "Class", "Hosts"]), found.map((i) => html`<tr><th scope="row"><a href=${hashOf({path: ["ingress", i.metadata.namespace, i.metadata.name], query: {}})}>${i.metadata.name}</a></th>
    <td>${i.spec.ingressClassName ?? html`<span class="hint">none</span>`}</td><td class="mono">${hosts(i).join(" ")}</td></tr>`))}`;
}
