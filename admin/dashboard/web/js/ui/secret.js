/**
 * Secrets that are shown once: a dialog that only a button closes, and lines to copy.
 */
import { html } from '../html.js';
import { Button, CopyButton } from './button.js';
import { Dialog } from './dialog.js';

/** A line of code with its copy button. @param {{label: string, text: string, what: string}} props */
export function CodeLine({ label, text, what }) {
  return html`<div class="code-line">
    <span class="code-line-label">${label}</span>
    <div class="code-line-row"><code class="code-line-text" dir="ltr" tabindex="0">${text}</code><${CopyButton} text=${text} what=${what} /></div>
  </div>`;
}

/**
 * A secret that is shown this once.
 * @param {{title: string, secret: string, label: string, what: string, onClose: () => void}} props children stand
 *   below it
 */
export function SecretOnce({ title, secret, label, what, onClose, children }) {
  return html`<${Dialog} title=${title} onClose=${onClose} locked wide>
    <p class="alert alert-warn">Copy it now. It is shown only this once and cannot be recovered.</p>
    <${CodeLine} label=${label} text=${secret} what=${what} />
    ${children}
    <div class="actions"><${Button} kind="primary" onClick=${onClose}>I have stored it<//></div>
  <//>`;
}
