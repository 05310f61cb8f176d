/**
 * The decisions about an agent, newest first. Each call links to its explanation.
 */
import { html, useState } from '../../html.js';
import { useNames } from '../../names.js';
import { href } from '../../router.js';
import { Time } from '../../time.js';
import { isNamedRun, plainWord, refusalWord } from '../../words.js';
import { Button, LinkButton } from '../../ui/button.js';
import { Amount, Badge, Name, Section } from '../../ui/show.js';
import { ListTable } from '../../ui/table.js';
import { By } from '../../ui/who.js';

const KINDS = [['', 'Everything'], ['decision.approved', 'Approved calls'], ['decision.denied', 'Denied calls']];

const columns = (names) => [
  { label: 'When, UTC', head: true, cell: (entry) => (isCall(entry)
    ? html`<a href=${href('/decisions', entry.id)}><${Time} at=${entry.at} short /></a>` : html`<${Time} at=${entry.at} short />`) },
  { label: 'What', cell: (entry) => html`${isCall(entry) ? html`<${Badge} of=${entry.data.outcome} />` : plainWord(entry.type)}<span class="phone-only cell-sub">${refusalWord(entry.data)}</span>` },
  { label: 'Why', wide: true, cell: (entry) => refusalWord(entry.data) },
  { label: 'Model', wide: true, cell: (entry) => (entry.data.model ? html`<${Name} of=${entry.data.model} />` : '') },
  { label: 'Run', wide: true, cell: (entry) => (isNamedRun(entry.data.runId) ? html`<${Name} of=${entry.data.runId} />` : '') },
  { label: 'Charged', num: true, cell: (entry) => (isCall(entry) ? html`<${Amount} of=${entry.data.chargedUsd} />` : '') },
  { label: 'By', roomy: true, cell: (entry) => html`<${By} id=${entry.actor} names=${names} />` },
];

function isCall(entry) {
  return entry.type.startsWith('decision.');
}

export function Activity({ agent }) {
  const [type, setType] = useState('');
  const [turn, setTurn] = useState(0);
  const names = useNames();
  const actions = html`<label class="inline-label">Show <select class="input" value=${type} onChange=${(event) => setType(event.target.value)}>
      ${KINDS.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
    <${Button} small onClick=${() => setTurn((count) => count + 1)}>Refresh<//>
    <${LinkButton} small to=${href('/audit', { agentId: agent.id })}>Open in audit<//>`;
  return html`<${Section} title="Recent decisions and changes" flush actions=${actions}>
    <${ListTable} path="/audit" plural="logs" query=${{ agentId: agent.id, type }} refresh=${turn} caption="Decisions and changes" columns=${columns(names)}
      keyOf=${(entry) => entry.seq} onData=${({ logs }) => names.load(logs.map(({ actor }) => actor))} empty=${type ? 'None of this kind.' : 'Nothing has happened yet.'} />
  <//>`;
}
