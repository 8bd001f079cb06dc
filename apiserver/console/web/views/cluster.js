// One cluster, in a drawer over any page.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {isCordoned, isDrained, objectOf, standing} from "../state.js";
import {number, quantity, quoted, short} from "../words.js";
import {badge, bar, cli, empty, links, since} from "./parts.js";

const gibi = 2 ** 30;

function room(capacity) {
  const rows = [["CPU", "cpu", 1, "cores"], ["Memory", "memory", gibi, "Gi"], ["Pods", "pods", 1, ""]];
  return html`<dl class="room">${rows.map(([word, key, unit, unitWord]) => {
    const all = quantity(capacity.allocatable?.[key]) / unit;
    const used = quantity(capacity.requested?.[key]) / unit || 0;
    return html`<div><dt>${word}</dt><dd>${bar(used, all)} <span>${short(used)} of ${short(all)} ${unitWord} requested</span></dd></div>`;
  })}<div><dt>Nodes</dt><dd>${number(capacity.nodes ?? 0)} ready</dd></div></dl>`;
}

const conditions = (cluster, now) => html`<ul class="conditions">${(cluster.status?.conditions ?? []).map((c) => html`<li><strong>${c.type}</strong> ${c.status} ${c.reason ? html`<span class="kind">${c.reason}</span>` : nothing} ${since(c.lastTransitionTime, now)}${c.message ? html`<p>${c.message}</p>` : nothing}</li>`)}</ul>`;

function actions(state, cluster) {
  if (!state.can.clusters) return nothing;
  const {name} = cluster.metadata;
  const drained = isDrained(cluster);
  const ask = (action, verb, typed) => () => state.act.confirm({action: {do: verb, name}, title: action, typed});
  return html`<div class="actions">
    ${drained ? nothing : isCordoned(cluster) ? html`<button @click=${ask(`Uncordon ${name}?`, "uncordon", "")}>Uncordon</button>` : html`<button @click=${ask(`Cordon ${name}?`, "cordon", "")}>Cordon</button>`}
    ${drained ? html`<button @click=${ask(`Undrain ${name}?`, "undrain", "")}>Undrain …</button>` : html`<button class="danger" @click=${ask(`Drain ${name}?`, "drain", name)}>Drain …</button>`}
  </div>`;
}

/** The drawer of the cluster that the route's query names. */
export function clusterDrawer(state) {
  const name = state.route.query.show;
  const cluster = state.store.clusters.items.get(name);
  const close = html`<button class="quiet" @click=${() => state.act.shut("drawer")}>Close</button>`;
  if (!cluster) return html`<div class="title"><h2>${name}</h2>${close}</div>${empty("There is no such cluster, or you may not see it.", "Those that there are:", cli("kubectl get clusters", state.act.copy))}`;
  const s = standing(cluster);
  const taints = (cluster.spec?.taints ?? []).map((t) => `${t.key}${t.value ? `=${t.value}` : ""}:${t.effect}`);
  return html`<div class="title"><h2>${name}</h2>${badge(s.key, s.word)} ${since(s.since, state.now)}${close}</div>
    ${s.message ? html`<p class="remark">${s.message}</p>` : nothing}
    ${cli(`kubectl describe cluster ${quoted(name)}`, state.act.copy)}
    <dl class="facts">
      <div><dt>Place</dt><dd>${s.region || "no region"} / ${s.zone || "no zone"}</dd></div>
      <div><dt>Version</dt><dd>${cluster.status?.kubernetesVersion ?? "not known"}</dd></div>
      <div><dt>Weight in DNS</dt><dd>${s.weight}</dd></div>
      <div><dt>Taints</dt><dd>${taints.length ? taints.map((t) => html`<code>${t}</code> `) : "none"}</dd></div>
    </dl>
    ${cluster.status?.capacity ? room(cluster.status.capacity) : empty("What is free there is not known.")}
    ${cluster.status?.capacity?.unschedulable?.length ? html`<p class="remark">Pods without room: ${cluster.status.capacity.unschedulable.slice(0, 10).map((u) => `${u.namespace}/${u.name} ${u.pods}`).join(", ")}</p>` : nothing}
    <p class="ways"><a href="#/failover?cluster=${encodeURIComponent(name)}">What if it were lost?</a> <a href="#/events?cluster=${encodeURIComponent(name)}">Its events</a></p>${links(state, {...objectOf(state.route), cluster: name})}
    ${actions(state, cluster)}
    <h3>Conditions</h3>${conditions(cluster, state.now)}`;
}
