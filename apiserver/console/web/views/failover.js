// Would the loss of a zone be survived, and what would happen if clusters were lost.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, objectLink, readinessOf, standing, zonesOf} from "../state.js";
import {number, quoted} from "../words.js";
import {answered, badge, cli, empty, loading, noClusters, since, table, title} from "./parts.js";

const levels = ["zone", "region", "cluster"];

/** What a route asks about: {level, name, drained}, or undefined. */
export function scopeOf(query) {
  const level = levels.find((l) => query[l]);
  return level && {level, name: query[level], drained: Boolean(query.drained)};
}

/** The spec of the review of a scope. */
export const reviewSpec = (scope) => ({[`${scope.level}s`]: [scope.name], ...(scope.drained ? {drained: true} : {})});

/** The command that asks the same. */
export const reviewCommand = (scope) => (scope.drained && scope.level === "cluster" ? `kubectl federation drain ${quoted(scope.name)} --dry-run` : `kubectl federation plan failover --${scope.level} ${quoted(scope.name)}`);

const lastDrill = (d, now) => (d ? html`<a href="#/drill/${encodeURIComponent(d.name)}">${d.outcome}</a> ${since(d.finishedAt, now)}` : html`<span class="hint">never</span>`);

function readinessRow(state, r) {
  const s = r.status;
  return html`<tr><th scope="row"><a href=${hashOf({path: ["failover"], query: {[r.level]: r.domain}})}>${r.domain}</a> <span class="hint">${r.level}</span></th>
    <td>${r.ok ? badge("serving", "yes") : r.known ? badge("out", "no") : badge("held", "not known")}${r.ok ? nothing : html`<p class="why">${r.message || r.reason}</p>`}</td>
    <td class="n">${number(s.clusters ?? 0)}</td><td class="n">${number(s.replicas ?? 0)}</td><td class="n">${number(s.placed ?? 0)}</td><td class="n">${s.kept ? number(s.kept) : ""}</td>
    <td class="n">${s.names ? `${s.names.survive} of ${s.names.served}` : ""}</td><td class="n">${s.headroom ? html`<span title=${`${s.headroom.resource}${s.headroom.cluster ? ` in ${s.headroom.cluster}` : ""}`}>${s.headroom.percent} %</span>` : ""}</td>
    <td>${lastDrill(s.lastDrill, state.now)}</td></tr>`;
}

function readiness(state) {
  const answer = state.store.readiness;
  const head = ["Domain", "Survivable", "Clusters", "Loses", "Fit elsewhere", "Stay lost", "Names that survive", "Free after", "Last drill"];
  const n = new Set(["Clusters", "Loses", "Fit elsewhere", "Stay lost", "Names that survive", "Free after"]);
  return answered(answer, "readiness", (items) => {
    const all = items.map(readinessOf).sort((a, b) => a.ok - b.ok || (a.level > b.level ? -1 : a.level < b.level ? 1 : 0) || (a.domain < b.domain ? -1 : 1));
    return all.length ? table("Readiness", head.map((word) => html`<th scope="col" class=${n.has(word) ? "n" : ""}>${word}</th>`), all.map((r) => readinessRow(state, r))) : empty("Nothing is known of zones and regions yet.", "It is found out a moment after clusters have said where they are: by the labels topology.kubernetes.io/region and zone of their nodes, or by kubectl federation join --region REGION --zones ZONES.");
  });
}

function asking(state, scope) {
  const clusters = [...state.store.clusters.items.values()].map(standing);
  const zones = zonesOf(state.store.clusters.items.values());
  const regions = [...new Set(clusters.map((c) => c.region).filter(Boolean))].sort();
  const change = (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [level, name] = String(form.get("scope")).split(/:(.*)/s);
    state.act.go({zone: "", region: "", cluster: "", [level]: name, drained: form.get("as") === "drained" ? "1" : ""});
  };
  const options = (level, names) => (names.length ? html`<optgroup label=${`${level}s`}>${names.map((name) => html`<option value=${`${level}:${name}`} ?selected=${scope?.level === level && scope.name === name}>${name}</option>`)}</optgroup>` : nothing);
  return html`<form class="filters" @submit=${change}>
    <label>What if <select name="scope">${options("zone", zones)}${options("region", regions)}${options("cluster", clusters.map((c) => c.name).sort())}</select></label>
    <fieldset><legend class="hidden">How</legend><label><input type="radio" name="as" value="lost" ?checked=${!scope?.drained}> were lost</label> <label><input type="radio" name="as" value="drained" ?checked=${Boolean(scope?.drained)}> were drained</label></fieldset>
    <button>Ask</button></form>`;
}

const moveRow = (m) => html`<tr><th scope="row"><span class="kind">${m.kind}</span> <a href=${objectLink(m.kind, m.namespace, m.name)}>${m.namespace ? `${m.namespace}/` : ""}${m.name}</a></th>
  <td>${m.clusters.map((c) => html`<span class="change" title=${c.reason ?? ""}>${c.cluster} ${number(c.before)} → ${number(c.after)}</span> `)}${m.reason ? html`<p class="why">${m.reason}</p>` : nothing}</td><td class="n">${m.unschedulable ? badge("out", number(m.unschedulable)) : ""}</td></tr>`;
const recordRow = (r) => html`<tr><th scope="row" class="mono">${r.name}</th><td>${r.type}</td><td class="mono">${(r.before ?? []).join(" ") || "–"}</td><td class="mono">${(r.after ?? []).join(" ") || "–"}</td></tr>`;
const most = 200;

/** What a review says. @param {any} s its status @param {{level: string, name: string, drained: boolean}} scope */
export function reviewed(s, scope) {
  const moves = s.moves ?? [];
  const records = s.records ?? [];
  const heads = (words) => words.map((word) => html`<th scope="col" class=${word === "Fit nowhere" ? "n" : ""}>${word}</th>`);
  return html`<p class="lead">If <strong>${scope.name}</strong> were ${scope.drained ? "drained" : "lost"} (${(s.clusters ?? []).length > 10 ? `${s.clusters.length} clusters` : (s.clusters ?? []).join(", ")}): <strong>${number(s.replicasMoved ?? 0)}</strong> replicas of ${number(moves.length)} objects would move, ${s.replicasUnschedulable ? badge("out", `${number(s.replicasUnschedulable)} fit nowhere`) : "all fit elsewhere"}, and ${number(records.length)} record sets would change.</p>
    ${s.suspendedReason ? html`<p class="failure">Nothing would be moved: ${s.suspendedReason}</p>` : nothing}
    ${moves.length ? table("Moves", heads(["Object", "Replicas", "Fit nowhere"]), moves.slice(0, most).map(moveRow)) : nothing}${moves.length > most ? html`<p class="hint">and ${number(moves.length - most)} more objects</p>` : nothing}
    ${records.length ? html`<details><summary>${number(records.length)} record sets</summary>${table("Records", heads(["Name", "Type", "Now", "Then"]), records.slice(0, most).map(recordRow))}</details>` : nothing}`;
}

/** The page. */
export function failover(state) {
  const scope = scopeOf(state.route.query);
  const offer = scope && state.can.drills ? html`<div class="actions"><a class="button" href=${hashOf({path: ["drills"], query: {[scope.level]: scope.name}})}>Drill this …</a></div>` : nothing;
  if (state.store.clusters.loaded && !state.store.clusters.items.size) return html`${title("Failover")}${noClusters(state.act.copy)}`;
  return html`${title("Failover")}
    <section aria-labelledby="ready-title"><h2 id="ready-title">Would it be survived?</h2>${cli("kubectl get failoverreadinesses", state.act.copy)}${readiness(state)}</section>
    <section aria-labelledby="whatif-title"><h2 id="whatif-title">What if …</h2>${asking(state, scope)}
    ${scope ? html`${cli(reviewCommand(scope), state.act.copy)}${state.store.page ? answered(state.store.page, "the review", (r) => reviewed(r.status, scope)) : loading("the review")}${offer}` : html`<p class="hint">Asks the functions that decide. Nothing is changed.</p>`}</section>`;
}

