/**
 * The keys of an agent: virtual keys, which authenticate its calls to the edge, and provider keys, which the edge sends
 * upstream.
 */
import { html, useState } from '../../html.js';
import { del, post, seg } from '../../api.js';
import { may, useSession } from '../../session.js';
import { Time } from '../../time.js';
import { ActionButton, Button } from '../../ui/button.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { Form, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { CodeLine, SecretOnce } from '../../ui/secret.js';
import { Badge, Id, Name, Section } from '../../ui/show.js';
import { Empty } from '../../ui/state.js';
import { ListTable } from '../../ui/table.js';
import { ProviderKeys } from './provider-keys.js';

export function Keys({ agent, mode }) {
  if (mode === 'test') {
    return html`<${Section} title="Keys"><${Empty} title="Keys exist in live mode only."><p>Switch to live mode to create a virtual key or to store a provider’s key.</p><//><//>`;
  }
  return html`<div class="stack"><${VirtualKeys} agent=${agent} /><${ProviderKeys} agent=${agent} /></div>`;
}

function VirtualKeys({ agent }) {
  const [turn, setTurn] = useState(0);
  const [creating, setCreating] = useState(false);
  const [issued, setIssued] = useState(null);
  const again = () => setTurn((count) => count + 1);
  const revoke = async (key) => {
    const sure = await confirm({ title: `Revoke the key ${key.name}?`, text: 'The next call with it is refused with 401. It cannot be brought back.', action: 'Revoke key' });
    if (!sure) return;
    await del(`/agents/${seg(agent.id)}/virtual-keys/${seg(key.keyId)}`);
    say(`Revoked the key ${key.name}.`);
    again();
  };
  const columns = [
    { label: 'Name', head: true, cell: (key) => html`<span class="agent-name"><${Name} of=${key.name} /><${Id} of=${key.keyId} /></span>` },
    { label: 'Begins with', wide: true, cell: (key) => html`<code>${key.prefix}…</code>` },
    { label: 'Status', cell: (key) => html`<${Badge} of=${key.status} />` },
    { label: 'Created', roomy: true, cell: (key) => html`<${Time} at=${key.createdAt} />` },
    { label: 'Last used', wide: true, cell: (key) => html`<${Time} at=${key.lastUsedAt} none="never" />` },
    may('admin') && { label: 'Actions', hidden: true, cell: (key) => (key.status === 'active'
      ? html`<span class="cell-actions"><${ActionButton} small kind="danger" run=${() => revoke(key)} aria-label=${`Revoke the key ${key.name}`}>Revoke<//></span>` : '') },
  ].filter(Boolean);
  const create = may('admin') && html`<${Button} small kind="primary" onClick=${() => setCreating(true)}>Create virtual key<//>`;
  return html`<${Section} title="Virtual keys" flush actions=${create} lead="What the agent calls the edge with. Each can be revoked on its own; the next call with it is refused.">
    <${ListTable} path=${`/agents/${seg(agent.id)}/virtual-keys`} plural="virtualKeys" refresh=${turn} caption="Virtual keys" columns=${columns}
      keyOf=${(key) => key.keyId} empty="There is no virtual key yet." />
    ${creating && html`<${Create} agent=${agent} onClose=${() => setCreating(false)} onDone=${(answer) => { setCreating(false); setIssued(answer); again(); }} />`}
    ${issued && html`<${Issued} answer=${issued} onClose=${() => setIssued(null)} />`}
  <//>`;
}

function Create({ agent, onClose, onDone }) {
  const submit = async ({ name }) => onDone(await post(`/agents/${seg(agent.id)}/virtual-keys`, { name: name || null }));
  return html`<${Dialog} title="Create virtual key" onClose=${onClose}>
    <${Form} label="Create virtual key" action="Create key" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="name" label="Name" optional autofocus hint="Where it will be used, so that you know later which one to revoke." />
    <//>
  <//>`;
}

function Issued({ answer, onClose }) {
  const { place } = useSession();
  const base = `${place.edgeUrl}/v1`;
  const lines = `export OPENAI_BASE_URL=${base}\nexport OPENAI_API_KEY=${answer.secret}`;
  return html`<${SecretOnce} title="Your new virtual key" label="Virtual key" what="the virtual key" secret=${answer.secret} onClose=${onClose}>
    <${CodeLine} label="For any OpenAI client" text=${lines} what="both lines" />
    <p class="hint">Any OpenAI SDK works unchanged with these two settings.</p>
  <//>`;
}
