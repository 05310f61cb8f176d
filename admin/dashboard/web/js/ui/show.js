/**
 * Small components that show a value: names, badges, meters, lists of facts, the head of a page, sections.
 */
import { html, useEffect } from '../html.js';
import { nanos, share, usd, usdBrief } from '../money.js';
import { setAbout } from '../title.js';

/** A name chosen by a user: isolated from the direction of the text around it, shortened, complete in the title. */
export function Name({ of, none = '–' }) {
  if (of === null || of === undefined || of === '') return html`<span class="muted">${none}</span>`;
  return html`<bdi class="name" title=${of}>${of}</bdi>`;
}

/** An id: shortened by the layout, complete in the title. */
export function Id({ of }) {
  return of ? html`<code class="id" title=${of} dir="ltr">${of}</code>` : html`<span class="muted">–</span>`;
}

const TONES = {
  active: 'ok', approved: 'ok', settled: 'ok', completed: 'ok', delivered: 'ok', released: 'ok', confirmed: 'ok', enabled: 'ok',
  frozen: 'bad', denied: 'bad', failed: 'bad', revoked: 'bad', disputed: 'bad', expired: 'bad', closed: 'bad', disabled: 'bad',
  pending: 'warn', paused: 'warn', open: 'warn', kept: 'warn', estimated: 'warn', funded: 'warn', pending_approval: 'warn',
};

/** The name of a state. The name determines the colour unless `tone` does; the colour never carries meaning alone. */
export function Badge({ of, tone }) {
  const word = String(of);
  return html`<span class=${`badge badge-${tone ?? TONES[word] ?? 'plain'}`}>${word.replaceAll('_', ' ')}</span>`;
}

/** An amount with all its digits. `sign` writes + before incoming amounts. */
export function Money({ of, none, sign = false }) {
  const amount = typeof of === 'bigint' ? of : nanos(of);
  return html`<span class="num nowrap">${sign && amount !== null && amount > 0n ? '+' : ''}${usd(of, none)}</span>`;
}

/** An amount in a table, rounded by `usdBrief`. The title has the exact amount where it differs. */
export function Amount({ of, none, sign = false }) {
  const amount = typeof of === 'bigint' ? of : nanos(of);
  const [exact, brief] = [usd(amount, none), usdBrief(amount, none)];
  return html`<span class=${exact === brief ? 'num nowrap' : 'num nowrap rounded'} title=${exact === brief ? null : `Exactly ${exact}`}>${sign && amount !== null && amount > 0n ? '+' : ''}${brief}</span>`;
}

/**
 * The used share of a limit, in words and as a bar.
 * @param {{label: string, used: string|number|bigint, limit: string|number|null, money?: boolean, hint?: string}} props
 */
export function Meter({ label, used, limit, money = true, hint }) {
  const amount = (value) => (typeof value === 'bigint' ? value : nanos(value));
  const text = (value) => (money ? usd(value) : Number(value).toLocaleString('en-US'));
  const part = limit === null ? 0 : share(amount(used), amount(limit));
  const tone = part >= 1 ? 'bad' : part >= 0.8 ? 'warn' : 'ok';
  const percent = Math.floor(part * 100);
  return html`<div class="meter">
    <div class="meter-text">
      <span>${label}</span>
      <span class="num"><strong>${text(used)}</strong> <span class="muted">${limit === null ? 'no limit' : `of ${text(limit)}`}</span></span>
    </div>
    ${limit !== null && html`<div class=${`meter-track meter-${tone}`} role="meter" aria-label=${label}
        aria-valuemin="0" aria-valuemax="100" aria-valuenow=${percent} aria-valuetext=${`${text(used)} of ${text(limit)}, ${percent}%`}>
      <div class="meter-fill" style=${{ width: `${Math.max(part * 100, part > 0 ? 1 : 0)}%` }}></div>
    </div>`}
    ${hint && html`<p class="hint">${hint}</p>`}
  </div>`;
}

/** Progress of long work; indeterminate without `max`. */
export function Progress({ label, value, max }) {
  const known = max !== undefined && max > 0;
  return html`<div class="progress" role="status">
    <div class="meter-text"><span>${label}</span>${known && html`<span class="num muted">${value.toLocaleString('en-US')} of ${max.toLocaleString('en-US')}</span>`}</div>
    <progress aria-label=${label} ...${known ? { value, max } : {}}></progress>
  </div>`;
}

/** Facts in two columns. @param {{rows: Array<[string, unknown]|false|null>}} props */
export function Facts({ rows }) {
  return html`<dl class="facts">
    ${rows.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/**
 * The head of a page.
 * @param {{title: string, back?: {to: string, label: string, isOrigin?: boolean}, actions?: unknown, badge?:
 *   unknown}} props `isOrigin`: `to` is the previous entry of the browser's history, which Back restores with its page
 *   of a list
 */
export function PageHead({ title, back, badge, actions, children }) {
  useEffect(() => {
    setAbout(title);
    return () => setAbout(null);
  }, [title]);
  return html`<header class="page-head">
    ${back && html`<a class="back" href=${back.to} onClick=${back.isOrigin ? toOrigin : null}>← ${back.label}</a>`}
    <div class="page-head-row">
      <div class="page-title"><h1 tabindex="-1"><bdi title=${title}>${title}</bdi></h1>${badge}</div>
      ${actions && html`<div class="page-actions">${actions}</div>`}
    </div>
    ${children && html`<div class="page-lead">${children}</div>`}
  </header>`;
}

/** Goes back in the history. The link's own address serves new tabs. */
function toOrigin(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.back();
}

/** A part of a page with its heading. `flush` leaves out the padding, for tables. */
export function Section({ title, actions, flush = false, children, lead }) {
  return html`<section class=${flush ? 'card card-flush' : 'card'} aria-label=${title}>
    <header class="card-head"><h2>${title}</h2>${actions && html`<div class="card-actions">${actions}</div>`}</header>
    ${lead && html`<p class="card-lead muted">${lead}</p>`}
    <div class="card-body">${children}</div>
  </section>`;
}
