// The map of clusters, and what is not well.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {guard} from "../vendor/lit-html/directives/guard.js";
import {repeat} from "../vendor/lit-html/directives/repeat.js";
import {counts, hashOf, places, problems, readinessOf} from "../state.js";
import {ago, count, number} from "../words.js";
import {badge, cli, empty, failure, glyph, loading, noClusters, since, title} from "./parts.js";

/** What a cell says of its cluster. */
export const about = (c) => `${c.name}: ${c.word}, weight ${c.weight} in DNS`;

const cell = (c, focused) => html`<div role="gridcell" class="cell" data-name=${c.name} tabindex=${focused ? 0 : -1} title=${about(c)} aria-label=${about(c)}>${glyph(c.key, c.weight === 0)}</div>`;

function zoneRow(z, focused) {
  const serving = z.clusters.filter((c) => c.key === "serving").length;
  const all = z.clusters.length;
  return html`<div role="row" class="zone">
    <span role="rowheader">${z.zone || "no zone"}</span>
    <div class="cells" role="presentation">${guard([focused, ...z.clusters], () => repeat(z.clusters, (c) => c.name, (c) => guard([c, c.name === focused], () => cell(c, c.name === focused))))}</div>
    <span role="gridcell" class="sum">${serving === all ? number(all) : `${number(serving)} of ${number(all)}`}</span>
  </div>`;
}

/** Moves the focus in the map: left and right to the next cluster, up and down to the nearest one of the next line. */
function moveFocus(event, act) {
  const from = event.target.closest(".cell");
  if (!from) return;
  const cells = [...event.currentTarget.querySelectorAll(".cell")];
  const at = cells.indexOf(from);
  const steps = {ArrowRight: () => cells[at + 1], ArrowLeft: () => cells[at - 1], Home: () => cells[0], End: () => cells.at(-1), ArrowDown: () => nearest(cells, from, 1), ArrowUp: () => nearest(cells, from, -1)};
  if (event.key === "Enter" || event.key === " ") act.go({show: from.dataset.name});
  else if (!steps[event.key]) return;
  event.preventDefault();
  const to = steps[event.key]?.();
  if (!to) return;
  act.focusCell(to.dataset.name);
  to.focus();
}

function nearest(cells, from, direction) {
  const place = from.getBoundingClientRect();
  let best;
  let bestBy = Infinity;
  for (const cell of cells) {
    const r = cell.getBoundingClientRect();
    const lines = (r.top - place.top) * direction;
    const by = lines * 10 + Math.abs(r.left - place.left);
    if (lines > 4 && by < bestBy) [best, bestBy] = [cell, by];
  }
  return best;
}

function map(state, clusters) {
  const regions = places(clusters);
  const first = regions[0].zones[0].clusters[0].name;
  const focused = state.store.clusters.items.has(state.cell) ? state.cell : first;
  const show = (event) => {
    const name = event.target.closest(".cell")?.dataset.name;
    if (name) state.act.go({show: name});
  };
  return html`<section aria-labelledby="map-title">
    <h2 id="map-title">Clusters by region and zone</h2>
    <div role="grid" class="map" aria-labelledby="map-title" @click=${show} @keydown=${(e) => moveFocus(e, state.act)}>
      ${regions.map((r) => html`<div role="rowgroup" class="region" aria-label=${`Region ${r.region || "unknown"}`}>
        <div class="name" role="presentation"><span>${r.region || "no region"}</span> <span class="sum">${count(r.size, "cluster")}</span></div>
        ${r.zones.map((z) => zoneRow(z, focused))}
      </div>`)}
    </div>
    <p class="hint">Arrow keys move, Enter shows a cluster. A hollow form has weight 0 in DNS.</p>
  </section>`;
}

function summary(state, clusters) {
  const {store} = state;
  const status = store.status.data;
  const objects = (status?.kinds ?? []).reduce((n, k) => n + k.objects, 0);
  const off = (status?.kinds ?? []).reduce((n, k) => n + (k.outOfSync ?? 0), 0);
  const zones = (store.readiness.data ?? []).map(readinessOf).filter((r) => r.level === "zone");
  const ok = zones.filter((z) => z.ok).length;
  return html`<dl class="summary">
    <div><dt>Clusters</dt><dd><strong>${number(clusters.length)}</strong> ${counts(clusters).map((c) => badge(c.key, `${number(c.count)} ${c.word}`))}</dd></div>
    <div><dt>Objects</dt><dd>${status ? html`<strong>${number(objects)}</strong> ${off ? badge("held", `${number(off)} not as desired`) : objects ? badge("serving", "all as desired") : nothing}` : store.status.error ? html`<span title=${store.status.error.message}>not known</span>` : "…"}</dd></div>
    <div><dt>Zones whose loss would be survived</dt><dd>${store.readiness.data ? html`<a href="#/failover"><strong>${ok}</strong> of ${zones.length}</a>` : "…"}</dd></div>
  </dl>`;
}

function problem(state, p) {
  const href = p.cluster ? hashOf(state.route, {show: p.cluster}) : p.href;
  return html`<li>
    ${glyph(p.key)} <div><span class="kind">${p.kind}</span> ${href ? html`<a href=${href}>${p.name}</a>` : p.name} <strong>${p.word}</strong><p>${p.message}</p></div> ${since(p.since, state.now)}
  </li>`;
}

/** The most problems that are shown at first, and when somebody asks for more. */
const few = 30;
const many = 300;

function problemList(state, clusters) {
  const {store} = state;
  const most = state.route.query.all ? many : few;
  const {count: all, oldest} = problems(clusters, store.readiness.data, store.status.data, most);
  const waiting = !store.status.data && !store.status.error;
  return html`<section class="problems" aria-labelledby="problems-title">
    <h2 id="problems-title">Problems, oldest first${all ? html` <span class="sum">${number(all)}</span>` : nothing}</h2>
    ${all ? html`<ul tabindex="0" aria-labelledby="problems-title">${repeat(oldest, (p) => `${p.kind} ${p.name}`, (p) => guard([p.word, p.message, ago(p.since, state.now), state.route], () => problem(state, p)))}</ul>` : waiting ? loading("what is not as desired") : empty("Nothing is wrong.", "All clusters serve, and all objects that you may see are as desired.")}
    ${all > most ? html`<p class="hint">and ${number(all - most)} more: ${most === few ? html`<a href=${hashOf(state.route, {all: "1"})}>show ${all > many ? `the oldest ${many}` : "all"}</a>` : "kubectl federation status --all"}</p>` : nothing}
    ${store.status.data?.notCounted?.length ? html`<p class="hint">Not counted, as you may not list them: ${store.status.data.notCounted.join(", ")}</p>` : nothing}
  </section>`;
}

/** The first page. */
export function overview(state) {
  const {clusters, status} = state.store;
  const all = [...clusters.items.values()];
  let body;
  if (!clusters.loaded && clusters.error?.code === 403) body = html`${empty("You may not see clusters.", clusters.error.message)}<p><a href="#/workloads">Workloads in namespace ${state.ownNamespace || "default"}</a></p>`;
  else if (!clusters.loaded) body = clusters.error ? failure(clusters.error) : loading("clusters");
  else if (!all.length) body = noClusters(state.act.copy);
  else body = html`<div class="columns">${map(state, all)}${problemList(state, all)}</div>`;
  return html`${title("Overview")}${cli("kubectl federation status", state.act.copy)}
    ${all.length ? summary(state, all) : nothing}${clusters.loaded && status.error?.code !== 403 ? failure(status.error) : nothing}${body}`;
}
