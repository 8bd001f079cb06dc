// The console: what the user does changes the state, and the state is drawn, at most once a frame.
import {html, render} from "./vendor/lit-html/lit-html.js";
import {del, get, post} from "./api.js";
import {hashOf, kinds, pages, route, served} from "./state.js";
import {Answer, Store} from "./store.js";
import {drills} from "./views/drill.js";
import {runList} from "./views/dialogs.js";
import {events, eventTime, selectorOf} from "./views/events.js";
import {failover, reviewSpec, scopeOf} from "./views/failover.js";
import {frame} from "./views/frame.js";
import {ingress} from "./views/ingress.js";
import {kindOf, lists, namespaceOf, pageSize} from "./views/lists.js";
import {login} from "./views/login.js";
import {overview} from "./views/overview.js";
import {empty} from "./views/parts.js";
import {drill} from "./views/report.js";
import {service} from "./views/service.js";
import {workload} from "./views/workload.js";

const store = new Store(drawSoon);
const state = {
  store, route: route(location.hash), now: Date.now(), narrow: false, theme: localStorage.getItem("theme") ?? "", note: "", open: "", cell: "",
  user: "", groups: [], login: undefined, session: false, ownNamespace: "", can: {clusters: false, drills: false},
  search: "", found: undefined, asked: undefined, typed: "", preview: undefined, runs: [],
  act: {},
};

const views = {"": overview, workloads: lists, services: lists, workload, service, ingress, failover, drills, drill, events};
const unknown = () => empty("There is no such page.", "The address may be of another version.", html`<p><a href="#/">Overview</a></p>`);
const page = (s) => s.login ? login(s) : html`${(views[s.route.path[0] ?? ""] ?? unknown)(s)}${runList(s)}`;

let drawing = false;
let printing = false; // on paper a chart is as wide as on a desk
let marked = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(drawNow);
}

/** The shortest time in ms between two frames for what changes by itself. Where much does, the others are free for the user. */
const between = 200;
let soon = 0;
let drawnAt = 0;
function drawSoon() {
  soon ||= setTimeout(draw, drawnAt + between - performance.now());
}

function drawNow() {
  drawing = false;
  clearTimeout(soon);
  soon = 0;
  drawnAt = performance.now();
  state.now = Date.now();
  state.narrow = innerWidth < 700 && !printing;
  if (store.clusters.error?.code === 401 && introduced && !state.login) askLogin();
  render(frame(state, page), root);
  showDialogs();
  if (store.clusters.loaded && !marked) marked = Boolean(performance.mark("clusters-shown"));
}

const root = document.getElementById("app");
root.replaceChildren();
const dialog = (id) => /** @type {HTMLDialogElement} */ (document.getElementById(id));

/** Has those dialogs open that the state has open. */
function showDialogs() {
  const wanted = {drawer: Boolean(state.route.query.show), search: state.open === "search", help: state.open === "help", act: state.open === "act"};
  for (const [id, open] of Object.entries(wanted)) {
    if (open && !dialog(id).open) dialog(id).showModal();
    if (!open && dialog(id).open) dialog(id).close();
  }
}

let noteTimer = 0;
function note(text) {
  state.note = text;
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => ((state.note = ""), draw()), 6000);
  draw();
}

Object.assign(state.act, {
  go: (changes) => {
    const now = route(location.hash); // the state's may be older: it follows links by an event
    const to = hashOf(now, changes);
    if (to === hashOf(now)) return;
    location.hash = to;
    turn(); // at once: a frame may come before the event
  },
  open: (id) => ((state.open = id), draw()),
  shut: (id) => {
    if (id === "drawer") state.act.go({show: ""});
    else if (state.open === id) state.open = "";
    draw();
  },
  skip: (event) => (event.preventDefault(), document.getElementById("main").focus()),
  focusCell: (name) => ((state.cell = name), draw()),
  copy: async (text) => {
    await navigator.clipboard.writeText(text).then(() => note("Copied."), () => note("The browser did not let it be copied."));
  },
  print: () => print(),
  nextTheme: () => {
    state.theme = {"": "light", light: "dark", dark: ""}[state.theme] ?? "";
    localStorage.setItem("theme", state.theme);
    applyTheme();
    draw();
  },
  search: (word) => {
    state.search = word;
    find(word.trim());
    draw();
  },
  // Without a frame in between: Enter right after the last key finds the button enabled.
  type: (word) => ((state.typed = word), drawNow()),
  confirm: (asked) => {
    Object.assign(state, {asked, typed: "", preview: undefined, open: "act"});
    foresee(asked.action);
    draw();
  },
  run: begin,
  logIn: async (event) => {
    event.preventDefault();
    state.login.busy = true;
    draw();
    try {
      await post("session", {token: new FormData(event.target).get("token")}, {repeatable: true});
      location.reload(); // from the beginning, as somebody else
    } catch (error) {
      Object.assign(state.login, {busy: false, error});
      draw();
    }
  },
  logOut: () => del("session").then(() => location.reload(), (err) => note(err.message)),
});

/** Shows the page to log in, with the ways that the server offers. */
function askLogin() {
  state.login = {oidc: false, error: undefined, busy: false};
  get("session").then(({oidc}) => ((state.login.oidc = oidc), draw()), (error) => ((state.login.error = error), draw()));
}

function applyTheme() {
  document.documentElement.dataset.theme = state.theme;
}

/** Begins an action on the local side, and follows it. */
async function begin(action) {
  try {
    const {command} = await post("/local/runs", action);
    note(`Begun: ${command}`);
    await followRuns();
  } catch (err) {
    note(err.message);
  }
}

let following = false;
/** Asks how the commands that were begun stand, until all have ended. */
async function followRuns() {
  if (following) return;
  following = true;
  try {
    do {
      state.runs = (await get("/local/runs")).filter((r) => !/ --dry-run(\s|$)/.test(r.command));
      draw();
      await new Promise((done) => setTimeout(done, 500));
    } while (state.runs.some((r) => !r.ended));
    state.runs = (await get("/local/runs")).filter((r) => !/ --dry-run(\s|$)/.test(r.command));
  } finally {
    following = false;
    draw();
  }
}

/** Has the command say what it would do. */
async function foresee(action) {
  try {
    const {id} = await post("/local/runs", {...action, dryRun: true});
    for (let ended = false; !ended && state.asked?.action === action; ) {
      const one = (await get("/local/runs")).find((r) => r.id === id);
      state.preview = one;
      ended = !one || Boolean(one.ended);
      draw();
      await new Promise((done) => setTimeout(done, 300));
    }
  } catch (err) {
    state.preview = {output: "", error: err.message, ended: true};
    draw();
  }
}

let finding = new AbortController();
/** Looks for objects of a name, by kind. */
function find(word) {
  finding.abort();
  state.found = undefined;
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(word)) return;
  finding = new AbortController();
  const {signal} = finding;
  const all = [...kinds, ...served];
  const ask = async (k) => {
    const items = (await get(`${resourcePath(k.path, k.plural, state.ownNamespace)}?limit=20&fieldSelector=${encodeURIComponent(`metadata.name=${word}`)}`, {signal})).items ?? [];
    return items.filter((o) => !o.metadata.labels?.["federation.kubernetes.io/revision-of"]).map((o) => ({kind: k.kind, namespace: o.metadata.namespace, name: o.metadata.name}));
  };
  setTimeout(async () => {
    if (signal.aborted) return;
    state.found = new Answer(async () => (await Promise.all(all.map(ask))).flat(), draw, 0);
    await state.found.once(signal);
  }, 200);
}

const resourcePath = (version, plural, namespace) => `${version === "v1" ? "/api/v1" : `/apis/${version}`}${namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ""}/${plural}`;

/** What each page asks for beside the store, and how often, in ms. */
const questions = {
  workload: ({path: [, resource, namespace, name]}) => [5000, (signal, early) => explain(namespace, `${resource}/${name}`, signal, early)],
  ingress: ({path: [, namespace, name]}) => [5000, (signal, early) => explain(namespace, `ingresses.networking.k8s.io/${name}`, signal, early)],
  service: ({path: [, namespace, name]}) => [5000, (signal, early) => askService(namespace, name, signal, early)],
  workloads: (r) => [10_000, (signal) => askTable(r, signal)],
  services: (r) => [10_000, (signal) => askTable(r, signal)],
  failover: ({query}) => (scopeOf(query) ? [30_000, (signal) => post("/apis/federation/v1beta1/failoverreviews", {apiVersion: "federation/v1beta1", kind: "FailoverReview", spec: reviewSpec(scopeOf(query))}, {signal})] : undefined),
  events: ({query}) => [5000, (signal) => askEvents(query, signal)],
};

const localPath = (command, namespace, object) => `/local/${command}?namespace=${encodeURIComponent(namespace)}&object=${encodeURIComponent(object)}`;

/** For how long clusters are waited for before a page is shown without those that are silent. */
const shortWait = "300ms";

/**
 * Asks where an object is. A page that has nothing to show yet does not wait for clusters that are silent: early takes what the others have said.
 * @param {string} namespace @param {string} object @param {AbortSignal} signal @param {((data: any) => void) | undefined} early
 */
async function explain(namespace, object, signal, early) {
  const path = localPath("explain", namespace, object);
  if (early) {
    const quick = await get(`${path}&wait=${shortWait}`, {signal});
    if (!quick.clusters.some((c) => c.copy === "unreadable")) return quick;
    early({...quick, asking: true});
  }
  return get(path, {signal});
}

async function askService(namespace, name, signal, early) {
  const object = `service/${name}`;
  const parts = [get(localPath("dns", namespace, object), {signal}), explain(namespace, object, signal, early && show), get(`${resourcePath("networking.k8s.io/v1", "ingresses", namespace)}?limit=500`, {signal})];
  const all = ([dns, explained, ingresses]) => ({dns: dns.value, dnsError: dns.reason, explained: explained.value, explainError: explained.reason, ingresses: ingresses.value, ingressError: ingresses.reason});
  async function show(quick) {
    early(all(await Promise.allSettled([parts[0], quick, parts[2]])));
  }
  return all(await Promise.allSettled(parts));
}

function askTable(r, signal) {
  const kind = kindOf(r);
  const path = resourcePath(kind.path, kind.plural, namespaceOf(r, state.ownNamespace));
  const after = r.query.after ? `&continue=${encodeURIComponent(r.query.after)}` : "";
  const selector = encodeURIComponent("!federation.kubernetes.io/revision-of");
  return get(`${path}?limit=${pageSize}&labelSelector=${selector}${after}`, {signal, headers: {Accept: "application/json;as=Table;g=meta.k8s.io;v=v1"}});
}

async function askEvents(query, signal) {
  const selector = selectorOf(query);
  const path = resourcePath("v1", "events", state.ownNamespace);
  let items = [];
  let next = "";
  for (let pages = 0; pages < 4; pages++) {
    const one = await get(`${path}?limit=500${selector && `&fieldSelector=${encodeURIComponent(selector)}`}${next && `&continue=${encodeURIComponent(next)}`}`, {signal});
    items = items.concat(one.items ?? []);
    next = one.metadata?.continue ?? "";
    if (!next) break;
  }
  items.sort((a, b) => Date.parse(eventTime(b)) - Date.parse(eventTime(a)));
  return {items, more: Boolean(next)};
}

let pageEnds = new AbortController();
let seen = new AbortController();
let asking = "";
let introduced = false;

/** Takes up the route of the address, and asks what its page needs. */
function turn() {
  state.route = route(location.hash);
  const {path, query} = state.route;
  document.title = `${path.length > 1 ? path.slice(1).join("/") : (pages.find((p) => p.path === (path[0] ?? ""))?.word ?? "Federation")} · Federation`;
  const key = hashOf(state.route, {show: "", all: ""});
  if (introduced && key !== asking) {
    asking = key;
    const [every, ask] = questions[path[0]]?.({path, query}) ?? [];
    store.page = ask && new Answer(ask, draw, every);
    followPage();
  }
  draw();
}

function followPage() {
  pageEnds.abort();
  pageEnds = new AbortController();
  store.page?.follow(AbortSignal.any([pageEnds.signal, seen.signal]));
}

/** A page that nobody sees holds no connections: a browser has few for each server. */
function look() {
  seen.abort();
  if (document.hidden) return;
  seen = new AbortController();
  store.follow(seen.signal);
  followPage();
}

let prefix = false;
function key(event) {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const to = prefix && pages.find((p) => p.key === event.key);
  prefix = event.key === "g";
  if (prefix) setTimeout(() => (prefix = false), 1500);
  if (to) location.hash = `#/${to.path}`;
  else if (event.key === "/") state.act.open("search");
  else if (event.key === "?") state.act.open("help");
  else return;
  event.preventDefault();
}

/** Asks who the user is, and what they may do. What is offered goes by that; whether it happens is the server's. */
async function introduce() {
  const may = async (verb, resource, more = {}) => (await post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: {resourceAttributes: {verb, resource, ...more}}})).status.allowed === true;
  const own = "federation";
  const [about, me, clusters, drillsToo, all] = await Promise.allSettled([
    get("/local/about"),
    post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview"}),
    may("patch", "clusters", {group: own}), may("create", "failoverdrills", {group: own}), may("list", "deployments", {group: "apps"}),
  ]);
  state.local = about.status === "fulfilled";
  state.user = me.value?.status?.userInfo?.username ?? "";
  state.groups = me.value?.status?.userInfo?.groups ?? [];
  if (me.reason?.code === 401) askLogin();
  else if (!state.local) get("session").then(({user}) => ((state.session = Boolean(user)), draw()), () => {}); // without an answer there is no session to end
  state.can = {clusters: state.local && clusters.value === true, drills: state.local && drillsToo.value === true};
  if (all.value === false) state.ownNamespace = about.value?.namespace ?? "default";
  introduced = true;
  turn();
  if (state.local) followRuns();
}

applyTheme();
addEventListener("hashchange", turn);
addEventListener("keydown", key);
document.addEventListener("visibilitychange", look);
for (const when of ["beforeprint", "afterprint"]) addEventListener(when, () => ((printing = when === "beforeprint"), drawNow()));
setInterval(draw, 1000);
look();
turn();
introduce();
