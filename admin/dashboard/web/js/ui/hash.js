/**
 * Hashes and long ids: shortened in the middle, complete in the title, with a copy button.
 */
import { html } from '../html.js';
import { CopyButton } from './button.js';
import { Id } from './show.js';

const SHOWN = 10;

/** @param {{of: string, what: string}} props `what` names it: "the hash of entry 7" */
export function Hash({ of, what }) {
  if (!of) return html`<span class="muted">–</span>`;
  const short = of.length > 2 * SHOWN + 1 ? `${of.slice(0, SHOWN)}…${of.slice(-SHOWN)}` : of;
  return html`<span class="hash"><code title=${of} dir="ltr">${short}</code><${CopyButton} text=${of} what=${what} /></span>`;
}

/** An id with a copy button. @param {{of: string|null, what: string}} props `what` names it: "the agent’s id" */
export function CopyableId({ of, what }) {
  return of ? html`<span class="hash"><${Id} of=${of} /><${CopyButton} text=${of} what=${what} /></span>` : html`<${Id} of=${of} />`;
}

/**
 * JSON or other text, unchanged, with a copy button.
 * @param {{label: string, text: string, what: string, copy?: string}} props
 */
export function Source({ label, text, what, copy = text }) {
  return html`<figure class="source">
    <figcaption><span>${label}</span><${CopyButton} text=${copy} what=${what} /></figcaption>
    <pre dir="ltr" tabindex="0" role="group" aria-label=${label}>${text}</pre>
  </figure>`;
}
