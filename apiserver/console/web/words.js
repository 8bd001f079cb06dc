// Numbers and times in words. All functions are pure.

/** Returns how long ago a time was: "4m", as kubectl prints it. @param {string | number | undefined} at @param {number} now in ms */
export function ago(at, now) {
  if (!at) return "";
  return span(now - new Date(at).getTime());
}

/** Returns a time span of ms: "12s", "4m", "3h", "2d". */
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

/** Returns a time span of ms more exactly: "3.6 s", "12 s", "30 min"; "" where it is none. */
export function duration(ms) {
  if (Number.isNaN(ms)) return "";
  if (ms > 0 && ms < 60_000 && ms % 1000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  const s = Math.round(ms / 1000);
  return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
}

/** Returns a number with thin spaces between thousands. @param {number} n */
export const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

/** Returns "1 cluster", "2 clusters". @param {number} n @param {string} word @param {string} [many] */
export const count = (n, word, many = `${word}s`) => `${number(n)} ${n === 1 ? word : many}`;

// Making a format takes long, using one does not.
const clockFormat = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});
const dateFormat = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium"});

/** Returns a time by a format; the text itself where it is no time. */
function formatted(format, at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : format.format(time);
}

/** Returns the time of day, in the user's own zone and 24 hours. */
export const clock = (at) => formatted(clockFormat, at);

/** Returns day and time, in the user's own zone. */
export const date = (at) => formatted(dateFormat, at);

const units = {Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, "": 1};

/** Returns the number of a Kubernetes quantity, as "1500m"; NaN if it is none. @param {string | number | undefined} text */
export function quantity(text) {
  const [, n, unit] = /^([0-9.]+)([A-Za-z]*)$/.exec(String(text ?? "")) ?? [];
  return n === undefined || !(unit in units) ? NaN : Number(n) * units[unit];
}

/** Returns a number with one digit behind the point if it is small. */
export const short = (n) => (Number.isNaN(n) ? "?" : n < 10 && n % 1 ? n.toFixed(1) : number(Math.round(n)));

/** Returns a word as a shell takes it. @param {string} word */
export const quoted = (word) => (/^[-A-Za-z0-9_./=:,@%+]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
