/**
 * Stacked bars by day or hour, drawn as SVG. The numbers are exact; only the heights are floating-point shares. A table
 * has the same numbers for people who cannot see the chart.
 */
import { html, useLayoutEffect, useRef, useState } from '../html.js';
import { share, usd, usdShort } from '../money.js';
import { shortDay, shortHour } from '../time.js';
import { count } from '../words.js';
import { Amount } from './show.js';

const HEIGHT = 220;
const TOP = 12;
const BOTTOM = 24;
const TICKS = 4n;
/** Width of one label of the time axis. */
const LABEL_WIDTH = 72;
const HOUR_LABEL_WIDTH = 96;

/**
 * @typedef {{day: string, total: bigint, parts: bigint[], calls: number, denied: number}} Day `day` is a date, or the
 *   ISO time of an hour
 * @param {{days: Day[], series: string[], total: bigint, about: string, hours?: boolean}} props
 *   the heading shows `total` and `about`
 */
export function StackedDays({ days, series, total, about, hours = false }) {
  const label = `${usd(total)} ${about}`;
  const named = hours ? shortHour : shortDay;
  const box = useRef(null);
  const [width, setWidth] = useState(720);
  const [at, setAt] = useState(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(260, Math.floor(entry.contentRect.width))));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const { top, ticks } = scale(days.reduce((most, { total }) => (total > most ? total : most), 0n));
  const left = 8 + 7 * Math.max(...ticks.map((tick) => usdShort(tick).length));
  const step = (width - left) / days.length;
  const y = (amount) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share(amount, top));
  const hover = (event) => {
    const index = Math.floor((event.clientX - box.current.getBoundingClientRect().left - left) / step);
    setAt(index >= 0 && index < days.length ? index : null);
  };
  return html`<figure class="chart">
    <p class="chart-readout num" aria-hidden="true">${at === null ? html`<span class="muted"><${Amount} of=${total} /> ${about}</span>` : html`<${Readout} day=${days[at]} named=${named} />`}</p>
    <div ref=${box} class="chart-box">
      <svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${label}
        onPointerMove=${hover} onPointerLeave=${() => setAt(null)}>
        ${ticks.map((tick) => html`<g key=${String(tick)}>
          <line class="chart-grid" x1=${left} x2=${width} y1=${y(tick)} y2=${y(tick)} />
          <text class="chart-text" x=${left - 8} y=${y(tick) + 4} text-anchor="end">${usdShort(tick)}</text>
        </g>`)}
        ${at !== null && html`<rect class="chart-hover" x=${left + at * step} y=${TOP} width=${step} height=${HEIGHT - TOP - BOTTOM} />`}
        ${days.map((day, index) => html`<${Bar} key=${day.day} day=${day} x=${left + index * step} step=${step} y=${y} />`)}
        ${labels(days.length, width - left, hours ? HOUR_LABEL_WIDTH : LABEL_WIDTH).map((index) => html`<text key=${index} class="chart-text" x=${left + (index + 0.5) * step} y=${HEIGHT - 6}
          text-anchor="middle">${named(days[index].day)}</text>`)}
      </svg>
    </div>
    <${AsTable} days=${days} series=${series} label=${label} hours=${hours} />
  </figure>`;
}

function Readout({ day, named }) {
  return html`<strong>${named(day.day)}</strong> <${Amount} of=${day.total} />
    <span class="muted"> · ${count(day.calls, 'call')} · ${day.denied.toLocaleString('en-US')} denied</span>`;
}

function Bar({ day, x, step, y }) {
  const gap = step > 6 ? Math.min(6, step * 0.22) : 0.5;
  let below = 0n;
  return html`<g>${day.parts.map((part, index) => {
    if (part <= 0n) return null;
    const from = y(below);
    below += part;
    return html`<rect key=${index} class=${`c${(index % 8) + 1}`} x=${x + gap / 2} width=${step - gap} y=${y(below)} height=${Math.max(from - y(below), 0.5)} />`;
  })}</g>`;
}

/** The top of the axis and its grid lines, at steps of 1, 2 or 5 times a power of ten. */
function scale(most) {
  let step = 1n;
  const factors = [2n, 5n, 10n];
  for (let power = 1n, turn = 0; step * TICKS < most; turn += 1) {
    step = power * factors[turn % 3];
    if (turn % 3 === 2) power *= 10n;
  }
  if (most === 0n) step = 250_000_000n;
  const ticks = [];
  for (let tick = 0n; tick < most + step && ticks.length <= Number(TICKS); tick += step) ticks.push(tick);
  return { top: ticks.at(-1), ticks };
}

/** Indexes of the bars that get a label: as many as fit. */
function labels(many, width, each) {
  const every = Math.max(1, Math.ceil(many / Math.max(2, Math.floor(width / each))));
  return Array.from({ length: many }, (_, index) => index).filter((index) => (many - 1 - index) % every === Math.floor(every / 2));
}

function AsTable({ days, series, label, hours }) {
  return html`<details class="chart-table">
    <summary>Show as a table</summary>
    <div class="table-scroll" role="group" aria-label=${`${label}, as a table`} tabindex="0"><table class="table">
      <caption class="sr-only">${label}</caption>
      <thead><tr><th scope="col">${hours ? 'Hour' : 'Day'}</th>${series.map((name, index) => html`<th key=${index} scope="col" class="num"><bdi class="name" title=${name}>${name}</bdi></th>`)}
        <th scope="col" class="num">Total</th><th scope="col" class="num">Calls</th><th scope="col" class="num">Denied</th></tr></thead>
      <tbody>${[...days].reverse().map((day) => html`<tr key=${day.day}><th scope="row" class="nowrap">${hours ? shortHour(day.day) : day.day}</th>
        ${day.parts.map((part, index) => html`<td key=${index} class="num"><${Amount} of=${part} /></td>`)}
        <td class="num"><${Amount} of=${day.total} /></td><td class="num">${day.calls.toLocaleString('en-US')}</td><td class="num">${day.denied.toLocaleString('en-US')}</td></tr>`)}</tbody>
    </table></div>
  </details>`;
}
