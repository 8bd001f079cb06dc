// What happened: events, newest first.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, objectLink} from "../state.js";
import {clock, number, quoted} from "../words.js";
import {answered, badge, cli, empty, glyph, table, title} from "./parts.js";

/** The most events that are shown, and that are read. */
export const maxShown = 200;

/** When an event was last seen. */
export const eventTime = (e) => e.series?.lastObservedTime ?? e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp;

/** The field selector of a route's filters. */
export const selectorOf = (query) =>
  [query.cluster && `involvedObject.kind=Cluster,involvedObject.name=${query.cluster}`, query.object && `involvedObject.name=${query.object}`, query.reason && `reason=${query.reason}`].filter(Boolean).join(",");

function filters(state) {
  const {query} = state.route;
  const change = (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    state.act.go(Object.fromEntries(["cluster", "object", "reason"].map((k) => [k, String(form.get(k)).trim()])));
  };
  return html`<form class="filters" @submit=${change}>${["cluster", "object", "reason"].map((k) => html`<label>${k[0].toUpperCase()}${k.slice(1)} <input name=${k} .value=${query[k] ?? ""} placeholder="all" autocomplete="off" spellcheck="false"></label>`)}<button>Show</button></form>`;
}

function row(state, e) {
  const {kind, namespace, name} = e.involvedObject;
  const href = kind === "Cluster" ? hashOf(state.route, {show: name}) : objectLink(kind, namespace, name);
  const message = html`${e.message}${e.count > 1 ? html` <span class="hint">· ${number(e.count)} times</span>` : nothing}`;
  const cells = html`<td class="mono">${clock(eventTime(e))}</td><td>${e.type === "Warning" ? badge("held", e.reason) : html`<span class="kind">${e.reason}</span>`}</td>
    <th scope="row"><span class="kind">${kind}</span> <a href=${href}>${namespace && kind !== "Cluster" ? `${namespace}/` : ""}${name}</a></th>`;
  return state.narrow ? html`<tr class="above">${cells}</tr><tr><td class="why" colspan="3"><p>${message}</p></td></tr>` : html`<tr>${cells}<td class="why">${message}</td></tr>`;
}

const nothingHappened = ({route}, selector) =>
  selector
    ? empty("No event matches.", "Events are kept for an hour. Names and reasons are compared as a whole.", html`<p><a href=${hashOf({path: route.path, query: {}})}>All events</a></p>`)
    : empty("Nothing has happened.", "Events are kept for an hour.");

/** The page of events. */
export function events(state) {
  const selector = selectorOf(state.route.query);
  const where = state.ownNamespace ? `-n ${quoted(state.ownNamespace)}` : "-A";
  const head = ["Time", "Reason", "Object", ...(state.narrow ? [] : ["Message"])].map((word) => html`<th scope="col">${word}</th>`);
  return html`${title("Events")}${cli(`kubectl get events ${where}${selector ? ` --field-selector ${quoted(selector)}` : ""}`, state.act.copy)}${filters(state)}
    ${answered(state.store.page, "events", ({items, more}) => (items.length ? html`${table("Events", head, items.slice(0, maxShown).map((e) => row(state, e)))}
      ${items.length > maxShown || more ? html`<p class="hint">${glyph("held")} The newest ${Math.min(maxShown, items.length)} of ${number(items.length)} that were read${more ? "; there are more: name a cluster, an object or a reason" : ""}.</p>` : nothing}` : nothingHappened(state, selector)))}`;
}
