// What is round every page: names, ways, live state, the band of a drill, and the dialogs.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, pages, runningDrill} from "../state.js";
import {span} from "../words.js";
import {clusterDrawer} from "./cluster.js";
import {actDialog, helpDialog, searchDialog} from "./dialogs.js";
import {takenOut} from "./drill.js";
import {glyph, guarded} from "./parts.js";

const partOf = {workload: "workloads", service: "services", ingress: "services", drill: "drills"};

/** How current the page is: {word, key, why}. */
export function liveness(store, now) {
  const feed = [store.clusters, store.drills].filter((f) => f.behindSince !== undefined).sort((a, b) => a.behindSince - b.behindSince)[0];
  if (!feed) return {word: "live", key: "serving", why: ""};
  const why = feed.error?.message ?? "";
  if (!feed.loaded && !feed.error) return {word: "loading", key: "returning", why};
  if (feed.error?.code === 403) return {word: "partly: not all may be seen", key: "held", why};
  const behind = now - feed.behindSince;
  return behind < 3000 ? {word: "live", key: "serving", why: ""} : behind < 60_000 ? {word: `behind ${span(behind)}`, key: "held", why} : {word: `lost since ${span(behind)}`, key: "out", why};
}

const themes = {"": "Auto", light: "Light", dark: "Dark"};

function header(state) {
  const {store, act} = state;
  const live = liveness(store, state.now);
  const here = partOf[state.route.path[0]] ?? state.route.path[0] ?? "";
  const status = store.status.data;
  return html`<header>
    <a class="brand" href="#/"><img src="icon.svg" alt="" width="20" height="20"> <span>${status?.name || "Federation"}</span>${status?.dnsZone ? html`<span class="zone">${status.dnsZone}</span>` : nothing}</a>
    ${state.login ? nothing : html`<nav aria-label="Pages">${pages.map((p) => html`<a href="#/${p.path}" data-word=${p.word} aria-current=${here === p.path ? "page" : nothing}>${p.word}</a>`)}</nav>`}
    <div class="tools">
      ${state.login ? nothing : html`<span class="live ${live.key}" role="status" title=${live.why}>${glyph(live.key)} ${live.word}</span>
      <button class="quiet" aria-keyshortcuts="/" @click=${() => act.open("search")}>Search <kbd class="more">/</kbd></button>`}
      <button class="quiet" aria-label="Theme: ${themes[state.theme]}" @click=${act.nextTheme}><span class="more">Theme:</span> ${themes[state.theme]}</button>
      <button class="quiet" aria-label="Help" aria-keyshortcuts="?" @click=${() => act.open("help")}><kbd>?</kbd></button>
      ${state.user ? html`<span class="user" title=${state.groups.join(", ")}>${state.user}</span>` : nothing}
      ${state.session ? html`<button class="quiet" @click=${act.logOut}>Log out</button>` : nothing}
    </div>
  </header>`;
}

function drillBand(state) {
  const drill = runningDrill(state.store.drills.items.values());
  if (!drill) return nothing;
  const {name} = drill.metadata;
  return html`<aside class="band" aria-label="Running drill">
    ${glyph("held")} <span>Drill <a href=${hashOf({path: ["drill", name], query: {}})}>${name}</a>: ${drill.spec.method} of ${takenOut(drill)}, ${drill.status.phase}</span>
    <button class="danger" @click=${() => state.act.run({do: "abort", name})}>Abort</button>
  </aside>`;
}

/** A page with all that is round it. @param {any} state @param {(state: any) => unknown} page */
export function frame(state, page) {
  // The browser closes a dialog by itself after cancel, for Escape. The state has to know before a frame opens it again.
  const dialog = (id, label, open, view) => html`<dialog id=${id} aria-label=${label} @cancel=${() => state.act.shut(id)} @close=${(e) => e.target.open || state.act.shut(id)}>${open ? guarded(() => view(state)) : nothing}</dialog>`;
  return html`<a class="skip" href="#main" @click=${state.act.skip}>Skip to the page</a>
    ${guarded(() => header(state))}${guarded(() => drillBand(state))}
    <main id="main" tabindex="-1">${guarded(() => page(state))}</main>
    <p class="note" role="status">${state.note}</p>
    ${dialog("drawer", "Cluster", state.route.query.show, clusterDrawer)}${dialog("search", "Search", state.open === "search", searchDialog)}
    ${dialog("help", "Help", state.open === "help", helpDialog)}${dialog("act", "Confirm", state.open === "act", actDialog)}`;
}
