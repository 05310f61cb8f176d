/**
 * Secrets of webhooks. The browser generates and shows a secret once; the server never returns it.
 */
import { html } from '../../html.js';
import { patch, seg } from '../../api.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { SecretOnce } from '../../ui/secret.js';

const BYTES = 32;

/** Generates a secret in the format of Standard Webhooks, which the receivers' libraries accept. */
export function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

/** Form field of the secret. If it stays empty, the browser generates one. */
export function SecretField() {
  return html`<${TextField} name="secret" label="Secret" optional class="input masked" autocomplete="off" spellcheck=${false} dir="ltr"
    hint="Leave it empty: one is made in this browser and shown once. Your own has 16 to 256 printable characters." />`;
}

/** Shows a generated secret once. */
export function Issued({ secret, onClose }) {
  return html`<${SecretOnce} title="The webhook’s secret" label="Secret" what="the secret" secret=${secret} onClose=${onClose}>
    <p class="hint">Give it to the receiver. With it the receiver checks the header webhook-signature (Standard Webhooks) or x-service-signature of each delivery.</p>
  <//>`;
}

/** Replaces the secret. @param {{webhook: object, onClose: () => void, onDone: (secret: string|null) => void}} props */
export function Rotate({ webhook, onClose, onDone }) {
  const submit = async ({ secret }) => {
    const made = secret === '' ? newSecret() : null;
    await patch(`/webhooks/${seg(webhook.id)}`, { secret: made ?? secret });
    say('The webhook has a new secret.');
    onDone(made);
  };
  return html`<${Dialog} title="Rotate the secret?" onClose=${onClose}>
    <p>From now on deliveries are signed with the new secret, and for a while with the old one too (24 hours unless the operator set another time), so that the receiver can change over without losing one. Rotating again within that time ends the oldest.</p>
    <${Form} label="Rotate the secret" action="Rotate secret" kind="danger" onSubmit=${submit} onCancel=${onClose}><${SecretField} /><//>
  <//>`;
}
