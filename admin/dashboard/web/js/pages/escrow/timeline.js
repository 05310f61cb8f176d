/**
 * The timeline of an escrow from the audit trail, and its mutually exclusive calls.
 */
import { html } from '../../html.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { useNamesOf } from '../../names.js';
import { href } from '../../router.js';
import { Time } from '../../time.js';
import { plainWord } from '../../words.js';
import { Badge, Section } from '../../ui/show.js';
import { Empty, Loaded } from '../../ui/state.js';
import { Table } from '../../ui/table.js';
import { By } from '../../ui/who.js';
import { Calls, IntentLink, callsOn } from './calls.js';

/** Types of entries about escrows. Those in the past tense are written into the payee's trail. */
const TYPES = {
  'escrow.create': 'Created', 'escrow.fund': 'Funded', 'escrow.release': 'Release', 'escrow.dispute': 'Dispute', 'escrow.resolve': 'Decided by the operator',
  'escrow.released': 'Released', 'escrow.disputed': 'Disputed', 'escrow.refunded': 'Refunded',
};
/** Most entries searched for each type, from the creation of the escrow to its last change. */
const SEARCHED_MAX = 200;
const MARGIN_MS = 2000;

async function load(escrow, signal) {
  const moment = (time, more) => new Date(new Date(time).getTime() + more).toISOString();
  const span = { from: moment(escrow.createdAt, -MARGIN_MS), to: moment(escrow.updatedAt, MARGIN_MS), limit: SEARCHED_MAX };
  const found = await Promise.all(Object.keys(TYPES).map((type) => get('/audit', { ...span, type }, { signal })));
  const entries = found.flatMap(({ logs }) => logs).filter((entry) => entry.data.escrowId === escrow.id).sort((one, other) => one.seq - other.seq);
  const { own, calls } = await callsOn(`escrow:${escrow.id}`, signal);
  // Only the payer's account creates and funds an escrow, and only its trail has these entries.
  const mine = entries.filter(({ type }) => type === 'escrow.create' || type === 'escrow.fund').map((entry) => entry.data.intentId);
  return { entries, calls, own: [...own, ...mine] };
}

/** @param {{escrow: object}} props */
export function Timeline({ escrow }) {
  const found = useLoad((signal) => load(escrow, signal), [escrow.id, escrow.status, escrow.updatedAt]);
  const names = useNamesOf(found.data?.entries.map(({ actor }) => actor) ?? []);
  return html`<div class="stack">
    <${Section} title="Timeline" flush>
      <${Loaded} load=${found} label="Loading the timeline">${({ entries, own }) => (entries.length === 0
    ? html`<${Empty} title="The audit trail of this account has no entry about this escrow yet." />`
    : html`<${Table} caption="Timeline" columns=${columns(own, names)} rows=${entries} keyOf=${(entry) => entry.seq} />`)}<//>
    <//>
    ${found.data?.calls.length > 0 && html`<${Section} title="Requested releases and disputes" flush lead="Only one of them can settle; every other one is blocked finally.">
      <${Calls} caption="Releases and disputes" calls=${found.data.calls} own=${found.data.own} />
    <//>`}
  </div>`;
}

const columns = (own, names) => [
  { label: 'When', head: true, cell: (entry) => html`<a href=${href('/audit', { entry: entry.seq })}><${Time} at=${entry.at} /></a>` },
  { label: 'What', cell: (entry) => html`${TYPES[entry.type]}${entry.data.outcome === 'blocked' && html` <${Badge} of="blocked" tone="bad" />`}
    ${entry.data.reason && html`<span class="cell-sub">${plainWord(entry.data.reason)}</span>`}` },
  { label: 'By', wide: true, cell: (entry) => html`<${By} id=${entry.actor} names=${names} />` },
  { label: 'Intent', wide: true, cell: (entry) => (entry.data.intentId ? html`<${IntentLink} id=${entry.data.intentId} own=${own} />` : '') },
];
