/**
 * The audit trail: a filtered list of its entries, each with its hashes, and the state of the chain.
 */
import { html, useState } from '../html.js';
import { curl } from '../curl.js';
import { useNames } from '../names.js';
import { href, setQuery } from '../router.js';
import { Time } from '../time.js';
import { refusalWord } from '../words.js';
import { AgentChoice } from '../ui/agent-choice.js';
import { Button } from '../ui/button.js';
import { Filters, TimeFilter } from '../ui/filters.js';
import { CodeLine } from '../ui/secret.js';
import { PageHead, Section } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { AgentLink, By } from '../ui/who.js';
import { Chain } from './audit/chain.js';
import { Entry } from './audit/entry.js';
import { TYPES } from './audit/types.js';

const NONE = { agentId: null, type: null, from: null, to: null };

export default function Audit({ query }) {
  const [turn, setTurn] = useState(0);
  const names = useNames();
  const { agentId, type, from, to } = query;
  const entry = /^[1-9]\d{0,14}$/.test(query.entry ?? '') ? Number(query.entry) : null;
  const open = (seq) => setQuery({ entry: seq === null ? null : String(seq) });
  const filtered = agentId || type || from || to;
  const empty = filtered
    ? html`<${Empty} title="No entry matches."><${Button} onClick=${() => setQuery(NONE)}>Show all<//><//>`
    : html`<${None} />`;
  return html`<div class="stack">
    <${PageHead} title="Audit">Every change and every decision on a call, in the order in which they happened. Nothing is ever taken out.<//>
    <${Chain} />
    <${Section} title="Entries" flush actions=${html`<${Button} small onClick=${() => setTurn(turn + 1)}>Refresh<//>`}>
      <div class="in-card"><${Filters} label="Entries">
        <${AgentChoice} label="Agent" first=${[['', 'Any']]} value=${agentId ?? ''} choose=${(id) => setQuery({ agentId: id || null })} />
        <${TypeFilter} value=${type ?? ''} />
        <${TimeFilter} name="from" label="From" /><${TimeFilter} name="to" label="Before" />
      <//></div>
      <${ListTable} path="/audit" plural="logs" query=${{ agentId, type, from, to }} refresh=${turn} caption="Entries" columns=${columns(names)}
        keyOf=${(row) => row.seq} onData=${({ logs }) => names.load(logs.flatMap(({ actor, agentId: about }) => [actor, about]))} empty=${empty} />
    <//>
    ${entry !== null && html`<${Entry} seq=${entry} onClose=${() => open(null)} go=${open} />`}
  </div>`;
}

function columns(names) {
  return [
    { label: 'Entry', head: true, cell: (row) => html`<a class="num" href=${href('/audit', { entry: row.seq })} onClick=${(event) => stay(event, row.seq)}>${row.seq}</a>` },
    { label: 'When, UTC', cell: (row) => html`<${Time} at=${row.at} short />` },
    { label: 'What', cell: (row) => html`<code>${row.type}</code>${refusalWord(row.data) && html`<span class="cell-sub">${refusalWord(row.data)}</span>`}` },
    { label: 'Agent', wide: true, cell: (row) => html`<${AgentLink} id=${row.agentId} name=${names.of(row.agentId)?.name} />` },
    { label: 'By', wide: true, cell: (row) => html`<${By} id=${row.actor} names=${names} />` },
    { label: 'Hash', roomy: true, cell: (row) => html`<code class="muted" title=${row.hash}>${row.hash.slice(0, 10)}…</code>` },
  ];
}

/** Opens the entry above the filtered list. The link's own address serves new tabs. */
function stay(event, seq) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  setQuery({ entry: String(seq) });
}

function TypeFilter({ value }) {
  const known = TYPES.some(([, types]) => types.includes(value));
  const option = (type, text = type) => html`<option key=${type} value=${type} selected=${type === value}>${text}</option>`;
  return html`<label class="filter"><span class="filter-label">What</span>
    <select class="input" onChange=${(event) => setQuery({ type: event.target.value || null })}>
      ${option('', 'Anything')}${value && !known && option(value)}
      ${TYPES.map(([group, types]) => html`<optgroup key=${group} label=${group}>${types.map((type) => option(type))}</optgroup>`)}</select></label>`;
}

function None() {
  const line = curl('/audit?limit=10');
  return html`<${Empty} title="Nothing has happened in this mode yet.">
    <p>As soon as an agent is created, a policy set or a call decided, it stands here.</p>
    <div class="empty-code"><${CodeLine} label="From a program" text=${line} what="the command" /></div>
  <//>`;
}
