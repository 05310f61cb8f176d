/**
 * Formats times in UTC, since caps count UTC days, together with their age.
 */
import { html, useEffect, useState } from './html.js';

/** Update interval of the relative times on a page. */
const EVERY_MS = 5000;

const STEPS = [
  ['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1],
];
const words = new Intl.RelativeTimeFormat('en');

/** @param {string|number|null} value @param {number} now milliseconds */
export function relative(value, now = Date.now()) {
  const seconds = Math.round((new Date(value).getTime() - now) / 1000);
  if (Number.isNaN(seconds)) return '';
  if (Math.abs(seconds) < 5) return 'just now';
  const [unit, length] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? STEPS.at(-1);
  return words.format(Math.trunc(seconds / length), unit);
}

/** `2026-11-21 08:05:11 UTC` */
export function utc(value) {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return '';
  return `${at.toISOString().slice(0, 10)} ${at.toISOString().slice(11, 19)} UTC`;
}

/** `21 Nov 08:05:11` in UTC, with the year unless it is the current one: for columns. */
export function stamp(value, now = Date.now()) {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return '';
  const iso = at.toISOString();
  const year = iso.slice(0, 4) === new Date(now).toISOString().slice(0, 4) ? '' : ` ${iso.slice(0, 4)}`;
  return `${shortDay(iso.slice(0, 10))}${year} ${iso.slice(11, 19)}`;
}

/** `812 ms`, `2.1 s`, `1 min 5 s`; null for none. @param {number|null} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return null;
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/** `21 Nov 08:00` of an ISO time, for axes. */
export function shortHour(at) {
  return `${shortDay(at.slice(0, 10))} ${at.slice(11, 16)}`;
}

/** `21 Nov` of `2026-11-21`, for axes. */
export function shortDay(day) {
  const at = new Date(`${day}T00:00:00Z`);
  return at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
}

const shown = new Set();
let timer = null;

/** One timer for all times of the page. It is stopped while no time is shown. */
function ticks(tick) {
  shown.add(tick);
  timer ??= setInterval(() => shown.forEach((one) => one()), EVERY_MS);
  return () => {
    shown.delete(tick);
    if (shown.size > 0) return;
    clearInterval(timer);
    timer = null;
  };
}

/** The age of a time in words. The component is redrawn as it grows. */
function useRelative(at) {
  const [, draw] = useState('');
  useEffect(() => ticks(() => draw(relative(at))), [at]);
  return relative(at);
}

/**
 * A time on the page. By default it shows the relative time, with the UTC time as title. `full` shows the UTC time
 * followed by the relative one; `short` shows the UTC time for a column, with the relative one as title.
 * @param {{at: string|null, full?: boolean, short?: boolean, none?: string}} props
 */
export function Time({ at, none = '–', ...way }) {
  return at ? html`<${Moment} at=${at} ...${way} />` : html`<span class="muted">${none}</span>`;
}

function Moment({ at, full = false, short = false }) {
  const ago = useRelative(at);
  if (full) return html`<time dateTime=${at}><span class="nowrap">${utc(at)}</span> <span class="muted nowrap">(${ago})</span></time>`;
  if (short) return html`<time dateTime=${at} title=${ago} class="stamp num nowrap">${stamp(at)}</time>`;
  return html`<time dateTime=${at} title=${utc(at)} class="nowrap">${ago}</time>`;
}
