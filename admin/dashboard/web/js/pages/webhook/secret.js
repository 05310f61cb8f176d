/**
 * Secrets of webhooks. The browser generates and shows a secret once; the server never returns it.
 */
import { html, useRef } from '../../html.js';
import { patch, seg } from '../../api.js';
import { withoutKey } from '../../once.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { SecretOnce } from '../../ui/secret.js';

const BYTES = 32;
const UNKNOWN = 'The server did not confirm this, so it is not known if the secret was replaced. Send it again before you close this form: the secret stays the same.';

/** Generates a secret in the format of Standard Webhooks, which the receivers' libraries accept. */
function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

/**
 * Returns a function of the typed secret: the secret to send, and the same as `made` if it was generated. All requests
 * of a form carry one generated secret: another one after a lost answer would end the secret before the lost one, which
 * the receiver still has.
 * @returns {(typed: string) => {secret: string, made: string|null}}
 */
export function useSecret() {
  const generated = useRef(null);
  return (typed) => {
    if (typed !== '') return { secret: typed, made: null };
    generated.current ??= newSecret();
    return { secret: generated.current, made: generated.current };
  };
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
  const secretOf = useSecret();
  const submit = async (values) => {
    const { secret, made } = secretOf(values.secret);
    await withoutKey(patch(`/webhooks/${seg(webhook.id)}`, { secret }), UNKNOWN);
    say('The webhook has a new secret.');
    onDone(made);
  };
  return html`<${Dialog} title="Rotate the secret?" onClose=${onClose}>
    <p>From now on deliveries are signed with the new secret, and for a while with the old one too (24 hours unless the operator set another time), so that the receiver can change over without losing one. Rotating again within that time ends the oldest.</p>
    <${Form} label="Rotate the secret" action="Rotate secret" kind="danger" onSubmit=${submit} onCancel=${onClose}><${SecretField} /><//>
  <//>`;
}
