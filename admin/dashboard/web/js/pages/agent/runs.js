/**
 * The runs of an agent with their status and spend; ending a run.
 */
import { html, useState } from '../../html.js';
import { post, seg } from '../../api.js';
import { href } from '../../router.js';
import { may } from '../../session.js';
import { Time } from '../../time.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, SelectField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Amount, Badge, Name, Section } from '../../ui/show.js';
import { ListTable } from '../../ui/table.js';

const STATUSES = [['', 'All'], ['running', 'Running'], ['paused', 'Paused'], ['completed', 'Completed'], ['failed', 'Failed']];

export function Runs({ agent }) {
  const [status, setStatus] = useState('');
  const [turn, setTurn] = useState(0);
  const [ending, setEnding] = useState(null);
  const again = () => setTurn((count) => count + 1);
  const columns = [
    { label: 'Run', head: true, cell: (run) => (run.calls + run.denied > 0
      ? html`<a href=${href('/calls', { agentId: agent.id, runId: run.runId })}><${Name} of=${run.runId} /></a>` : html`<${Name} of=${run.runId} />`) },
    { label: 'Status', cell: (run) => html`<${Badge} of=${run.paused ? 'paused' : run.status} />
      ${run.waitingForApproval.length > 0 && html`<span class="cell-sub">waits for <a href=${href('/intents', run.waitingForApproval[0])}>approval</a></span>`}` },
    { label: 'Spent', num: true, cell: (run) => html`<${Amount} of=${run.spentUsd} />` },
    { label: 'Calls and spends', wide: true, num: true, cell: (run) => run.calls.toLocaleString('en-US') },
    { label: 'Denied', wide: true, num: true, cell: (run) => run.denied.toLocaleString('en-US') },
    { label: 'Last seen', wide: true, cell: (run) => html`<${Time} at=${run.lastSeenAt} />` },
    may('admin') && { label: 'Actions', hidden: true, cell: (run) => (run.status === 'running'
      ? html`<span class="cell-actions"><${Button} small onClick=${() => setEnding(run)} aria-label=${`End run ${run.runId}`}>End<//></span>` : '') },
  ].filter(Boolean);
  const actions = html`<label class="inline-label">Show <select class="input" value=${status} onChange=${(event) => setStatus(event.target.value)}>
      ${STATUSES.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
    <${Button} small onClick=${again}>Refresh<//>`;
  return html`<${Section} title="Runs" flush actions=${actions} lead="Calls and spends with the same run id; kept for 35 days after they were last seen.">
    <${ListTable} path=${`/agents/${seg(agent.id)}/runs`} plural="runs" query=${{ status }} refresh=${turn} caption="Runs" columns=${columns}
      keyOf=${(run) => run.runId} empty=${status ? 'No such run.' : 'No call or spend has named a run yet.'} />
    ${ending && html`<${End} agent=${agent} run=${ending} onClose=${() => setEnding(null)} onDone=${() => { setEnding(null); again(); }} />`}
  <//>`;
}

function End({ agent, run, onClose, onDone }) {
  const end = async ({ status }) => {
    await post(`/agents/${seg(agent.id)}/runs/${seg(run.runId)}`, { status });
    say(`The run ${run.runId} is ${status}.`);
    onDone();
  };
  return html`<${Dialog} title=${`End run ${run.runId}?`} onClose=${onClose}>
    <p>Webhooks receive the end. It is final until the run’s next approved call. What it spent stays charged to it.</p>
    <${Form} label="End run" action="End run" kind="danger" onSubmit=${end} onCancel=${onClose}>
      <${SelectField} name="status" label="How it ended" options=${[['completed', 'Completed'], ['failed', 'Failed']]} />
    <//>
  <//>`;
}
