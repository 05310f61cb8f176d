/**
 * The agents, with search, filters and creation; and the policies of agents without one of their own.
 */
import { html, useState } from '../html.js';
import { post } from '../api.js';
import { go, href, setQuery } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { Button } from '../ui/button.js';
import { Dialog } from '../ui/dialog.js';
import { Filters, SearchFilter, SelectFilter } from '../ui/filters.js';
import { AreaField, Form, TextField } from '../ui/form.js';
import { say } from '../ui/live.js';
import { Badge, Id, Name, PageHead } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { AccountPolicies } from './agent/account-policies.js';
import { WithoutWallet } from './agent/without-wallet.js';

const COLUMNS = [
  { label: 'Agent', head: true, cell: (agent) => html`<span class="agent-name">
    <a href=${href('/agents', agent.id)}><${Name} of=${agent.name ?? agent.id} /></a>${agent.name && html`<${Id} of=${agent.id} />`}</span>` },
  { label: 'Status', cell: (agent) => html`<${Badge} of=${agent.status} />` },
  { label: 'Created', wide: true, cell: (agent) => html`<${Time} at=${agent.createdAt} />` },
];

export default function Agents({ query }) {
  const [creating, setCreating] = useState(query.new === '1' && may('admin'));
  const [partial, setPartial] = useState(false);
  const close = () => {
    setCreating(false);
    if (query.new) setQuery({ new: null });
  };
  const create = may('admin') && html`<${Button} kind="primary" onClick=${() => setCreating(true)}>Create agent<//>`;
  const filtered = query.q || query.status;
  const empty = filtered
    ? html`<${Empty} title="No agent matches."><${Button} onClick=${() => setQuery({ q: null, status: null })}>Show all agents<//><//>`
    : html`<${Empty} title="There is no agent yet."><p>An agent stands for one program that spends money: a bot, a pipeline, an assistant.</p>${create}<//>`;
  return html`<div>
    <${PageHead} title="Agents" actions=${create} />
    <${Filters} label="Agents">
      <${SearchFilter} name="q" label="Search" placeholder="Name or id" />
      <${SelectFilter} name="status" label="Status" options=${[['', 'All'], ['active', 'Active'], ['frozen', 'Frozen']]} />
    <//>
    ${partial && html`<p class="alert alert-warn">A search looks at 5,000 agents at a time, the newest first: “Next” searches those behind them.</p>`}
    <div class="card card-flush"><div class="card-body">
      <${ListTable} path="/agents" plural="agents" query=${{ q: query.q, status: query.status }} caption="Agents" columns=${COLUMNS}
        onData=${(answer) => setPartial(answer.partial === true)} keyOf=${(agent) => agent.id} empty=${empty} />
    </div></div>
    <${WithoutWallet} />
    <${AccountPolicies} />
    ${creating && html`<${Create} onClose=${close} />`}
  </div>`;
}

function Create({ onClose }) {
  const submit = async ({ name, type, description }) => {
    const { agent } = await post('/agents', { name, type: type || null, description: description || null });
    say(`Created the agent ${agent.name.trim()}.`);
    go(href('/agents', agent.id));
  };
  return html`<${Dialog} title="Create agent" onClose=${onClose}>
    <${Form} label="Create agent" action="Create agent" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="name" label="Name" required autofocus hint="As people should read it; it can be changed later." />
      <${TextField} name="type" label="Type" optional hint="A word to sort agents by." />
      <${AreaField} name="description" label="Description" optional />
    <//>
  <//>`;
}
