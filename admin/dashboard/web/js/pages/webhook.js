/**
 * One webhook: its address, events and deliveries; changing, disabling and deleting it.
 */
import { html, useState } from '../html.js';
import { del, get, patch, seg } from '../api.js';
import { useLoad } from '../load.js';
import { go, href } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { ActionButton, Button } from '../ui/button.js';
import { confirm } from '../ui/dialog.js';
import { say } from '../ui/live.js';
import { CopyableId } from '../ui/hash.js';
import { Badge, Facts, PageHead, Section } from '../ui/show.js';
import { Failed, Skeleton, Stale } from '../ui/state.js';
import { Deliveries } from './webhook/deliveries.js';
import { EditWebhook } from './webhook/edit.js';
import { Gate, isGated, whereAllowed } from './webhook/gate.js';
import { Issued, Rotate } from './webhook/secret.js';

const back = () => ({ to: href('/webhooks'), label: 'Webhooks' });

export default function Webhook({ params }) {
  const load = useLoad((signal) => whereAllowed(() => get(`/webhooks/${seg(params.id)}`, {}, { signal }), signal), [params.id]);
  const head = html`<${PageHead} title="Webhook" back=${back()} />`;
  if (isGated(load.error)) return html`<div>${head}<${Gate} error=${load.error} /></div>`;
  if (load.error && !load.data) return html`<div>${head}<${Failed} error=${load.error} retry=${load.reload} /></div>`;
  if (!load.data) return html`<div>${head}<${Skeleton} label="Loading the webhook" /></div>`;
  return html`<${Body} webhook=${load.data.webhook} set=${(webhook) => load.set({ webhook })} load=${load} />`;
}

/** Scheme and host. The path is left out, since it can be long and contain a token. */
function origin(url) {
  try {
    return new URL(url).origin;
  } catch {
    return 'Webhook';
  }
}

function Body({ webhook, set, load }) {
  const [dialog, setDialog] = useState(null);
  const [secret, setSecret] = useState(null);
  const close = () => setDialog(null);
  const done = (change) => (given) => {
    close();
    change(given);
  };
  return html`<div class="stack">
    <${PageHead} title=${origin(webhook.url)} back=${back()} badge=${html`<${Badge} of=${webhook.status} />`} actions=${may('admin') && html`<${Actions} webhook=${webhook} set=${set} open=${setDialog} />`}>
      <${CopyableId} of=${webhook.id} what="the webhook’s id" />
    <//>
    <${Stale} load=${load} />
    ${webhook.status === 'disabled' && html`<p class="alert alert-warn">Disabled: nothing is sent, and events that happen meanwhile are not queued for it.</p>`}
    <${Section} title="About"><${Facts} rows=${[
    ['URL', html`<bdi dir="ltr">${webhook.url}</bdi>`],
    ['Description', webhook.description ? html`<bdi class="prewrap">${webhook.description}</bdi>` : html`<span class="muted">–</span>`],
    ['Events', html`<ul class="event-list">${webhook.events.map((event) => html`<li key=${event}><code>${event}</code></li>`)}</ul>`],
    ['Created', html`<${Time} at=${webhook.createdAt} full />`],
    ['Secret', html`<span>set <${Time} at=${webhook.secretUpdatedAt} full /></span>`],
  ]} /><//>
    <${Deliveries} webhook=${webhook} />
    ${dialog === 'edit' && html`<${EditWebhook} webhook=${webhook} onClose=${close} onDone=${done(set)} />`}
    ${dialog === 'rotate' && html`<${Rotate} webhook=${webhook} onClose=${close} onDone=${done((made) => { setSecret(made); load.reload(); })} />`}
    ${secret && html`<${Issued} secret=${secret} onClose=${() => setSecret(null)} />`}
  </div>`;
}

function Actions({ webhook, set, open }) {
  const active = webhook.status === 'active';
  const toggle = async () => {
    const sure = !active || await confirm({ title: 'Disable this webhook?', action: 'Disable', text: 'Nothing is sent until it is enabled again, and events that happen meanwhile are not queued. Deliveries that wait now are sent then.' });
    if (!sure) return;
    set((await patch(`/webhooks/${seg(webhook.id)}`, { status: active ? 'disabled' : 'active' })).webhook);
    say(active ? 'The webhook is disabled.' : 'The webhook is active again.');
  };
  const remove = async () => {
    const sure = await confirm({ title: 'Delete this webhook?', text: `Nothing more is sent to ${origin(webhook.url)}, and its deliveries are deleted, those that wait included.`, action: 'Delete webhook' });
    if (!sure) return;
    await del(`/webhooks/${seg(webhook.id)}`);
    say('Deleted the webhook.');
    go(href('/webhooks'));
  };
  return html`<${Button} onClick=${() => open('edit')}>Edit<//>
    <${Button} onClick=${() => open('rotate')}>Rotate secret<//>
    <${ActionButton} run=${toggle}>${active ? 'Disable' : 'Enable'}<//>
    <${ActionButton} kind="danger" run=${remove}>Delete<//>`;
}
