/**
 * Registering a webhook, and changing its events and address.
 */
import { html } from '../../html.js';
import { patch, post, seg } from '../../api.js';
import { withoutKey } from '../../once.js';
import { Dialog } from '../../ui/dialog.js';
import { AreaField, ChoicesField, FieldError, Form, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { EVENTS } from './events.js';
import { SecretField, useSecret } from './secret.js';

const OPTIONS = EVENTS.map(([name, words]) => [name, html`<span class="event-choice"><code>${name}</code><span class="cell-sub">${words}</span></span>`]);

/** The API has no idempotency keys for webhooks. */
const UNKNOWN = 'The server did not confirm this, so it is not known if the webhook was created. Look at the list of webhooks first: sending again may create a second webhook, with the same secret.';

/**
 * @param {{onClose: () => void, onDone: (webhook: object, secret: string|null) => void}} props `secret` is a generated
 *   one
 */
export function CreateWebhook({ onClose, onDone }) {
  const secretOf = useSecret();
  const submit = async ({ url, events, description, secret: typed }) => {
    requireEvents(events);
    const { secret, made } = secretOf(typed);
    const body = { url: url.trim(), events, secret, ...(description ? { description } : {}) };
    const { webhook } = await withoutKey(post('/webhooks', body), UNKNOWN);
    say('Created the webhook.');
    onDone(webhook, made);
  };
  return html`<${Dialog} title="Create webhook" onClose=${onClose} wide>
    <${Form} label="Create webhook" action="Create webhook" onSubmit=${submit} onCancel=${onClose}>
      <${Fields} />
      <${SecretField} />
    <//>
  <//>`;
}

/** @param {{webhook: object, onClose: () => void, onDone: (webhook: object) => void}} props */
export function EditWebhook({ webhook, onClose, onDone }) {
  const submit = async (values) => {
    requireEvents(values.events);
    const body = changes(webhook, values);
    if (Object.keys(body).length === 0) {
      onClose();
      return;
    }
    const answer = await patch(`/webhooks/${seg(webhook.id)}`, body);
    say('Saved the webhook.');
    onDone(answer.webhook);
  };
  return html`<${Dialog} title="Edit webhook" onClose=${onClose} wide>
    <${Form} label="Edit webhook" action="Save webhook" onSubmit=${submit} onCancel=${onClose}><${Fields} webhook=${webhook} /><//>
  <//>`;
}

function Fields({ webhook = {} }) {
  return html`<div class="form">
    <${TextField} name="url" label="URL" value=${webhook.url} required autofocus dir="ltr" inputmode="url" autocomplete="off"
      hint="A public https address that answers a POST with 2xx." />
    <div class="event-choices"><${ChoicesField} name="events" label="Events" options=${OPTIONS} value=${webhook.events ?? []} /></div>
    <${AreaField} name="description" label="Description" value=${webhook.description ?? ''} optional rows="2" maxlength="500" hint="For people: who gets it, and what for." />
  </div>`;
}

function requireEvents(events) {
  if (events.length === 0) throw new FieldError('events', 'Choose at least one event.');
}

/** The changed fields only: the server resolves any address that it is given. */
function changes(webhook, { url, events, description }) {
  const same = events.length === webhook.events.length && events.every((event) => webhook.events.includes(event));
  return {
    ...(url.trim() === webhook.url ? {} : { url: url.trim() }),
    ...(same ? {} : { events }),
    ...(description === (webhook.description ?? '') ? {} : { description: description || null }),
  };
}
