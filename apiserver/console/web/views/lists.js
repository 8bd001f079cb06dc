// The lists of workloads and Services: a page of the server's own table at a time.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {hashOf, kinds, objectLink, served} from "../state.js";
import {quoted} from "../words.js";
import {answered, cli, empty, table, title} from "./parts.js";

/** The rows of one page. */
export const pageSize = 200;

/** The kinds that each list is of. */
const listed = {workloads: kinds, services: served};

/** The kind whose list a route is. */
export function kindOf(route) {
  const ofPage = listed[route.path[0]];
  return ofPage.find((k) => k.plural === route.query.kind) ?? ofPage[0];
}

/** The namespace of a list: "" is all. @param {any} route @param {string} own the user's, where all may not be listed */
export const namespaceOf = (route, own) => (route.query.namespace === undefined ? own : route.query.namespace === "*" ? "" : route.query.namespace);

/** The columns beside name and namespace that are worth their place. */
const shownColumns = (t) => t.columnDefinitions.map((c, i) => ({...c, i})).filter((c) => c.priority === 0 && c.name !== "Name");

function filters(state, kind, namespace) {
  const change = (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget.form ?? event.currentTarget);
    state.act.go({kind: form.get("kind") ?? "", namespace: String(form.get("namespace")).trim() || "*", after: ""});
  };
  return html`<form class="filters" @submit=${change}>
    <label>Kind <select name="kind" @change=${change}>${listed[state.route.path[0]].map((k) => html`<option value=${k.plural} ?selected=${k.plural === kind.plural}>${k.kind}</option>`)}</select></label>
    <label>Namespace <input name="namespace" .value=${namespace} placeholder="all" autocomplete="off" spellcheck="false"></label><button>Show</button>
  </form>`;
}

function none(state, kind) {
  const namespace = namespaceOf(state.route, state.ownNamespace);
  const elsewhere = namespace && !state.ownNamespace ? html`<p><a href=${hashOf(state.route, {namespace: "*"})}>Those of all namespaces</a></p>` : nothing;
  return empty(`There is no ${kind.kind} ${namespace ? `in namespace ${namespace}` : "yet"}.`, "Make one with kubectl, as in any cluster:", html`${cli(`kubectl ${kind.make}${namespace ? ` -n ${quoted(namespace)}` : ""}`, state.act.copy)}${elsewhere}`);
}

function rows(state, kind, t) {
  const columns = shownColumns(t);
  const items = t.rows ?? [];
  if (!items.length) return none(state, kind);
  const cells = (r) => {
    const {namespace, name} = r.object.metadata;
    return html`<tr><td>${namespace}</td><th scope="row"><a href=${objectLink(kind.kind, namespace, name)}>${name}</a></th>${columns.map((c) => html`<td class=${c.type === "integer" ? "n" : ""}>${String(r.cells[c.i] ?? "")}</td>`)}</tr>`;
  };
  const head = html`<th scope="col">Namespace</th><th scope="col">Name</th>${columns.map((c) => html`<th scope="col" class=${c.type === "integer" ? "n" : ""}>${c.name}</th>`)}`;
  const more = t.metadata?.continue;
  return html`${table(kind.kind, head, items.map(cells))}
    <p class="pager">${state.route.query.after ? html`<a href=${hashOf(state.route, {after: ""})}>First page</a>` : nothing} ${more ? html`<a href=${hashOf(state.route, {after: more})}>Next ${pageSize}${t.metadata.remainingItemCount ? ` of ${t.metadata.remainingItemCount} more` : ""}</a>` : nothing}</p>`;
}

/** The page of workloads or of Services. */
export function lists(state) {
  const kind = kindOf(state.route);
  const namespace = namespaceOf(state.route, state.ownNamespace);
  return html`${title(kind.word ?? "Workloads")}
    ${cli(`kubectl get ${kind.plural} ${namespace ? `-n ${quoted(namespace)}` : "-A"}`, state.act.copy)}
    ${filters(state, kind, namespace)}${answered(state.store.page, kind.plural, (t) => rows(state, kind, t))}`;
}
