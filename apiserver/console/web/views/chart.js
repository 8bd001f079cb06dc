// Charts over time, drawn as SVG. All are functions of values: times are ms since the beginning, x and y are units of the SVG.
import {html, nothing, svg} from "../vendor/lit-html/lit-html.js";
import {duration, number} from "../words.js";

const left = 46;
const right = 12;
const steps = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].map((s) => s * 1000);

/** A step between ticks, of which some four are in a time of so many ms. */
const stepFor = (ms) => steps.find((s) => ms / s <= 4.5) ?? steps.at(-1);

/**
 * Returns the scale of a time in which most happens at the beginning and after a turn: what is between them is shortened where it is long.
 * @param {{width: number, busy: number, turn: number | undefined, end: number}} what busy is when the beginning is over
 * @returns {{x: (ms: number) => number, width: number, end: number, cut: {from: number, to: number} | undefined, ticks: {x: number, word: string}[]}}
 */
export function timeScale({width, busy, turn, end}) {
  const room = width - left - right;
  const until = turn ?? end;
  const cut = until - busy > 1.5 * busy;
  const after = turn !== undefined && end > turn;
  const knots = cut ? [[0, 0], [busy, after ? 0.44 : 0.8], [until, after ? 0.58 : 1], ...(after ? [[end, 1]] : [])] : [[0, 0], [end, 1]];
  const x = (ms) => {
    const i = Math.max(1, knots.findIndex(([at]) => ms <= at) === -1 ? knots.length - 1 : knots.findIndex(([at]) => ms <= at));
    const [[a, from], [b, to]] = [knots[i - 1], knots[i]];
    return left + room * Math.max(0, Math.min(1, from + ((to - from) * (ms - a)) / (b - a || 1)));
  };
  const ticks = [];
  const divide = (from, to, sign) => {
    const step = stepFor((to - from) * Math.max(1, 300 / (x(to) - x(from))));
    for (let ms = 0; from + ms <= to; ms += step) ticks.push({x: x(from + ms), word: `${sign}${duration(ms)}`});
  };
  divide(0, cut ? busy : until, "");
  if (after) divide(until, end, "+");
  return {x, width, end, cut: cut ? {from: x(busy), to: x(until)} : undefined, ticks: ticks.filter((t, i) => i === 0 || t.x - ticks[i - 1].x > 28)};
}

/** Returns places that are at least gap apart, between two ends, each as near to where it should be as that allows. */
export function apart(places, gap, from, to) {
  const put = [];
  for (const p of places) put.push(Math.max(p, from, (put.at(-1) ?? -Infinity) + gap));
  for (let i = put.length - 1, most = to; i >= 0; i--, most -= gap) put[i] = Math.min(put[i], most);
  return put;
}

/** The lines of the marks, from the top of a chart to its bottom; the shortened time. */
const ground = (scale, marks, height) => svg`${scale.cut ? svg`<rect class="cut" x=${scale.cut.from} y="0" width=${scale.cut.to - scale.cut.from} height=${height}></rect>` : nothing}
  ${marks.map((m) => svg`<path class="mark ${m.back ? "back" : ""}" d=${`M${scale.x(m.after)} 0V${height}`}></path>`)}`;

/** The numbers of the marks above the charts, each with a way to its line. Those are listed in a table. */
export function numbers(scale, marks) {
  const where = apart(marks.map((m) => scale.x(m.after)), 19, left, scale.width - right);
  return html`<svg class="chart" viewBox="0 0 ${scale.width} 32" aria-hidden="true">${marks.map((m, i) => svg`<path class="mark ${m.back ? "back" : ""}" d=${`M${where[i]} 16L${scale.x(m.after)} 32`}></path><circle class="number" cx=${where[i]} cy="9.5" r="8.5"></circle><text class="number" x=${where[i]} y="13.5">${i + 1}</text>`)}</svg>`;
}

/** The time below the charts. */
export const axis = (scale) => html`<svg class="chart" viewBox="0 0 ${scale.width} 20" aria-hidden="true">${scale.ticks.map((t) => svg`<path class="tick" d=${`M${t.x} 0v4`}></path><text class="tick" x=${t.x} y="16">${t.word}</text>`)}</svg>`;

/** What a line shows, in words. @param {[number, number][]} points */
export function described(points) {
  const values = points.map(([, v]) => v);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (low === high) return `${number(low)} all the time`;
  const first = (value) => `${number(value)} after ${duration(points.find(([, v]) => v === value)[0])}`;
  return `${number(values[0])} at the beginning, ${number(values.at(-1))} at the end; the lowest is ${first(low)}, the highest ${first(high)}`;
}

/** The ends of a vertical axis: from 0, unless the values are far from it and near to each other. */
export function range(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (low === high) return [0, high || 1];
  const round = 10 ** Math.floor(Math.log10(high - low));
  return low > high / 2 ? [Math.max(0, round * Math.floor((low - (high - low) / 2) / round)), high] : [0, high];
}

/**
 * A chart of a number that stays until its next point.
 * @param {string} id @param {string} word what the number is @param {[number, number][]} points time and value @param {any} scale @param {any[]} marks
 */
export function chart(id, word, points, scale, marks) {
  const [top, bottom, height] = [8, 68, 74];
  const [low, high] = range(points.map(([, v]) => v));
  const y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low);
  const [[from, begins], ...rest] = points;
  const line = `M${scale.x(from)} ${y(begins)}${rest.map(([ms, v]) => `H${scale.x(ms).toFixed(1)}V${y(v).toFixed(1)}`).join("")}H${scale.x(scale.end)}`;
  return html`<figure><figcaption>${word}</figcaption><svg class="chart" role="img" aria-labelledby="${id}-title" aria-describedby="${id}-desc" viewBox="0 0 ${scale.width} ${height}"><title id="${id}-title">${word}</title><desc id="${id}-desc">${described(points)}</desc>
    ${ground(scale, marks, height)}${[low, high].map((v) => svg`<path class="grid" d=${`M${left} ${y(v)}H${scale.width - right}`}></path><text class="value" x=${left - 6} y=${y(v) + 4}>${number(v)}</text>`)}
    ${low ? nothing : svg`<path class="area" d=${`${line}V${bottom}H${scale.x(from)}z`}></path>`}${svg`<path class="curve" d=${line}></path>`}</svg></figure>`;
}
