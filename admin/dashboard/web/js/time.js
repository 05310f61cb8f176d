/**
 * Times as the dashboard shows them: UTC, since caps and days are, with how long ago they were.
 */
import { html } from './html.js';

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

/**
 * A time on the page. `full` writes the UTC time out with the relative one behind it; otherwise the UTC time is the title.
 * @param {{at: string|null, full?: boolean, none?: string}} props
 */
export function Time({ at, full = false, none = '–' }) {
  if (!at) return html`<span class="muted">${none}</span>`;
  if (full) {
    return html`<time dateTime=${at}><span class="nowrap">${utc(at)}</span> <span class="muted nowrap">(${relative(at)})</span></time>`;
  }
  return html`<time dateTime=${at} title=${utc(at)} class="nowrap">${relative(at)}</time>`;
}
