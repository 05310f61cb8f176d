/**
 * The webhooks of the account, with their events and the status of the last delivery.
 */
import { html, useState } from '../html.js';
import { get, seg } from '../api.js';
import { curl } from '../curl.js';
import { useLoad } from '../load.js';
import { go, href } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { Button } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { Badge, Name, PageHead } from '../ui/show.js';
import { Empty, Loaded } from '../ui/state.js';
import { Table } from '../ui/table.js';
import { count } from '../words.js';
import { CreateWebhook } from './webhook/edit.js';
import { Gate, isGated, whereAllowed } from './webhook/gate.js';
import { Issued } from './webhook/secret.js';

/** Page size. No account has more webhooks in one mode. */
const MOST = 20;

export default function Webhooks() {
  const [creating, setCreating] = useState(false);
  const [issued, setIssued] = useState(null);
  const load = useLoad((signal) => whereAllowed(() => get('/webhooks', { limit: MOST }, { signal }), signal), []);
  const gated = isGated(load.error);
  const create = may('admin') && load.data && html`<${Button} kind="primary" onClick=${() => setCreating(true)}>Create webhook<//>`;
  const made = (webhook, secret) => {
    setCreating(false);
    if (secret) setIssued({ webhook, secret });
    else go(href('/webhooks', webhook.id));
  };
  return html`<div>
    <${PageHead} title="Webhooks" actions=${create}>Addresses that receive the account’s events, signed and at least once.<//>
    ${gated ? html`<${Gate} error=${load.error} />` : html`<div class="card card-flush"><div class="card-body">
      <${Loaded} load=${load} label="Loading the webhooks">${({ webhooks }) => (webhooks.length === 0
    ? html`<${None} create=${create} />`
    : html`<${Table} caption="Webhooks" columns=${COLUMNS} rows=${webhooks} keyOf=${(webhook) => webhook.id} />`)}<//>
    </div></div>`}
    ${creating && html`<${CreateWebhook} onClose=${() => setCreating(false)} onDone=${made} />`}
    ${issued && html`<${Issued} secret=${issued.secret} onClose=${() => go(href('/webhooks', issued.webhook.id))} />`}
  </div>`;
}

const COLUMNS = [
  { label: 'Receiver', head: true, cell: (webhook) => html`<span class="agent-name"><a href=${href('/webhooks', webhook.id)}><${Name} of=${webhook.url} /></a>
    ${webhook.status !== 'active' && html`<span class="phone-only"><${Badge} of=${webhook.status} /></span>`}
    ${webhook.description && html`<span class="cell-sub"><${Name} of=${webhook.description} /></span>`}</span>` },
  { label: 'Status', wide: true, cell: (webhook) => html`<${Badge} of=${webhook.status} />` },
  { label: 'Events', wide: true, cell: (webhook) => html`<span title=${webhook.events.join(', ')}>${count(webhook.events.length, 'event')}</span>` },
  { label: 'Last delivery', cell: (webhook) => html`<${Last} webhook=${webhook} />` },
];

/** Status of the newest delivery. */
function Last({ webhook }) {
  const { data, error } = useLoad((signal) => get(`/webhooks/${seg(webhook.id)}/deliveries`, { limit: 1 }, { signal }), [webhook.id]);
  if (error) return html`<span class="muted">not known</span>`;
  if (!data) return html`<span class="muted">…</span>`;
  const [delivery] = data.deliveries;
  if (!delivery) return html`<span class="muted">none yet</span>`;
  return html`<${Badge} of=${delivery.status} /> <span class="cell-sub">${delivery.error ? html`<span dir="auto">${delivery.error}</span>` : html`<${Time} at=${delivery.createdAt} />`}</span>`;
}

function None({ create }) {
  const line = curl('/webhooks', { body: `{"url":"'"$WEBHOOK_URL"'","events":["agent.frozen","policy.violation"],"secret":"'"$WEBHOOK_SECRET"'"}` });
  return html`<${Empty} title="There is no webhook yet.">
    <p>A webhook gets a signed POST when an agent is frozen, a spend waits for approval, a cap denies, money comes in or runs low.</p>
    ${create && html`<p>${create}</p>`}
    <div class="empty-code"><${CodeLine} label="Or from a program" text=${line} what="the command" /></div>
  <//>`;
}
