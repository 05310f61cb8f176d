/**
 * Spends and escrow calls, each with its proof. The list can be filtered by agent, kind and state.
 */
import { html, useState } from '../html.js';
import { get } from '../api.js';
import { curl } from '../curl.js';
import { useLoad } from '../load.js';
import { useNames } from '../names.js';
import { go, href, setQuery } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { count, plainWord } from '../words.js';
import { AgentChoice } from '../ui/agent-choice.js';
import { Button } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { Amount, Badge, Name, PageHead } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { AgentLink } from '../ui/who.js';
import { Spend } from './intent/spend.js';
import { ACCOUNT_WALLET } from './wallet/own.js';

const STATES = [['', 'Any state'], ['pending_approval', 'Waiting for approval'], ['settled', 'Settled'], ['blocked', 'Blocked']];
const KINDS = [['', 'Any kind'], ['spend', 'Spend'], ['escrow_create', 'Escrow create'], ['escrow_fund', 'Escrow fund'],
  ['escrow_release', 'Escrow release'], ['escrow_dispute', 'Escrow dispute']];
/** First option of the agent filter. */
const PAYERS = [['', 'Anyone'], ['user', 'The account wallet']];
const NONE = { state: null, kind: null, agentId: null };
/** Kinds without a payee: the agent of such a call is the party that made it. */
const PARTIES = { escrow_release: 'released by', escrow_dispute: 'disputed by' };

export default function Intents({ query }) {
  const [spending, setSpending] = useState(false);
  const [partial, setPartial] = useState(false);
  const names = useNames();
  const filter = chosen(query);
  const filtered = Object.keys(filter).length > 0;
  const spend = may('admin') && html`<${Button} kind="primary" onClick=${() => setSpending(true)}>Spend<//>`;
  const empty = filtered
    ? html`<${Empty} title=${filter.state === 'pending_approval' ? 'Nothing waits for approval.' : 'No intent matches.'}><${Button} onClick=${() => setQuery(NONE)}>Show all<//><//>`
    : html`<${None} spend=${spend} />`;
  const onData = (answer) => {
    setPartial(answer.partial);
    names.load(answer.intents.map(({ agentId }) => agentId));
  };
  return html`<div>
    <${PageHead} title="Intents" actions=${spend}>What agents and people asked to pay, also what was refused. Each intent is a chain of hashes that anyone can check.<//>
    ${!filtered && html`<${Waiting} />`}
    <${Filters} filter=${filter} />
    ${partial && filtered && html`<p class="hint entry-alert">1,000 intents are searched at a time, the newest first: “Next” searches those behind them.</p>`}
    <div class="card card-flush"><div class="card-body">
      <${ListTable} path="/intents" plural="intents" query=${filter} caption="Intents" columns=${columns(names)} keyOf=${(intent) => intent.intent_id}
        onData=${onData} empty=${empty} />
    </div></div>
    ${spending && html`<${Spend} onClose=${() => setSpending(false)} onDone=${(id) => go(href('/intents', id))} />`}
  </div>`;
}

/** The number of intents that wait for approval, with a link to them. */
function Waiting() {
  const { data } = useLoad((signal) => get('/intents', { state: 'pending_approval', limit: 1 }, { signal }), []);
  if (!data || data.total === 0) return null;
  return html`<p class="alert alert-warn entry-alert"><a href=${href('/intents', { state: 'pending_approval' })}>${count(data.total, 'spend')} ${data.total === 1 ? 'waits' : 'wait'} for approval</a></p>`;
}

/** The filters that the query sets. */
function chosen({ state, kind, agentId }) {
  return Object.fromEntries(Object.entries({ state, kind, agentId }).filter(([, value]) => value));
}

function Filters({ filter }) {
  const set = (name) => (value) => setQuery({ [name]: value || null });
  const select = (name, label, options) => html`<label class="filter"><span class="filter-label">${label}</span>
    <select class="input" onChange=${(event) => set(name)(event.target.value)}>${options.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === (filter[name] ?? '')}>${text}</option>`)}</select></label>`;
  return html`<div class="filters" role="search" aria-label="Intents">
    ${select('state', 'State', STATES)}
    ${select('kind', 'Kind', KINDS)}
    <${AgentChoice} label="Paid by" first=${PAYERS} value=${filter.agentId ?? ''} choose=${set('agentId')} />
  </div>`;
}

const columns = (names) => [
  { label: 'What', head: true, cell: (intent) => html`<span class="agent-name"><a href=${href('/intents', intent.intent_id)}><${What} intent=${intent} /></a>
    <span class="phone-only"><${Payer} intent=${intent} names=${names} /></span>
    ${intent.recipient && html`<span class="cell-sub narrow-only" title=${intent.recipient}>to <bdi>${intent.recipient}</bdi></span>`}</span>` },
  { label: 'State', cell: (intent) => html`<${State} intent=${intent} />${intent.blocked_reason && html`<span class="cell-sub wide-only"><${Name} of=${intent.blocked_reason} /></span>`}` },
  { label: 'Paid by', wide: true, cell: (intent) => html`<${Payer} intent=${intent} names=${names} />` },
  { label: 'To', roomy: true, cell: (intent) => html`<${Name} of=${intent.recipient} />` },
  { label: 'Asked', wide: true, cell: (intent) => html`<${Time} at=${intent.created_at} />` },
  { label: 'Amount', num: true, cell: (intent) => html`<${Amount} of=${intent.amount} />` },
];

/** Name of an intent: a spend's description, otherwise the kind. */
function What({ intent }) {
  return html`<${Name} of=${(intent.kind === 'spend' && intent.description) || plainWord(intent.kind)} />`;
}

function Payer({ intent, names }) {
  const { agentId, kind, state } = intent;
  const word = PARTIES[kind] && (state === 'blocked' ? 'asked by' : PARTIES[kind]);
  const party = word && html`<span class="muted">${word}</span>`;
  return html`${party} ${agentId ? html`<${AgentLink} id=${agentId} name=${names.of(agentId)?.name} />` : ACCOUNT_WALLET}`;
}

/** The badge of an intent's state. */
export function State({ intent }) {
  return html`<${Badge} of=${intent.state} tone=${intent.state === 'blocked' ? 'bad' : undefined} />`;
}

function None({ spend }) {
  const line = curl('/spend', { headers: ['Idempotency-Key: order-1'], body: '{"agent":"buyer","amount":12.5,"recipient":"Books Ltd","description":"A book"}' });
  return html`<${Empty} title="There is no request to pay yet.">
    <p>An agent asks with its program’s API key. Above the approval threshold of its policy it waits here for a person.</p>
    ${spend && html`<p>${spend}</p>`}
    <div class="empty-code"><${CodeLine} label="From a program" text=${line} what="the command" /></div>
  <//>`;
}
