/**
 * The purpose of an intent, from its document, and its requester, from the audit trail.
 */
import { html } from '../../html.js';
import { get } from '../../api.js';
import { pretty } from '../../json.js';
import { useLoad } from '../../load.js';
import { useNamesOf } from '../../names.js';
import { href } from '../../router.js';
import { Failed, Skeleton } from '../../ui/state.js';
import { Facts, Money, Name } from '../../ui/show.js';
import { AgentLink, By } from '../../ui/who.js';

/** Kinds without a payee: the agent of such a call is the party that made it. */
const PARTIES = { escrow_release: 'Released by', escrow_dispute: 'Disputed by' };
const TYPES = { spend: 'spend.requested', escrow_create: 'escrow.create', escrow_fund: 'escrow.fund', escrow_release: 'escrow.release', escrow_dispute: 'escrow.dispute' };
/**
 * One script writes the entry and the intent. Their times differ by at most `MARGIN_MS`; `SEARCHED_MAX` entries are
 * searched.
 */
const MARGIN_MS = 2000;
const SEARCHED_MAX = 200;

async function find(intent, signal) {
  const moment = (more) => new Date(new Date(intent.created_at).getTime() + more).toISOString();
  const query = { type: TYPES[intent.kind], from: moment(-MARGIN_MS), to: moment(MARGIN_MS), limit: SEARCHED_MAX };
  const { logs } = await get('/audit', query, { signal });
  return { entry: logs.find((entry) => entry.data.intentId === intent.intent_id) ?? null };
}

/**
 * @param {{intent: object, metadata: ?string, rows: Array}} props `metadata` are the intent's as JSON text; `rows` are
 *   the facts of the document, shown even if the trail has no entry
 */
export function Asked({ intent, metadata, rows }) {
  const load = useLoad((signal) => find(intent, signal), [intent.intent_id]);
  const entry = load.data?.entry ?? null;
  const names = useNamesOf([entry?.actor ?? null, intent.agentId, intent.allowed_by]);
  const known = [...about(intent, metadata, names), ...rows];
  if (load.error) return html`<${Facts} rows=${known} /><${Failed} error=${load.error} retry=${load.reload} />`;
  if (!load.data) return html`<${Facts} rows=${known} /><${Skeleton} rows=${2} label="Loading who asked" />`;
  return html`<${Facts} rows=${[...known, ...requestFacts(entry, names)]} />`;
}

function about({ kind, state, agentId, recipient, description, allowed_by: allowedBy }, metadata, names) {
  const party = PARTIES[kind] && (state === 'blocked' ? 'Party' : PARTIES[kind]);
  return [
    [party ?? 'Paid by', agentId ? html`<${AgentLink} id=${agentId} name=${names.of(agentId)?.name} />` : 'the account wallet'],
    recipient && ['Recipient', html`<bdi>${recipient}</bdi>`],
    description && [kind === 'spend' ? 'Description' : 'Reason', html`<bdi class="prewrap">${description}</bdi>`],
    metadata && ['Metadata', html`<bdi class="prewrap">${pretty(metadata)}</bdi>`],
    allowedBy && ['Allowed by', html`<${By} id=${allowedBy} names=${names} />`],
  ];
}

function requestFacts(entry, names) {
  if (!entry) return [];
  const { actor, data } = entry;
  return [
    data.runId && ['Run', html`<${Name} of=${data.runId} />`],
    data.limitUsd !== undefined && data.limitUsd !== null && ['Limit', html`<${Money} of=${data.limitUsd} />, of which <${Money} of=${data.spentUsd} /> was spent`],
    ['Asked by', html`<${By} id=${actor} names=${names} />`],
    ['In the audit trail', html`<a href=${href('/audit', { entry: entry.seq })}>Entry ${entry.seq}</a>`],
  ];
}
