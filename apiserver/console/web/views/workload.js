// Where one object is, and why: what `kubectl federation explain` says.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, objectOf} from "../state.js";
import {number, quoted} from "../words.js";
import {answered, badge, bar, cli, links, noClusters, since, table, title} from "./parts.js";

/** The form of a copy's state. */
const copyKeys = {"in sync": "serving", progressing: "returning", behind: "held", missing: "held", leaving: "returning", conflict: "out", unreachable: "lost", unreadable: "lost"};

/** The most rows that are shown before somebody asks for all. */
const maxRows = 100;

function row(state, x, c) {
  const wanted = c.desired + (c.overflow ?? 0);
  const numbers = x.replicas !== undefined;
  const most = Math.max(...x.clusters.map((o) => o.desired), 1);
  const why = html`${(c.reasons ?? []).map((r) => html`<p>${r}</p>`)}${c.waitsFor ? html`<p class="waits">Waits for: ${c.waitsFor}</p>` : nothing}`;
  const below = state.narrow && Boolean(c.reasons?.length || c.waitsFor); // there is no room beside it
  return html`<tr class=${below ? "above" : ""}>
    <th scope="row"><a href=${hashOf(state.route, {show: c.name})}>${c.name}</a></th>
    ${numbers
      ? html`<td class="n">${number(c.desired)}${c.overflow ? html` <span title="more that it would have if it had room">+${c.overflow}</span>` : nothing}</td><td class="wide">${bar(c.desired, most)}</td>
        <td class="n">${c.current === undefined ? "–" : number(c.current)}</td><td class="n">${number(c.ready ?? 0)}</td>`
      : html`<td>${wanted ? "yes" : "no"}</td>`}
    <td>${c.copy === "none" ? html`<span class="hint">none</span>` : badge(copyKeys[c.copy] ?? "held", c.copy)}</td>
    <td class="n">${since(c.since, state.now)}</td>
    ${state.narrow ? nothing : html`<td class="why">${why}</td>`}
  </tr>${below ? html`<tr><td class="why" colspan=${numbers ? 7 : 4}>${why}</td></tr>` : nothing}`;
}

/** What is said of the clusters of an object. Those that have to do with it come first. */
function clusters(state, x) {
  const concerned = (c) => c.desired > 0 || c.current > 0 || c.copy !== "none";
  const all = [...x.clusters].sort((a, b) => concerned(b) - concerned(a));
  const shown = state.route.query.all ? all : all.slice(0, maxRows);
  const why = state.narrow ? nothing : html`<th scope="col">Why, and what it waits for</th>`;
  const head = x.replicas !== undefined
    ? html`<th scope="col">Cluster</th><th scope="col" class="n">Wanted</th><th scope="col" class="wide"><span class="hidden">Share</span></th><th scope="col" class="n">There</th><th scope="col" class="n">Ready</th><th scope="col">Copy</th><th scope="col" class="n">Since</th>${why}`
    : html`<th scope="col">Cluster</th><th scope="col">Wanted</th><th scope="col">Copy</th><th scope="col" class="n">Since</th>${why}`;
  return html`${table("Clusters", head, shown.map((c) => row(state, x, c)))}
    ${all.length > shown.length ? html`<p><a href=${hashOf(state.route, {all: "1"})}>Show all ${number(all.length)} clusters</a></p>` : nothing}`;
}

const change = (c) => html`<span class="change">${c.cluster} ${number(c.from)} → ${number(c.to)}${c.overflow ? " overflow" : ""}</span>`;

function decisions(state, x) {
  if (!x.decisions?.length) return nothing;
  return html`<h2>Decisions, newest first</h2><ol class="decisions">${x.decisions.map((d) => html`<li>${since(d.at, state.now)} <div><strong>${d.cause}</strong>
    <p>${(d.changes ?? []).map(change)}${d.omittedChanges ? ` and ${d.omittedChanges} more` : ""}${d.everywhere === undefined ? "" : d.everywhere ? "to every cluster" : "no longer to every cluster"}${d.unschedulable === undefined ? "" : ` ${d.unschedulable} fit nowhere`}</p></div></li>`)}</ol>`;
}

function numbers(x) {
  if (x.replicas === undefined) return nothing;
  return html`<dl class="summary">
    <div><dt>Asked</dt><dd><strong>${number(x.replicas)}</strong></dd></div>
    <div><dt>Placed</dt><dd><strong>${number(x.placed ?? 0)}</strong>${x.unschedulable ? badge("out", `${number(x.unschedulable)} fit nowhere`) : nothing}</dd></div>
    <div><dt>Ready</dt><dd><strong>${number(x.ready ?? 0)}</strong>${x.ready === x.replicas ? badge("serving", "all") : nothing}</dd></div>
    <div><dt>Policy</dt><dd>${x.policy ?? "none"}</dd></div>
  </dl>`;
}

function slices(state, across) {
  if (!across?.slices?.length) return nothing;
  const head = ["In cluster", "Sends to", "Addresses", "Weight", "Slice"].map((word) => html`<th scope="col">${word}</th>`);
  return html`<h2>Where each cluster sends what it cannot serve itself</h2>
    ${table("Slices", head, across.slices.slice(0, maxRows).map((s) => html`<tr><th scope="row">${s.cluster}</th><td>${s.source}</td><td class="mono">${(s.addresses ?? []).join(" ")}</td><td class="n">${s.weight ?? ""}</td><td>${badge(copyKeys[s.state] ?? "held", s.state)}${s.why ? html`<p>${s.why}</p>` : nothing}</td></tr>`))}`;
}

/** What explain says of an object. */
export function explanation(state, x) {
  return html`${numbers(x)}
    ${x.asking ? html`<p class="hint" role="status">Clusters that have not answered yet are still being asked.</p>` : nothing}
    ${x.deleting ? html`<p class="failure">It is being deleted.</p>` : nothing}${x.pending ? html`<p class="failure">Where it goes is yet to be decided.</p>` : nothing}
    ${x.notPropagated ? html`<p class="failure">${badge("held", x.notPropagated.reason)} ${x.notPropagated.message}</p>` : nothing}
    ${(x.notes ?? []).map((n) => html`<p class="remark">${n}</p>`)}
    ${x.clusters.length ? clusters(state, x) : noClusters(state.act.copy)}${slices(state, x.crossCluster)}${decisions(state, x)}`;
}

/** The command that explains an object. */
export const explainCommand = (object, namespace) => `kubectl federation explain ${quoted(object)}${namespace ? ` -n ${quoted(namespace)}` : ""}`;

/** The page of a workload, #/workload/RESOURCE/NAMESPACE/NAME. */
export function workload(state) {
  const [, resource = "", namespace = "", name = ""] = state.route.path;
  const {kind} = objectOf(state.route);
  return html`${title(html`<span class="kind">${kind} </span>${namespace ? `${namespace}/` : ""}${name}`)}
    ${cli(explainCommand(`${resource}/${name}`, namespace), state.act.copy)}${links(state, objectOf(state.route))}
    ${answered(state.store.page, "what the clusters say", (x) => explanation(state, x))}
    ${state.store.page?.error && !state.store.page.data ? html`<p><a href=${hashOf({path: ["workloads"], query: {kind: resource.split(".")[0], namespace}})}>Workloads of namespace ${namespace}</a></p>` : nothing}`;
}
