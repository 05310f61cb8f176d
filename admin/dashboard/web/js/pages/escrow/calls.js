/**
 * The account's own releases and disputes of an escrow. The other party's calls are known only from the documents of
 * these; the server answers a request for one with 404.
 */
import { html } from '../../html.js';
import { get, seg } from '../../api.js';
import { href } from '../../router.js';
import { plainWord } from '../../words.js';
import { Badge, Id, Name } from '../../ui/show.js';
import { Table } from '../../ui/table.js';

/** Newest intents of each kind that are searched. */
const SEARCHED_MAX = 200;

/** @returns {Promise<string[]>} the ids of the account's own calls in `group`, such as `escrow:7` */
export async function ownCalls(group, signal) {
  const lists = await Promise.all(['escrow_release', 'escrow_dispute'].map((kind) => get('/intents', { kind, limit: SEARCHED_MAX }, { signal })));
  return lists.flatMap(({ intents }) => intents).filter((intent) => intent.xor_group === group).map((intent) => intent.intent_id);
}

/** All mutually exclusive calls, from the document of one of the account's own. */
export async function callsOn(group, signal) {
  const own = await ownCalls(group, signal);
  if (own.length === 0) return { own, calls: [] };
  const { intent } = await get(`/intents/${seg(own[0])}`, {}, { signal });
  return { own, calls: [intent, ...intent.xor_siblings] };
}

/** @param {{caption: string, calls: object[], own: string[]}} props those in `own` are links */
export function Calls({ caption, calls, own }) {
  const columns = [
    { label: 'Intent', head: true, cell: (call) => html`<${IntentLink} id=${call.intent_id} own=${own} />` },
    { label: 'Asked for', cell: (call) => plainWord(call.kind.replace('escrow_', '')) },
    { label: 'State', cell: (call) => html`<${Badge} of=${call.state} tone=${call.state === 'blocked' ? 'bad' : undefined} />` },
    { label: 'Why', wide: true, cell: (call) => html`<${Name} of=${call.blocked_reason} none="" />` },
  ];
  return html`<${Table} caption=${caption} columns=${columns} rows=${calls} keyOf=${(call) => call.intent_id} />`;
}

/** The id of an intent; a link if this account owns it. */
export function IntentLink({ id, own }) {
  if (own.includes(id)) return html`<a href=${href('/intents', id)}><${Id} of=${id} /></a>`;
  return html`<${Id} of=${id} /><span class="cell-sub">of the other account</span>`;
}
