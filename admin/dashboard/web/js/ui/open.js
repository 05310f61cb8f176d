/**
 * Layout of the pages for people who are not signed in: brand, card, heading.
 */
import { html } from '../html.js';

/** @param {{title: string, lead?: string, foot?: unknown}} props */
export function OpenPage({ title, lead, foot, children }) {
  return html`<div>
    <div class="open-brand"><span class="brand-mark" aria-hidden="true"></span>Tollgate</div>
    <div class="open-card">
      <h1 tabindex="-1">${title}</h1>
      <p class="open-lead" dir="auto">${lead}</p>
      ${children}
    </div>
    ${foot && html`<div class="open-foot">${foot}</div>`}
  </div>`;
}
