// What the names of a Service answer, and why: what `kubectl federation dns` says, and where the Service is.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, objectOf} from "../state.js";
import {quoted} from "../words.js";
import {answered, badge, cli, empty, failure, glyph, links, since, table, title} from "./parts.js";
import {inFront} from "./ingress.js";
import {explainCommand, explanation} from "./workload.js";

const data = (words) => html`<span class="mono">${words.map((w) => html`<span class="datum">${w}</span> `)}</span>`;

const variant = (v) => html`<p class="variant">${v.region ? `near ${v.region}` : nothing} ${v.weight ? `weight ${v.weight}` : nothing} ${data(v.data)}</p>`;

/** The rows of a name: its answers, and how its clusters stand, beside or, where there is no room, below. */
function answers(state, n) {
  const standing = n.clusters.map((c) => html`<span class="stand" title=${c.why}>${glyph(c.given ? "ok" : "out")} <a href=${hashOf(state.route, {show: c.name})}>${c.name}</a><span class="why">${c.why}</span></span>`);
  const rows = n.answers?.length
    ? n.answers.map((a, i) => html`<th scope="row" class="mono">${i ? html`<span class="hidden">${n.name}</span>` : n.name}</th><td>${i ? nothing : n.level}</td><td>${a.type}</td>
      <td>${data(a.data)}${a.oneOf?.length ? html`<details><summary>one of ${a.oneOf.length}</summary>${a.oneOf.map(variant)}</details>` : nothing}</td><td class="n">${a.ttlSeconds}</td>`)
    : [html`<th scope="row" class="mono">${n.name}</th><td>${n.level}</td><td colspan="3">${badge("out", "answers nothing")}</td>`];
  if (state.narrow) return html`${rows.map((r) => html`<tr class="above">${r}</tr>`)}<tr><td colspan="5">${standing}</td></tr>`;
  return rows.map((r, i) => html`<tr>${r}<td>${i ? nothing : standing}</td></tr>`);
}

function names(state, view) {
  const head = ["Name", "Level", "Type", "Answers now", "TTL", ...(state.narrow ? [] : ["Clusters"])].map((word) => html`<th scope="col" class=${word === "TTL" ? "n" : ""}>${word}</th>`);
  return view.objects.map((o) => html`
    ${o.names?.length ? table("Names", head, o.names.map((n) => answers(state, n))) : empty("It has no name in DNS yet.", "A Service has names when it is of type LoadBalancer and a cluster has an address for it.")}
    ${(o.notes ?? []).map((n) => html`<p class="remark">${n.cluster ? `${n.cluster}: ` : ""}${n.message}</p>`)}
    ${o.names?.length ? html`<p class="hint">Try it: <code>dig ${(o.names.find((n) => n.level === "global") ?? o.names[0]).name}</code></p>` : nothing}`);
}

const providers = (state, view) => (view.providers?.length ? html`<p class="providers">Zone <strong>${view.zone}</strong> at ${view.providers.map((p) => html`<span title=${p.message}>${badge(p.published ? "serving" : "lost", `${p.name}${p.published ? "" : `: ${p.reason}`}`)} ${since(p.since, state.now)}</span> `)}</p>` : nothing);

/** The page of a Service, #/service/NAMESPACE/NAME. */
export function service(state) {
  const [, namespace = "", name = ""] = state.route.path;
  return html`${title(html`<span class="kind">Service </span>${namespace}/${name}`)}
    ${cli(`kubectl federation dns service/${quoted(name)} -n ${quoted(namespace)}`, state.act.copy)}${links(state, objectOf(state.route))}
    ${answered(state.store.page, "what its names answer", ({dns, dnsError, explained, explainError, ingresses, ingressError}) => html`
      ${dns ? html`${providers(state, dns)}${names(state, dns)}` : dnsError?.code === 422 ? empty("It has no name in DNS.", dnsError.message) : failure(dnsError)}
      ${inFront(ingresses, ingressError, name)}
      <h2>Where it is</h2>${cli(explainCommand(`service/${name}`, namespace), state.act.copy)}${explained ? explanation(state, explained) : failure(explainError)}`)}`;
}
