// What the pages show: lists that are kept by watches, and answers that are asked for again and again. A change calls
// changed, once for many.
import {APIError, get, list, watch} from "./api.js";

/** The longest silence of a watch, in ms: the server sends a bookmark each minute. */
const silence = 75_000;
const longestPause = 15_000;

/** One kind of object, kept up to date: a list, then a watch. */
export class Feed {
  /** @param {string} path of the resource @param {() => void} changed */
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    /** @type {Map<string, any>} by name */
    this.items = new Map();
    this.loaded = false;
    /** @type {number | undefined} since when it is behind, in ms; undefined: it is not */
    this.behindSince = Date.now();
    /** @type {Error | undefined} */
    this.error = undefined;
  }

  /**
   * Follows the kind until signal ends. When a watch ends a list comes first, not a watch from there on: Firefox says that a watch has begun only
   * once something comes, and until then the page would not know that it is current.
   */
  async follow(signal) {
    let pause = 500;
    while (!signal.aborted) {
      const began = Date.now();
      try {
        await this.#watch(await this.#list(signal), signal);
        this.#behind(undefined);
      } catch (err) {
        if (signal.aborted) return;
        this.#behind(err);
      }
      pause = Date.now() - began > 10_000 ? 500 : Math.min(pause * 2, longestPause);
      await sleep(pause, signal);
    }
  }

  #behind(error) {
    this.behindSince ??= Date.now();
    this.error = error;
    this.changed();
  }

  async #list(signal) {
    const {items, resourceVersion} = await list(this.path, signal);
    this.items = new Map(items.map((o) => [o.metadata.name, o]));
    this.loaded = true;
    this.#current();
    return resourceVersion;
  }

  #current() {
    this.behindSince = undefined;
    this.error = undefined;
    this.changed();
  }

  /** Watches from a version on until the stream ends, or nothing comes for too long. */
  async #watch(version, signal) {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), silence);
    try {
      await watch(this.path, version, AbortSignal.any([signal, quiet.signal]), (event) => {
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), silence);
        if (event.type === "ERROR") throw new APIError(event.object?.code ?? 500, event.object?.message ?? "the watch failed");
        if (event.type === "DELETED") this.items.delete(event.object.metadata.name);
        else if (event.type !== "BOOKMARK") this.items.set(event.object.metadata.name, event.object);
        this.#current();
      });
    } catch (err) {
      if (!quiet.signal.aborted) throw err;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** An answer that is asked for, and again after a while. */
export class Answer {
  /** @param {(signal: AbortSignal, early?: (data: any) => void) => Promise<any>} ask early takes a part of the first answer, to be shown until it is whole @param {() => void} changed @param {number} every ms between two questions, at least */
  constructor(ask, changed, every) {
    this.ask = ask;
    this.changed = changed;
    this.every = every;
    this.data = undefined;
    /** @type {Error | undefined} */
    this.error = undefined;
    this.at = 0;
  }

  /** Asks until signal ends: less often where an answer takes long. */
  async follow(signal) {
    while (!signal.aborted) {
      const began = performance.now();
      await this.once(signal);
      await sleep(Math.max(this.every, 10 * (performance.now() - began)), signal);
    }
  }

  async once(signal) {
    try {
      const early = (data) => ((this.data = data), this.changed());
      this.data = await this.ask(signal, this.at ? undefined : early);
      this.error = undefined;
      this.at = Date.now();
    } catch (err) {
      if (signal.aborted) return;
      this.error = err;
    }
    this.changed();
  }
}

const group = "/apis/federation/v1beta1";

/** Asks for the links that an administrator has made: as a list, so that it is no error where there are none. */
const links = async (signal) => (await get("/api/v1/namespaces/federation-system/configmaps?fieldSelector=metadata.name%3Dconsole-links", {signal})).items[0]?.data ?? {};

/** Everything that more than one page shows. */
export class Store {
  /** @param {() => void} changed */
  constructor(changed) {
    this.clusters = new Feed(`${group}/clusters`, changed);
    this.drills = new Feed(`${group}/failoverdrills`, changed);
    this.readiness = new Answer(async (signal) => (await list(`${group}/failoverreadinesses`, signal)).items, changed, 10_000);
    this.status = new Answer((signal) => get("/local/status", {signal}), changed, 15_000);
    this.links = new Answer(links, changed, 60_000);
    /** @type {Answer | undefined} what the current page shows beside that */
    this.page = undefined;
    this.changed = changed;
  }

  /** Follows everything until signal ends. A page that nobody sees holds no connections: a browser has six. */
  follow(signal) {
    for (const one of [this.clusters, this.drills, this.readiness, this.status, this.links]) one.follow(signal);
  }
}

/** Waits ms, or until signal ends. */
function sleep(ms, signal) {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
