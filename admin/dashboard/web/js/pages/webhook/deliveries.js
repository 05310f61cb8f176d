/**
 * The deliveries of a webhook with every attempt; sending a test event, and sending a delivery again.
 */
import { html, useEffect, useRef, useState } from '../../html.js';
import { post, seg } from '../../api.js';
import { href, setQuery, usePlace } from '../../router.js';
import { may } from '../../session.js';
import { Time, utc } from '../../time.js';
import { ActionButton, Button } from '../../ui/button.js';
import { confirm } from '../../ui/dialog.js';
import { say } from '../../ui/live.js';
import { Badge, Id, Name, Section } from '../../ui/show.js';
import { Empty } from '../../ui/state.js';
import { ListTable, Table } from '../../ui/table.js';
import { count } from '../../words.js';

const STATUSES = [['', 'All'], ['pending', 'Pending'], ['delivered', 'Delivered'], ['failed', 'Failed']];
/** Most reloads of the list after the user has sent something. */
const RELOADS_MAX = 6;
const RELOAD_MS = 1500;

/** @param {{webhook: object}} props */
export function Deliveries({ webhook }) {
  const { query } = usePlace();
  const [turn, setTurn] = useState(0);
  const reloads = useRef(0);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const again = () => setTurn((number) => number + 1);
  const watch = () => {
    reloads.current = RELOADS_MAX;
    again();
  };
  /** Reloads the list a few times while a delivery is under way. */
  const onData = ({ deliveries }) => {
    clearTimeout(timer.current);
    if (reloads.current <= 0 || !deliveries.some((delivery) => delivery.status === 'pending')) return;
    reloads.current -= 1;
    timer.current = setTimeout(again, RELOAD_MS);
  };
  const send = async () => {
    await post(`/webhooks/${seg(webhook.id)}/test`);
    say('Sent a test. Its attempt is listed below.');
    watch();
  };
  const status = query.status ?? '';
  const actions = html`<label class="inline-label">Show <select class="input" onChange=${(event) => setQuery({ status: event.target.value || null })}>
      ${STATUSES.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === status}>${text}</option>`)}</select></label>
    <${Button} small onClick=${again}>Refresh<//>
    ${may('admin') && html`<${ActionButton} small kind="primary" disabled=${webhook.status !== 'active'} run=${send}>Send test<//>`}`;
  const empty = status
    ? html`<${Empty} title=${`No delivery is ${status}.`}><${Button} onClick=${() => setQuery({ status: null })}>Show all<//><//>`
    : html`<${Empty} title="Nothing was delivered yet."><p>A webhook receives events from its creation on. Send a test to see whether the receiver answers.</p><//>`;
  const detail = { label: (delivery) => `Attempts at ${delivery.event} ${delivery.id}`, show: (delivery) => html`<${Attempts} delivery=${delivery} />` };
  return html`<${Section} title="Deliveries" flush actions=${actions}>
    <${ListTable} path=${`/webhooks/${seg(webhook.id)}/deliveries`} plural="deliveries" query=${{ status }} refresh=${turn} caption="Deliveries" detail=${detail}
      columns=${columns(webhook, watch)} keyOf=${(delivery) => delivery.id} empty=${empty} onData=${onData} />
  <//>`;
}

function columns(webhook, watch) {
  const redeliver = async (delivery) => {
    const sure = await confirm({ title: 'Deliver it again?', text: `${delivery.event} is sent once more, with the same webhook-id. A receiver that has seen it should drop it.`, action: 'Redeliver', danger: false });
    if (!sure) return;
    await post(`/webhooks/${seg(webhook.id)}/deliveries/${seg(delivery.id)}/redeliver`);
    say('The delivery is sent again.');
    watch();
  };
  return [
    { label: 'Event', head: true, cell: (delivery) => html`<code>${delivery.event}</code>` },
    { label: 'Status', cell: (delivery) => html`<${Badge} of=${delivery.status} />` },
    { label: 'Last answer', wide: true, cell: (delivery) => html`<${Answer} of=${delivery} />` },
    { label: 'Attempts', num: true, roomy: true, cell: (delivery) => delivery.attempts.length },
    { label: 'Made', wide: true, cell: (delivery) => html`<${Time} at=${delivery.createdAt} />` },
    may('admin') && { label: 'Actions', hidden: true, cell: (delivery) => (delivery.status === 'pending' && delivery.nextAttemptAt ? ''
      : html`<span class="cell-actions"><${ActionButton} small run=${() => redeliver(delivery)} aria-label=${`Redeliver ${delivery.event} ${delivery.id}`}>Redeliver<//></span>`) },
  ].filter(Boolean);
}

function Answer({ of: { responseCode, error } }) {
  if (error) return html`<${Name} of=${error} />`;
  return responseCode === null ? html`<span class="muted">–</span>` : html`<span class="num">${responseCode}</span>`;
}

function Attempts({ delivery }) {
  const { attempts, nextAttemptAt, status } = delivery;
  const last = attempts.at(-1);
  return html`<div class="attempts">
    <p class="hint">Delivery <${Id} of=${delivery.id} /> of <a href=${href('/audit', { entry: delivery.auditSeq })}>audit entry ${delivery.auditSeq}</a>, ${count(attempts.length, 'attempt')}</p>
    ${attempts.length === 0 ? html`<p class="muted">${delivery.error ? html`<span dir="auto">${delivery.error}</span>` : 'No attempt was made yet.'}</p>`
    : html`<${Table} caption=${`Attempts at ${delivery.event}`} columns=${ATTEMPTS} rows=${attempts} keyOf=${(attempt) => attempt.at} />`}
    ${last?.responseExcerpt && html`<div><p class="hint">Beginning of the last answer</p><pre class="excerpt" tabindex="0" role="group" aria-label="Beginning of the last answer">${last.responseExcerpt}</pre></div>`}
    ${status === 'pending' && html`<p class="hint">Next attempt: ${nextAttemptAt ? html`<${Time} at=${nextAttemptAt} />` : 'when the next event happens'}.</p>`}
  </div>`;
}

const ATTEMPTS = [
  { label: 'When', head: true, cell: (attempt) => html`<time dateTime=${attempt.at}><${Stamp} of=${utc(attempt.at)} /></time>` },
  { label: 'Took', num: true, cell: (attempt) => html`<span class="nowrap">${attempt.durationMs.toLocaleString('en-US')} ms</span>` },
  { label: 'Code', num: true, cell: (attempt) => attempt.responseCode ?? '–' },
  { label: 'Error', cell: (attempt) => (attempt.error ? html`<span dir="auto">${attempt.error}</span>` : html`<span class="check-ok">accepted</span>`) },
];

/** Day and time; a line may break between them. */
function Stamp({ of }) {
  const [day, ...time] = of.split(' ');
  return html`<span class="nowrap">${day}</span> <span class="nowrap">${time.join(' ')}</span>`;
}
