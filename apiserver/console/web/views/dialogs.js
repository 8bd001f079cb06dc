// Search, help, and the dialog in front of what changes something.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, kinds, objectLink, pages, served, standing} from "../state.js";
import {quoted} from "../words.js";
import {commandOf} from "./drill.js";
import {badge, cli, empty, failure} from "./parts.js";

const closeButton = (state, id) => html`<button type="button" class="quiet" @click=${() => state.act.shut(id)}>Close</button>`;

/** The most clusters that a search shows. */
const maxFound = 20;

export function searchDialog(state) {
  const word = state.search.trim().toLowerCase();
  const clusters = [...state.store.clusters.items.values()].map(standing).filter((c) => word && c.name.includes(word));
  const objects = state.found?.data ?? [];
  return html`<div class="title"><h2>Search</h2>${closeButton(state, "search")}</div>
    <label>Part of a cluster's name, or the whole name of an object <input id="search-word" type="search" autofocus autocomplete="off" spellcheck="false" .value=${state.search} @input=${(e) => state.act.search(e.target.value)}></label>
    <ul class="found" @click=${(e) => e.target.closest("a") && state.act.shut("search")}>
      ${clusters.slice(0, maxFound).map((c) => html`<li><a href=${hashOf(state.route, {show: c.name})}>${c.name}</a> <span class="kind">cluster</span> ${badge(c.key, c.word)}</li>`)}
      ${clusters.length > maxFound ? html`<li class="hint">and ${clusters.length - maxFound} more clusters</li>` : nothing}
      ${objects.map((o) => html`<li><a href=${objectLink(o.kind, o.namespace, o.name)}>${o.namespace}/${o.name}</a> <span class="kind">${o.kind}</span></li>`)}
    </ul>${failure(state.found?.error)}
    ${word && state.found?.data && !clusters.length && !objects.length ? empty("Nothing has that name.", "Part of a name finds clusters only. In a terminal it finds objects, too:", cli(`kubectl get ${[...kinds, ...served].map((k) => k.plural)} -A | grep ${quoted(word)}`, state.act.copy)) : nothing}`;
}

export function helpDialog(state) {
  const keys = [...pages.map((p) => [`g ${p.key}`, p.word]), ["/", "Search"], ["?", "This help"], ["Esc", "Close what is open"], ["← ↑ → ↓", "Move in the map; Enter shows the cluster"]];
  return html`<div class="title"><h2>Help</h2>${closeButton(state, "help")}</div>
    <p>The console shows what you may see, and does what you may do: all its requests are yours${state.user ? html`, <strong>${state.user}</strong>` : nothing}. Under each title is the command that says or does the same.</p>
    <dl class="keys">${keys.map(([k, what]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl>`;
}

/** The dialog in front of an action: what it does, its command, and a word to type where it is hard to undo. */
export function actDialog(state) {
  const {action, title, typed} = state.asked;
  const ready = !typed || state.typed === typed;
  const submit = (event) => {
    event.preventDefault();
    if (!ready) return;
    state.act.run({...action, ...(typed ? {confirm: typed} : {})});
    state.act.shut("act");
  };
  const preview = state.preview;
  return html`<form @submit=${submit}><div class="title"><h2>${title}</h2>${closeButton(state, "act")}</div>
    ${cli(commandOf(action), state.act.copy)}
    ${preview ? html`<h3>What would happen</h3><pre class="output" tabindex="0">${preview.output || (preview.ended ? "" : "…")}${preview.error ? `\n${preview.error}` : ""}</pre>` : nothing}
    ${typed ? html`<label>To begin, type <strong>${typed}</strong> <input id="typed" autofocus autocomplete="off" spellcheck="false" .value=${state.typed} @input=${(e) => state.act.type(e.target.value)}></label>` : nothing}
    <div class="actions"><button class=${typed ? "danger" : "primary"} ?disabled=${!ready}>${title.split(" ")[0]}</button></div></form>`;
}

/** The commands that were begun here, the newest first. */
export function runList(state) {
  if (!state.runs.length) return nothing;
  return html`<section class="runs" aria-labelledby="runs-title"><h2 id="runs-title">Begun here</h2>${state.runs.toReversed().slice(0, 5).map((r) => html`<details ?open=${!r.ended || Boolean(r.error)}>
    <summary>${r.ended ? (r.error ? badge("out", "failed") : badge("serving", "done")) : badge("returning", "runs")} <code>${r.command}</code></summary><pre class="output" tabindex="0">${r.output}${r.error ? `error: ${r.error}` : ""}</pre></details>`)}</section>`;
}
