// Requests to the federation's API, and to the commands beside it. All of them bear the console's own header: at the local
// gate with its secret, which the first address brings along and which is kept for this host and port.

const brought = /^#gate=(\w+)$/.exec(location.hash);
if (brought) {
  localStorage.setItem("gate", brought[1]);
  history.replaceState(null, "", location.pathname + location.search);
}
const own = {"X-Federation-Console": localStorage.getItem("gate") ?? "1"};

/** An answer that is no success, with the server's own words. */
export class APIError extends Error {
  /** @param {number} code HTTP status; 0: there was no answer. @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * Sends a request and returns its response.
 * @param {string} path @param {RequestInit & {json?: unknown, repeatable?: boolean}} [how] json is what is sent; repeatable, which GET is, says that it may be sent twice.
 * @returns {Promise<Response>}
 */
async function send(path, how = {}) {
  const headers = {Accept: "application/json", ...own, ...how.headers};
  const body = how.json === undefined ? undefined : JSON.stringify(how.json);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const ask = () => fetch(path, {...how, headers, body, cache: "no-store"});
  let response;
  try {
    // A browser breaks off what is under way when the machine's network changes: what may be sent twice is.
    response = await ask().catch((err) => {
      if (how.signal?.aborted || !(how.repeatable ?? !how.method)) throw err;
      return ask();
    });
  } catch (err) {
    if (how.signal?.aborted) throw err;
    throw new APIError(0, "no answer: does the server run, or kubectl federation console?");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).message ?? text;
  } catch {
    // it is no Status: the text is the message
  }
  throw new APIError(response.status, message.trim() || response.statusText || `status ${response.status}`);
}

/** Returns the JSON of an answer. */
export async function get(path, how) {
  return (await send(path, how)).json();
}

/** Deletes what is at path. */
export const del = (path) => send(path, {method: "DELETE"});

/** Posts json and returns the JSON of the answer. */
export const post = (path, json, how) => get(path, {...how, method: "POST", json});

/**
 * Lists all objects of a resource, page by page.
 * @param {string} path @param {AbortSignal} signal
 * @returns {Promise<{items: any[], resourceVersion: string}>}
 */
export async function list(path, signal) {
  const items = [];
  let next = "";
  for (;;) {
    const page = await get(`${path}?limit=500${next && `&continue=${encodeURIComponent(next)}`}`, {signal});
    items.push(...(page.items ?? []));
    next = page.metadata?.continue ?? "";
    if (!next) return {items, resourceVersion: page.metadata?.resourceVersion ?? ""};
  }
}

/**
 * Watches a resource from a version on, until the stream ends.
 * @param {string} path @param {string} version @param {AbortSignal} signal @param {(event: any) => void} each
 */
export async function watch(path, version, signal, each) {
  const response = await send(`${path}?watch=1&allowWatchBookmarks=1&resourceVersion=${encodeURIComponent(version)}`, {signal});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) each(JSON.parse(line));
  }
}
