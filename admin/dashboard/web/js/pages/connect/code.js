/**
 * Block of code with a copy button.
 */
import { html } from '../../html.js';
import { CopyButton } from '../../ui/button.js';

/** @param {{label: string, text: string, what: string}} props */
export function Code({ label, text, what }) {
  return html`<figure class="source">
    <figcaption>${label}<${CopyButton} text=${text} what=${what} /></figcaption>
    <pre class="code-block" dir="ltr" tabindex="0" role="group" aria-label=${label}>${text}</pre>
  </figure>`;
}
