// Drills: those that there are, a new one, and the course of one.
import {html, nothing, svg} from "../vendor/lit-html/lit-html.js";
import {hashOf, standing} from "../state.js";
import {clock, number, quoted, span} from "../words.js";
import {badge, cli, empty, failure, loading, since, table, title} from "./parts.js";

const outcomeKeys = {Succeeded: "serving", Failed: "out", Interrupted: "held", Blocked: "cordoned"};
const scopeText = (s) => [...(s.zones ?? []), ...(s.regions ?? []), ...(s.clusters ?? [])].join(", ");

/** How a drill stands: its outcome, or its phase. */
const stage = (d) => (d.status?.outcome ? badge(outcomeKeys[d.status.outcome] ?? "held", d.status.outcome) : badge("returning", d.status?.phase ?? "new"));

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
  const zones = [...new Set(clusters.filter((c) => c.region && c.zone && !c.zone.includes(",")).map((c) => `${c.region}/${c.zone}`))].sort();
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
    <button ?disabled=${!clusters.length}>Begin …</button></form></section>`;
}

/** The page of all drills. */
export function drills(state) {
  const feed = state.store.drills;
  const all = [...feed.items.values()].sort((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1));
  const row = (d) => html`<tr><th scope="row"><a href=${hashOf({path: ["drill", d.metadata.name], query: {}})}>${d.metadata.name}</a></th><td>${scopeText(d.spec.scope)}</td><td>${d.spec.method}</td><td>${stage(d)}</td><td class="why">${d.status?.message ?? d.spec.reason}</td><td class="n">${since(d.metadata.creationTimestamp, state.now)}</td></tr>`;
  const head = ["Drill", "Takes out", "Method", "Stands", "Says", "Began"].map((word) => html`<th scope="col" class=${word === "Began" ? "n" : ""}>${word}</th>`);
  return html`${title("Drills")}${cli("kubectl federation drill status", state.act.copy)}
    ${feed.error && !feed.loaded ? failure(feed.error) : !feed.loaded ? loading("drills") : all.length ? table("Drills", head, all.map(row)) : empty("There has been no drill yet.", "A drill takes clusters out of service on purpose, for a while, measures it, and undoes it.")}
    ${state.can.drills ? newDrill(state) : nothing}`;
}

const marks = [["injected", "out of service"], ["detected", "detected"], ["outOfDNS", "out of DNS"], ["lastUse", "last use"], ["out", "failed over"], ["placed", "placed elsewhere"], ["readyElsewhere", "ready elsewhere"], ["recovering", "way back"], ["backReady", "ready again"], ["backInDNS", "back in DNS"], ["clean", "clean"]];

/** The moments of a drill, in order: {word, at, after}; after is ms since the fault. */
export function moments(drill) {
  const m = drill.status?.report?.marks ?? {};
  const began = Date.parse(m.injected);
  const all = marks.filter(([key]) => m[key]).map(([key, word]) => ({word, at: m[key], after: Date.parse(m[key]) - began}));
  for (const [percent, at] of Object.entries(m.failback ?? {})) all.push({word: `${percent} % back`, at, after: Date.parse(at) - began});
  return all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

const exact = (ms) => (Number.isNaN(ms) ? "" : ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms));

function line(all, now, over) {
  if (!all.length) return nothing;
  const from = Date.parse(all[0].at);
  const to = Math.max(over ? Date.parse(all.at(-1).at) : now, from + 1000);
  const x = (at) => 2 + (96 * (Date.parse(at) - from)) / (to - from);
  return html`<svg class="line" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">${svg`<path d="M2 3h96" class="way"></path>${all.map((m) => svg`<path d=${`M${x(m.at)} 1v4`} class="mark"></path>`)}`}</svg>`;
}

const objectives = (report) => (report.objectives?.length ? html`<h2>Objectives</h2>${table("Objectives", ["Objective", "Asked", "Measured", "Met"].map((w) => html`<th scope="col">${w}</th>`), report.objectives.map((o) => html`<tr><th scope="row">${o.name}</th><td class="n">${number(o.limit)}</td><td class="n">${o.measured === undefined ? "never came" : number(o.measured)}</td><td>${o.met ? badge("serving", "yes") : badge("out", "no")}</td></tr>`))}` : nothing);

function course(state, d) {
  const all = moments(d);
  const report = d.status?.report ?? {};
  const w = report.workloads ?? {};
  const p = report.prediction ?? {};
  return html`${d.status?.message ? html`<p class="remark">${d.status.message}</p>` : nothing}
    <dl class="summary"><div><dt>Takes out</dt><dd>${(d.status?.clusters ?? []).join(", ") || scopeText(d.spec.scope)}</dd></div><div><dt>Method</dt><dd>${d.spec.method}</dd></div><div><dt>Why</dt><dd>${d.spec.reason}</dd></div>
      ${w.replicas ? html`<div><dt>Replicas there before</dt><dd><strong>${number(w.replicas)}</strong> of ${number(w.objects ?? 0)} objects</dd></div>` : nothing}
      ${w.leastReadyPercent !== undefined ? html`<div><dt>Ready, at least</dt><dd><strong>${w.leastReadyPercent} %</strong></dd></div>` : nothing}
      ${p.replicas !== undefined ? html`<div><dt>Predicted to move</dt><dd><strong>${number(p.replicas)}</strong>, moved ${number(p.measured ?? 0)}</dd></div>` : nothing}</dl>
    <h2>Course</h2>${line(all, state.now, Boolean(d.status?.outcome))}
    ${all.length ? table("Course", ["Moment", "At", "After the fault"].map((word) => html`<th scope="col" class=${word === "After the fault" ? "n" : ""}>${word}</th>`), all.map((m) => html`<tr><th scope="row">${m.word}</th><td class="mono">${clock(m.at)}</td><td class="n">${exact(m.after)}</td></tr>`)) : empty("Nothing has been measured yet.", "It begins when its checks hold.")}
    ${objectives(report)}${p.differences?.length ? html`<h2>Not as predicted</h2><ul>${p.differences.map((x) => html`<li>${x}</li>`)}</ul>` : nothing}${report.leftBehind?.length ? html`<h2>Left behind</h2><ul>${report.leftBehind.map((x) => html`<li>${x}</li>`)}</ul>` : nothing}`;
}

/** The page of a drill, #/drill/NAME. */
export function drill(state) {
  const name = state.route.path[1] ?? "";
  const feed = state.store.drills;
  const d = feed.items.get(name);
  const over = Boolean(d?.status?.outcome);
  const command = over ? `kubectl federation drill report ${quoted(name)}` : `kubectl federation drill status ${quoted(name)} -w`;
  const abort = d && !over && state.can.drills ? html`<button class="danger" @click=${() => state.act.run({do: "abort", name})}>Abort</button>` : nothing;
  return html`${title(html`<span class="kind">Drill</span> ${name}`, html`${d ? stage(d) : nothing} ${d?.status?.phaseSince && !over ? since(d.status.phaseSince, state.now) : nothing} ${abort}`)}${cli(command, state.act.copy)}
    ${d ? course(state, d) : feed.loaded ? empty("There is no such drill.") : feed.error ? failure(feed.error) : loading("the drill")}`;
}
