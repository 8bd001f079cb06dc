// Drills: those that there are, and a new one.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, standing, zonesOf} from "../state.js";
import {count, quoted} from "../words.js";
import {badge, cli, empty, failure, loading, since, table, title} from "./parts.js";

/** The state that an outcome looks like. */
export const outcomeKeys = {Succeeded: "serving", Failed: "out", Interrupted: "held", Blocked: "cordoned"};

/** What a drill takes out, as its spec says it. */
export const scopeText = (s) => [...(s.zones ?? []), ...(s.regions ?? []), ...(s.clusters ?? [])].join(", ");

/** The clusters that a drill takes out; of many their scope and number. */
export function takenOut(d) {
  const clusters = d.status?.clusters ?? [];
  return clusters.length > 10 ? `${scopeText(d.spec.scope)}: ${count(clusters.length, "cluster")}` : clusters.join(", ") || scopeText(d.spec.scope);
}

/** How a drill stands: its outcome, or its phase. */
export const stage = (d) => (d.status?.outcome ? badge(outcomeKeys[d.status.outcome] ?? "held", d.status.outcome) : badge("returning", d.status?.phase ?? "new"));

/** A link to the page of a drill. */
export const drillLink = (d) => html`<a href=${hashOf({path: ["drill", d.metadata.name], query: {}})}>${d.metadata.name}</a>`;

const methods = [
  ["shift", "addresses out of DNS; replicas stay"],
  ["evacuate", "as a drain: DNS, then replicas"],
  ["isolate", "the federation cuts itself off: judged lost, failed over"],
  ["blackhole", "isolate, and node agents drop what comes from outside"],
];

/** The action and the command of the form of a new drill. */
export function drillOf(form) {
  const [level, name] = String(form.get("scope")).split(/:(.*)/s);
  const action = {do: "drill", [level]: name, method: form.get("method"), hold: `${form.get("hold")}m`, reason: String(form.get("reason")).trim(), name: String(form.get("name")).trim()};
  return {action, scope: name};
}

/** The command of an action, as a shell takes it. The local side runs the same. */
export function commandOf(a) {
  if (a.do === "abort") return `kubectl federation drill abort ${quoted(a.name)}`;
  if (a.do !== "drill") return `kubectl federation ${a.do} ${quoted(a.name)}`;
  const flags = ["cluster", "zone", "region", "method", "hold", "reason"].filter((k) => a[k]).map((k) => ` ${quoted(`--${k}=${a[k]}`)}`);
  return `kubectl federation drill run${flags.join("")} --yes --detach${a.name ? ` ${quoted(a.name)}` : ""}`;
}

function newDrill(state) {
  const clusters = [...state.store.clusters.items.values()].map(standing);
  const {query} = state.route;
  const zones = zonesOf(state.store.clusters.items.values());
  const regions = [...new Set(clusters.map((c) => c.region).filter(Boolean))].sort();
  const options = (level, names) => (names.length ? html`<optgroup label=${`${level}s`}>${names.map((name) => html`<option value=${`${level}:${name}`} ?selected=${query[level] === name}>${name}</option>`)}</optgroup>` : nothing);
  const begin = (event) => {
    event.preventDefault();
    const {action, scope} = drillOf(new FormData(event.currentTarget));
    state.act.confirm({action, title: `Begin a drill of ${scope}?`, typed: scope});
  };
  return html`<section aria-labelledby="new-title"><h2 id="new-title">Begin a drill</h2><form class="filters" @submit=${begin}>
    <label>Takes out <select name="scope">${options("zone", zones)}${options("region", regions)}${options("cluster", clusters.map((c) => c.name).sort())}</select></label>
    <label>Method <select name="method">${methods.map(([m, what]) => html`<option value=${m} ?selected=${query.method === m}>${m}: ${what}</option>`)}</select></label>
    <label>For <input name="hold" type="number" min="1" max="240" .value=${"10"} class="short"> min</label>
    <label>Reason <input name="reason" required maxlength="200" placeholder="for those who see it"></label>
    <label>Name <input name="name" placeholder="chosen if left out" autocomplete="off" spellcheck="false"></label>
    <button>Begin …</button></form></section>`;
}

/** What a first drill is: one that moves no replica. */
function noDrill(state) {
  const [first] = zonesOf(state.store.clusters.items.values());
  return empty("There has been no drill yet.", "A drill takes clusters out of service on purpose, for a while, measures what clients notice, and undoes it. The mildest one moves no replica:", cli(`kubectl federation drill run --zone=${quoted(first ?? "REGION/ZONE")} --method=shift --reason='the first one'`, state.act.copy));
}

/** The page of all drills. */
export function drills(state) {
  const feed = state.store.drills;
  const all = [...feed.items.values()].sort((a, b) => Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? 1 : -1));
  const row = (d) => html`<tr><th scope="row">${drillLink(d)}</th><td>${scopeText(d.spec.scope)}</td><td>${d.spec.method}</td><td>${stage(d)}</td><td class="why">${d.status?.message ?? d.spec.reason}</td><td class="n">${since(d.metadata.creationTimestamp, state.now)}</td></tr>`;
  const head = ["Drill", "Takes out", "Method", "Stands", "Says", "Began"].map((word) => html`<th scope="col" class=${word === "Began" ? "n" : ""}>${word}</th>`);
  return html`${title("Drills")}${cli("kubectl federation drill status", state.act.copy)}
    ${feed.error && !feed.loaded ? failure(feed.error) : !feed.loaded ? loading("drills") : all.length ? table("Drills", head, all.map(row)) : noDrill(state)}
    ${state.can.drills && state.store.clusters.items.size ? newDrill(state) : nothing}`;
}
