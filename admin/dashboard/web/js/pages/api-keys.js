/**
 * The API keys of the account, which authenticate programs to the management API.
 */
import { html, useState } from '../html.js';
import { del, seg } from '../api.js';
import { curl } from '../curl.js';
import { useNames } from '../names.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { ActionButton, Button } from '../ui/button.js';
import { confirm } from '../ui/dialog.js';
import { say } from '../ui/live.js';
import { CodeLine, SecretOnce } from '../ui/secret.js';
import { Badge, Id, Name, PageHead, Section } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { By } from '../ui/who.js';
import { CreateApiKey } from './api-keys/create.js';

/** Description of a key in confirmations; names need not be unique. */
const called = (key) => key.name ?? `${key.prefix}…`;

export default function ApiKeys() {
  const [turn, setTurn] = useState(0);
  const [creating, setCreating] = useState(false);
  const [issued, setIssued] = useState(null);
  const names = useNames();
  const lead = 'What programs call the management API with. Agents call the edge with virtual keys, which are made on the agent’s page.';
  if (!may('admin')) {
    return html`<div><${PageHead} title="API keys">${lead}<//>
      <${Section} title="Keys"><${Empty} title="Your role does not see API keys."><p>An owner or admin makes and revokes them.</p><//><//></div>`;
  }
  const again = () => setTurn((count) => count + 1);
  const revoke = async (key) => {
    const text = 'The next request with it is refused with 401. It cannot be brought back.';
    if (!(await confirm({ title: `Revoke the API key ${called(key)}?`, text, action: 'Revoke key' }))) return;
    await del(`/api-keys/${seg(key.keyId)}`);
    say('Revoked the API key.');
    again();
  };
  const columns = [
    { label: 'Name', head: true, cell: (key) => html`<span class="agent-name"><${Name} of=${key.name} none="no name" /><code class="cell-sub" dir="ltr">${key.prefix}…</code><${Id} of=${key.keyId} /><span class="cell-sub phone-only">may ${key.permissions.join(', ')}</span></span>` },
    { label: 'Mode', cell: (key) => html`<${Badge} of=${key.mode} tone=${key.mode === 'test' ? 'warn' : 'plain'} />` },
    { label: 'Status', cell: (key) => html`<${Badge} of=${key.status} />${key.expiresAt && html`<span class="cell-sub">ends <${Time} at=${key.expiresAt} /></span>`}` },
    { label: 'May', wide: true, cell: (key) => html`${key.permissions.join(', ')}${key.allowIps.length > 0 && html`<span class="cell-sub narrow-only">from <bdi>${key.allowIps.join(', ')}</bdi></span>`}` },
    { label: 'From', roomy: true, cell: (key) => (key.allowIps.length === 0 ? html`<span class="muted">anywhere</span>` : html`<bdi>${key.allowIps.join(', ')}</bdi>`) },
    { label: 'Made by', roomy: true, cell: (key) => html`<${By} id=${key.createdBy} names=${names} />` },
    { label: 'Last used', wide: true, cell: (key) => html`<${Time} at=${key.lastUsedAt} none="never" />` },
    { label: 'Actions', hidden: true, cell: (key) => (key.status === 'active' ? html`<span class="cell-actions"><${ActionButton} small kind="danger"
      run=${() => revoke(key)} aria-label=${`Revoke the API key ${called(key)}`}>Revoke<//></span>` : '') },
  ];
  const create = html`<${Button} kind="primary" onClick=${() => setCreating(true)}>Create API key<//>`;
  return html`<div>
    <${PageHead} title="API keys" actions=${create}>${lead}<//>
    <${Section} title="Keys" flush lead="Keys of both modes. A live key works with live records, a test key with test records, never with the other.">
      <${ListTable} path="/api-keys" plural="apiKeys" refresh=${turn} caption="API keys" columns=${columns} keyOf=${(key) => key.keyId} onData=${({ apiKeys }) => names.load(apiKeys.map(({ createdBy }) => createdBy))}
        empty="There is no API key yet." />
    <//>
    ${creating && html`<${CreateApiKey} onClose=${() => setCreating(false)} onDone=${(answer) => { setCreating(false); setIssued(answer); again(); }} />`}
    ${issued && html`<${Issued} answer=${issued} onClose=${() => setIssued(null)} />`}
  </div>`;
}

function Issued({ answer, onClose }) {
  const line = curl('/agents', { key: answer.key });
  return html`<${SecretOnce} title="Your new API key" label="API key" what="the API key" secret=${answer.key} onClose=${onClose}>
    <${CodeLine} label="Try it" text=${line} what="the command" />
    <p class="hint">Every operation stands in the <a href="/reference">reference</a>.</p>
  <//>`;
}
