// Parts that several pages are made of. All are functions of values.
import {html, nothing, svg} from "../vendor/lit-html/lit-html.js";
import {linksOf} from "../state.js";
import {ago, date} from "../words.js";

const form = (key, shape) => [html`<svg class="glyph ${key}" viewBox="0 0 16 16" aria-hidden="true">${shape}</svg>`, html`<svg class="glyph ${key} hollow" viewBox="0 0 16 16" aria-hidden="true">${shape}</svg>`];

/** The forms of the states, full and hollow: each can be told from the others without colour. */
const forms = {
  serving: [html`<span class="glyph serving dot"></span>`, html`<span class="glyph serving dot hollow"></span>`], // a thousand are painted much faster than as SVG
  returning: form("returning", svg`<path d="M8 2 15 14H1z" class="fill"></path>`),
  lost: form("lost", svg`<path d="M8 1 15 8 8 15 1 8zM8 5v4M8 10.5v1.5" class="line"></path>`),
  held: form("held", svg`<circle cx="8" cy="8" r="6" class="line"></circle><path d="M8 2a6 6 0 0 1 0 12z" class="fill"></path>`),
  out: form("out", svg`<path d="M3 3l10 10M13 3 3 13" class="heavy"></path>`),
  cordoned: form("cordoned", svg`<circle cx="8" cy="8" r="6" class="line"></circle><path d="M4.5 8h7" class="heavy"></path>`),
  drained: form("drained", svg`<path d="M3 3h10v10H3z" class="line"></path>`),
  ok: form("ok", svg`<path d="M3 8.5l3.5 3.5L13 4.5" class="heavy"></path>`),
};

/** A state's form. @param {string} key @param {boolean} [hollow] */
export const glyph = (key, hollow = false) => forms[key][Number(hollow)];

/** A state's form and word. */
export const badge = (key, word) => html`<span class="badge ${key}">${glyph(key)} ${word}</span>`;

/** How long ago, with the whole time for those who point at it. */
export const since = (at, now) => (at ? html`<time datetime=${at} title=${date(at)}>${ago(at, now)}</time>` : nothing);

/** The command that says or does the same. @param {string} command @param {(text: string) => void} copy */
export const cli = (command, copy) => html`<div class="cli">
  <span class="label">CLI</span><code>${command}</code><button class="quiet" @click=${() => copy(command)}>Copy<span class="hidden"> the command</span></button>
</div>`;

/** A title with what the page is about. */
export const title = (text, beside = nothing) => html`<div class="title"><h1>${text}</h1>${beside}</div>`;

/** What there is to say where there is nothing to show, and what leads on: a command or a link. */
export const empty = (text, hint = "", next = nothing) => html`<div class="empty"><p>${text}</p>${hint ? html`<p class="hint">${hint}</p>` : nothing}${next}</div>`;

/** What there is to say where no cluster has joined yet. @param {(text: string) => void} copy */
export const noClusters = (copy) => empty("No cluster has joined yet.", "What you make here waits until one does. An administrator of a cluster has it join:", cli("kubectl federation join NAME --member-kubeconfig FILE", copy));

/** An error in the server's words. @param {Error | undefined} error */
export const failure = (error) => (error ? html`<p class="failure" role="alert">${glyph("out")} ${error.message}</p>` : nothing);

/** While the first answer is awaited. */
export const loading = (what) => html`<p class="loading">Loading ${what}…</p>`;

/**
 * Shows an answer: what it has said, or why it has said nothing. An older answer stays while there is an error.
 * @param {{data: any, error: Error | undefined} | undefined} answer @param {string} what @param {(data: any) => unknown} view
 */
export function answered(answer, what, view) {
  if (answer?.data === undefined) return answer?.error ? failure(answer.error) : loading(what);
  return html`${failure(answer.error)}${guarded(() => view(answer.data))}`;
}

/** Draws a part; one that cannot be drawn says so, and the others stay. @param {() => unknown} draw */
export function guarded(draw) {
  try {
    return draw();
  } catch (err) {
    console.error(err);
    return failure(new Error(`this part cannot be shown: ${err.message}`));
  }
}

/** A bar of n of all, with a mark; the numbers stand beside it. */
export function bar(n, all, key = "") {
  const width = all > 0 ? Math.min(100, (100 * n) / all) : 0;
  return html`<svg class="bar ${key}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect class="ground" width="100" height="8"></rect><rect class="value" width=${width} height="8"></rect>`}
  </svg>`;
}

/** A table that scrolls by itself where it is too wide. @param {string} label @param {unknown} head @param {unknown} rows */
export const table = (label, head, rows) => html`<div class="scroll" role="region" aria-label=${label} tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`;

/** The links to other tools, for what is known of a page. @param {Record<string, string>} known by placeholder */
export function links(state, known) {
  const all = linksOf(state.store.links.data ?? {}, known);
  return all.length ? html`<ul class="links" aria-label="Links">${all.map((l) => html`<li>${l.problem ? html`<span class="hint">ConfigMap console-links: ${l.problem}</span>` : outside(l.url, l.text)}</li>`)}</ul>` : nothing;
}

/** A link that cannot be a script. @param {string} url */
export const outside = (url, text) => (/^https?:\/\//i.test(url) ? html`<a href=${url} rel="noreferrer" target="_blank">${text}</a>` : text);
