/**
 * One intent: the request, the decision, its chained timeline, and its outcome.
 */
import { html, useState } from '../html.js';
import { get, seg, sourceOf } from '../api.js';
import { download } from '../download.js';
import { part } from '../json.js';
import { useLoad } from '../load.js';
import { useNamesOf } from '../names.js';
import { usd } from '../money.js';
import { href } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { plainWord } from '../words.js';
import { ActionButton, Button } from '../ui/button.js';
import { CopyableId, Hash } from '../ui/hash.js';
import { say } from '../ui/live.js';
import { Badge, Facts, Money, Name, PageHead, Section } from '../ui/show.js';
import { Failed, Loaded, Skeleton, Stale } from '../ui/state.js';
import { Calls, ownCalls } from './escrow/calls.js';
import { Asked } from './intent/asked.js';
import { Decide } from './intent/decide.js';
import { State } from './intents.js';

const back = () => ({ to: href('/intents'), label: 'Intents' });

export default function Intent({ params }) {
  const { id } = params;
  const load = useLoad((signal) => read(id, signal), [id]);
  if (load.error && !load.data) return html`<div><${PageHead} title="Intent" back=${back()} /><${Failed} error=${load.error} retry=${load.reload} /></div>`;
  if (!load.data) return html`<div><${PageHead} title="Intent" back=${back()} /><${Skeleton} label="Loading the intent" /></div>`;
  return html`<${Body} intent=${load.data.intent} metadata=${load.data.metadata} load=${load} />`;
}

/** The intent, and its metadata as they were sent. */
async function read(id, signal) {
  const answer = await get(`/intents/${seg(id)}`, {}, { signal });
  const metadata = answer.intent.metadata && part(sourceOf(answer), ['intent', 'metadata']);
  return { intent: answer.intent, metadata };
}

function Body({ intent, metadata, load }) {
  const [deciding, setDeciding] = useState(null);
  const waits = intent.state === 'pending_approval';
  const exports = ['json', 'csv'].map((format) => html`<${ActionButton} key=${format} run=${() => keep(intent, format)}>Export ${format.toUpperCase()}<//>`);
  return html`<div class="stack">
    <${PageHead} title=${`${plainWord(intent.kind)} of ${usd(intent.amount)}`} back=${back()} badge=${html`<${State} intent=${intent} />`} actions=${exports}>
      <${CopyableId} of=${intent.intent_id} what="the id" />
    <//>
    <${Stale} load=${load} />
    ${intent.blocked_reason && html`<p class="alert alert-error lead-text" dir="auto">${intent.blocked_reason}</p>`}
    ${waits && html`<${Waiting} decide=${setDeciding} />`}
    <div class="grid">
      <${Section} title="About"><${Asked} intent=${intent} metadata=${metadata} rows=${facts(intent)} /><//>
      <${Section} title="What came of it"><${Downstream} intent=${intent} /><//>
    </div>
    <${Timeline} intent=${intent} />
    ${intent.xor_group && html`<${Siblings} intent=${intent} />`}
    ${deciding && html`<${Decide} intent=${intent} approve=${deciding === 'approve'} onClose=${() => setDeciding(null)} onDone=${load.reload} />`}
  </div>`;
}

async function keep(intent, format) {
  const id = intent.intent_id;
  await download(`/intents/${seg(id)}/export`, { query: { format }, name: `${id}.${format}` });
  say(`Saved the export as ${format.toUpperCase()}.`);
}

function facts(intent) {
  return [
    ['Amount', html`<${Money} of=${intent.amount} /> <span class="muted">${intent.currency}</span>`],
    ['Rail reference', html`<${Name} of=${intent.rail_reference} none="none" />`],
    ['Asked', html`<${Time} at=${intent.created_at} full />`],
    ['Last change', html`<${Time} at=${intent.updated_at} full />`],
  ];
}

function Waiting({ decide }) {
  return html`<div class="alert alert-warn next-step">
    <p>This spend is above the approval threshold of its policy. Nothing is reserved while it waits.${!may('manager') && ' Deciding takes the role manager or above.'}</p>
    ${may('manager') && html`<span class="cell-actions"><${Button} onClick=${() => decide('deny')}>Deny<//><${Button} kind="primary" onClick=${() => decide('approve')}>Approve<//></span>`}
  </div>`;
}

function Downstream({ intent }) {
  const { escrow_agreement: escrow, transaction } = intent.downstream;
  if (escrow) {
    return html`<${Facts} rows=${[
      ['Escrow', html`<a href=${href('/escrow', escrow.id)}>Escrow ${escrow.id}</a>`],
      ['Status', html`<${Badge} of=${escrow.status} />`],
      ['Amount', html`<${Money} of=${escrow.amount} />`],
    ]} />`;
  }
  if (transaction) {
    return html`<${Facts} rows=${[
      ['Transaction', html`<${CopyableId} of=${transaction.id} what="the transaction’s id" />`],
      ['Amount', html`<${Money} of=${transaction.amount} />`],
    ]} />`;
  }
  const words = { settled: 'The agent has no wallet: the spend is tracked, and no money moved here.', pending_approval: 'Nothing yet.', blocked: 'Nothing: no money moved.' };
  return html`<p class="muted">${words[intent.state] ?? 'Nothing.'}</p>`;
}

/** The actor in the text of a timeline entry. It is an id, since the text is hashed and names change. */
const BY = /^By (\S+)\.$/;

function Timeline({ intent }) {
  const names = useNamesOf(intent.timeline.map(({ reasoning }) => BY.exec(reasoning)?.[1] ?? null));
  return html`<${Section} title="Timeline" lead="Each entry contains the hash of the one before it, so any change, addition or removal is detected. The export proves it.">
    <ol class="timeline">${intent.timeline.map((entry, index) => html`<li key=${index} class=${tone(entry.event_type)}>
      <p class="timeline-head"><strong>${entry.action}</strong> <${Time} at=${entry.at} full /></p>
      ${entry.reasoning && html`<p><${Reasoning} of=${entry.reasoning} names=${names} /></p>`}
      <p class="hint"><${Money} of=${BigInt(entry.amountNanos)} /></p>
      <p class="hint timeline-hash">Hash <${Hash} of=${entry.entry_hash} what=${`the hash of entry ${index + 1}`} /></p>
    </li>`)}</ol>
  <//>`;
}

/** The hashed text, with the name in place of an id and the id as its title. */
function Reasoning({ of, names }) {
  const id = BY.exec(of)?.[1];
  const found = id && names.of(id);
  return found ? html`By <span title=${id}><${Name} of=${found.name} /></span>.` : html`<bdi class="prewrap">${of}</bdi>`;
}

function tone(event) {
  if (event.endsWith('blocked') || event.endsWith('denied')) return 'timeline-bad';
  return event.endsWith('requested') ? null : 'timeline-ok';
}

function Siblings({ intent }) {
  const { xor_group: group, xor_siblings: siblings } = intent;
  const own = useLoad((signal) => ownCalls(group, signal), [group]);
  return html`<${Section} title="Excluded by each other" flush lead=${`Of the releases and disputes of ${group.replace(':', ' ')} only one can settle; every other one is blocked.`}>
    ${siblings.length === 0
    ? html`<p class="in-card in-card-end muted">There is no other one.</p>`
    : html`<${Loaded} load=${own} label="Loading the others">${(ids) => html`<${Calls} caption="The others of the same escrow" calls=${siblings} own=${ids} />`}<//>`}
  <//>`;
}
