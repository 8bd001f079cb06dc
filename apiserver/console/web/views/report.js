// The page of a drill: its course while it runs, and its report afterwards.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {objectLink} from "../state.js";
import {clock, count, date, duration, number, quoted, span} from "../words.js";
import {axis, chart, numbers, timeScale} from "./chart.js";
import {drillLink, outcomeKeys, stage, takenOut} from "./drill.js";
import {badge, cli, empty, failure, guarded, loading, since, table, title} from "./parts.js";

const known = [["injected", "out of service"], ["detected", "judged lost"], ["outOfDNS", "out of DNS"], ["lastUse", "no resolver has it"], ["out", "failed over"], ["placed", "placed elsewhere"], ["readyElsewhere", "ready elsewhere"], ["recovering", "way back"], ["backReady", "ready again"], ["backInDNS", "back in DNS"], ["clean", "nothing left of it"]];
const back = new Set(["backReady", "backInDNS", "clean"]);

/** The marks of a drill, in order: {key, word, at, after, own, back}; ms: after is since the fault, own since the fault or the way back. */
export function marksOf(drill) {
  const m = drill.status?.report?.marks ?? {};
  const [began, returned] = [Date.parse(m.injected), Date.parse(m.recovering)];
  const one = (key, word, at, isBack) => ({key, word, at, back: isBack, after: Date.parse(at) - began, own: Date.parse(at) - (isBack ? returned : began)});
  const all = known.filter(([key]) => m[key]).map(([key, word]) => one(key, word, m[key], back.has(key)));
  for (const [percent, at] of Object.entries(m.failback ?? {})) all.push(one(`failback.${percent}`, `${percent} % of its replicas`, at, true));
  return all.sort((a, b) => a.after - b.after);
}

/** The lines over time that a drill has: {id, word, of}; of takes a sample's number. */
function lines(d) {
  const report = d.status.report;
  return [
    {id: "ready", word: "Ready replicas, in all clusters that are seen", of: (s) => s.ready},
    {id: "scope", word: "Replicas placed in what is taken out", of: (s) => s.inScope ?? 0},
    ...(report.prediction?.followed?.length ? [{id: "dns", word: `Record sets with an address of it, of ${number(report.prediction.followed.length)}`, of: (s) => s.inDNS ?? 0}] : []),
    ...(d.spec.probes?.length ? [{id: "failed", word: "Questions of probes that failed so far", of: (s) => s.failed ?? 0}] : []),
  ];
}

const heads = (words, right = []) => words.map((word) => html`<th scope="col" class=${right.includes(word) ? "n" : ""}>${word}</th>`);

function charts(state, d, all) {
  const samples = d.status.report.samples ?? [];
  if (!samples.length) return html`<p class="hint">How it went between these marks was not kept.</p>`;
  const turn = all.find((m) => m.key === "recovering")?.after;
  const last = Math.max(samples.at(-1).afterMilliseconds, all.at(-1).after);
  const end = Math.max(1000, d.status.outcome ? last : state.now - Date.parse(d.status.report.marks.injected));
  const early = all.filter((m) => !m.back && m.key !== "recovering").at(-1).after;
  const scale = timeScale({width: state.narrow ? 360 : 720, busy: Math.max(15_000, early * 1.15), turn, end});
  const shown = lines(d);
  return html`<div class="charts">${numbers(scale, all)}${shown.map((l) => guarded(() => chart(l.id, l.word, samples.map((s) => [s.afterMilliseconds, l.of(s)]), scale, all)))}${axis(scale)}</div>
    <p class="hint">Numbers are those of the marks. Time is since the fault${turn === undefined ? "" : ", and after + since the way back began"}.${scale.cut ? " It is shortened where it is shaded." : ""}</p>
    <details class="numbers"><summary>The charts as a table</summary>${table("Samples", heads(["After", ...shown.map((l) => l.word)], ["After", ...shown.map((l) => l.word)]), samples.map((s) => html`<tr><th scope="row" class="n">${duration(s.afterMilliseconds)}</th>${shown.map((l) => html`<td class="n">${number(l.of(s))}</td>`)}</tr>`))}</details>`;
}

function markTable(all, earlier) {
  const p75 = earlier?.p75Milliseconds ?? {};
  const head = ["", "Mark", "At", "After", ...(earlier ? ["Earlier runs"] : [])];
  const row = (m, i) => html`<tr><td class="n">${i + 1}</td><th scope="row">${m.word}</th><td class="mono">${clock(m.at)}</td><td class="n">${m.back ? "+ " : ""}${duration(m.own)}</td>${earlier ? html`<td class="n">${m.key in p75 ? `≤ ${duration(p75[m.key])}` : ""}</td>` : nothing}</tr>`;
  return html`${table("Marks", head.map((word, i) => html`<th scope="col" class=${i === 0 || i > 2 ? "n" : ""}>${word || html`<span class="hidden">Number</span>`}</th>`), all.map(row))}
    ${earlier ? html`<p class="hint">In three of four of ${count(earlier.runs, "earlier run")} it came no later than that.</p>` : nothing}`;
}

function course(state, d, all) {
  if (!all.length) return empty("Nothing has been measured yet.", "It begins when its checks hold.");
  if (!d.status.report.marks.injected) return markTable(all);
  return html`<div class="columns course"><div>${charts(state, d, all)}</div><div>${markTable(all, d.status.report.earlier)}</div></div>`;
}

/** The unit of an objective, by its field's name. */
const unitOf = (field) => (field.endsWith("Seconds") ? " s" : field.endsWith("Percent") ? " %" : " ‰");

const objectives = (report) => (report.objectives?.length ? html`<h2>Objectives</h2>${table("Objectives", heads(["Objective", "Asked", "Measured", "Met"], ["Asked", "Measured"]), report.objectives.map((o) => html`<tr><th scope="row">${o.name}</th><td class="n">${number(o.limit)}${unitOf(o.name)}</td><td class="n">${o.measured === undefined ? "never came" : number(o.measured) + unitOf(o.name)}</td><td>${o.met ? badge("serving", "yes") : badge("out", "no")}</td></tr>`))}` : nothing);

/** What a probe asks, in short. @param {any} p */
export function targetOf(p) {
  const name = p.service ? `${p.service.name}.${p.service.namespace}` : (p.host ?? "");
  return p.type === "DNS" ? `${name} in DNS` : `${p.type.toLowerCase()}://${name}${p.port ? `:${p.port}` : ""}${p.path ?? ""}`;
}

const perMille = (failed, asked) => (asked ? `${((1000 * failed) / asked).toFixed(failed && failed * 100 < asked ? 1 : 0)} ‰` : "");

/** The probes of a drill with what each found, those that failed most first. */
function probes(d) {
  const asked = d.spec.probes ?? [];
  if (!asked.length) return html`<h2>Probes</h2><p class="hint">None: what clients see is not measured.</p>`;
  const found = new Map((d.status?.report?.probes ?? []).map((r) => [r.name, r]));
  const all = asked.map((p) => ({p, r: found.get(p.name)})).sort((a, b) => (b.r?.failed ?? 0) - (a.r?.failed ?? 0) || (a.p.name < b.p.name ? -1 : 1));
  const row = ({p, r}) => html`<tr><th scope="row">${p.name}${p.guard ? html`<span class="kind"> can end it</span>` : nothing}</th><td class="mono">${targetOf(p)}</td>
    ${r ? html`<td class="n">${number(r.asked)}${r.unknown ? html`<p class="why">and ${number(r.unknown)} not asked</p>` : nothing}</td><td class="n">${number(r.failed)}</td><td class="n">${perMille(r.failed, r.asked)}</td><td class="n">${r.longestOutageMilliseconds ? duration(r.longestOutageMilliseconds) : "none"}</td><td class="why">${r.lastFailure ?? ""}</td>` : html`<td colspan="5" class="hint">not counted yet</td>`}</tr>`;
  const head = heads(["Probe", "Asks", "Questions", "Failed", "Of 1 000", "Longest gap", "Last failure"], ["Questions", "Failed", "Of 1 000", "Longest gap"]);
  return html`<h2>Probes</h2>${some(all, 12, (few) => table("Probes", head, few.map(row)))}`;
}

/** Shows the first of many, and the others when somebody asks. Those are not printed. */
const some = (all, most, view) => html`${view(all.slice(0, most))}${all.length > most ? html`<details><summary>and ${number(all.length - most)} more</summary>${view(all.slice(most))}</details>` : nothing}`;
const list = (texts) => html`<ul class="plain">${texts.map((x) => html`<li>${x}</li>`)}</ul>`;

const moveRow = (m) => html`<tr><th scope="row"><span class="kind">${m.kind}</span> <a href=${objectLink(m.kind, m.namespace, m.name)}>${m.namespace ? `${m.namespace}/` : ""}${m.name}</a></th><td>${(m.clusters ?? []).map((c) => html`<span class="change">${c.cluster} ${number(c.before)} → ${number(c.after)}</span> `)}</td></tr>`;

/** What was predicted, beside what was measured. */
function prediction(report) {
  const p = report.prediction;
  if (!p) return nothing;
  const other = p.differences ?? [];
  const moves = p.moves ?? [];
  const moved = Boolean(report.marks?.placed);
  return html`<h2>Prediction</h2><p>${p.replicas ? count(p.replicas, "replica") : "No replica"} to move${moved ? `, ${number(p.measured ?? 0)} moved` : ""}; ${count(p.records ?? 0, "record set")} to change. ${other.length ? badge("held", `${count(other.length, "object")} not as predicted`) : moved ? badge("serving", "as predicted") : nothing}</p>
    ${other.length ? some(other, 10, list) : nothing}
    ${moves.length ? html`<details><summary>${count(moves.length, "object")} that ${moves.length === 1 ? "was" : "were"} to move</summary>${table("Predicted moves", heads(["Object", "Replicas"]), moves.map(moveRow))}</details>` : nothing}`;
}

/** Earlier drills of the same clusters by the same method, the newest first. */
export function earlierRuns(drills, d) {
  const scope = (x) => (x.status?.clusters ?? []).join();
  const began = (x) => x.status.report.marks.injected;
  return [...drills].filter((x) => x.spec.method === d.spec.method && scope(x) === scope(d) && x.metadata.name !== d.metadata.name && x.status?.outcome && x.status.report?.marks?.injected && Date.parse(began(x)) < Date.parse(began(d)))
    .sort((a, b) => Date.parse(began(b)) - Date.parse(began(a)));
}

const compared = [["detected", "Judged lost"], ["outOfDNS", "Out of DNS"], ["readyElsewhere", "Ready elsewhere"], ["backInDNS", "Back in DNS"]];

function earlier(state, d) {
  if (!d.status?.report?.marks?.injected) return nothing;
  const runs = earlierRuns(state.store.drills.items.values(), d);
  if (!runs.length) return nothing;
  const p75 = d.status.report.earlier?.p75Milliseconds ?? {};
  const took = (x) => Object.fromEntries(marksOf(x).map((m) => [m.key, m.own]));
  const columns = compared.filter(([key]) => key in p75 || runs.some((x) => key in took(x)));
  const cells = (of) => columns.map(([key]) => html`<td class="n">${key in of ? duration(of[key]) : ""}</td>`);
  const failed = (x) => (x.status.report.probes ?? []).reduce((n, r) => n + r.failed, 0);
  const row = (x) => html`<tr><th scope="row">${drillLink(x)}</th><td>${stage(x)}</td><td>${date(x.status.report.marks.injected)}</td>${cells(took(x))}<td class="n">${x.status.report.probes ? number(failed(x)) : ""}</td></tr>`;
  const right = [...columns.map(([, word]) => word), "Failed questions"];
  return html`<h2>Earlier runs of the same clusters and method</h2>${some(runs, 5, (few) => table("Earlier runs", heads(["Drill", "Ended", "Began", ...right], right), html`${few.map(row)}${d.status.report.earlier && few[0] === runs[0] ? html`<tr class="sum"><th scope="row">3 in 4</th><td colspan="2">of ${count(d.status.report.earlier.runs, "run")} that held in full, no later than</td>${cells(p75)}<td></td></tr>` : nothing}`))}`;
}

function summary(d) {
  const report = d.status?.report ?? {};
  const w = report.workloads ?? {};
  const fact = (word, value) => html`<div><dt>${word}</dt><dd>${value}</dd></div>`;
  const asked = d.status?.requestedBy;
  return html`<dl class="summary">${fact("Takes out", takenOut(d))}${fact("Method", d.spec.method)}${fact("Why", d.spec.reason)}
    ${asked ? fact("Asked for by", asked) : nothing}${d.status?.approved ? fact("Approved by", d.status.approved.by) : nothing}${d.status?.abort ? fact("Aborted by", d.status.abort.by) : nothing}
    ${w.replicas ? fact("Replicas there before", html`<strong>${number(w.replicas)}</strong> of ${count(w.objects ?? 0, "object")}`) : nothing}
    ${w.replicas ? fact("Ready, at least", html`<strong>${w.leastReadyPercent ?? 0} %</strong>${w.mostAt ? html` at ${clock(w.mostAt)}` : nothing}`) : nothing}</dl>`;
}

/** The page of a drill, #/drill/NAME. */
export function drill(state) {
  const name = state.route.path[1] ?? "";
  const feed = state.store.drills;
  const d = feed.items.get(name);
  const over = Boolean(d?.status?.outcome);
  const command = over ? `kubectl federation drill report ${quoted(name)}` : `kubectl federation drill status ${quoted(name)} -w`;
  const beside = d ? html`<span role="status">${stage(d)}</span> ${standsFor(state, d)} ${!over && state.can.drills ? html`<button class="danger" @click=${() => state.act.run({do: "abort", name})}>Abort</button>` : nothing}${over ? html`<button class="quiet" @click=${state.act.print}>Print</button>` : nothing}` : nothing;
  return html`${title(html`<span class="kind">Drill </span>${name}`, beside)}${cli(command, state.act.copy)}
    ${d ? report(state, d) : feed.loaded ? empty("There is no such drill.", "", html`<p><a href="#/drills">All drills</a></p>`) : feed.error ? failure(feed.error) : loading("the drill")}`;
}

/** For how long a drill has been in its phase; while it holds, of how long. */
function standsFor(state, d) {
  const from = d.status?.phaseSince;
  if (!from || d.status.outcome) return nothing;
  const hold = d.spec.holdSeconds;
  return d.status.phase === "Holding" && hold ? html`<span class="hint">${span(state.now - Date.parse(from))} of ${span(hold * 1000)}</span>` : since(from, state.now);
}

function report(state, d) {
  const r = d.status?.report ?? {};
  const parts = [() => summary(d), () => html`<h2>Course</h2>${course(state, d, marksOf(d))}`, () => objectives(r), () => probes(d), () => prediction(r), () => earlier(state, d)];
  return html`<article class="report">${d.status?.message ? html`<p class="remark ${outcomeKeys[d.status.outcome] ?? ""}">${d.status.message}</p>` : nothing}${parts.map((part) => html`<section>${guarded(part)}</section>`)}
    ${r.leftBehind?.length ? html`<h2>Left behind</h2>${list(r.leftBehind)}` : nothing}</article>`;
}
