/**
 * Changing and deleting the record of an agent.
 */
import { html } from '../../html.js';
import { del, get, patch, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { nanos } from '../../money.js';
import { go, href } from '../../router.js';
import { may } from '../../session.js';
import { Time } from '../../time.js';
import { ActionButton, Button, LinkButton } from '../../ui/button.js';
import { confirm } from '../../ui/dialog.js';
import { AreaField, Form, MoneyField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { CopyableId } from '../../ui/hash.js';
import { Facts, Money, Name, Section } from '../../ui/show.js';
import { Loaded } from '../../ui/state.js';

export function Details({ agent, onChange }) {
  const editable = may('admin') && agent.wallet;
  return html`<div class="stack">
    <${Section} title="Record"><${Facts} rows=${[
    ['Id', html`<${CopyableId} of=${agent.id} what="the id" />`],
    ['Name', html`<${Name} of=${agent.name} none="none: it has no wallet" />`],
    ['Type', html`<${Name} of=${agent.type} />`],
    ['Description', agent.description ? html`<span class="prose" dir="auto">${agent.description}</span>` : html`<span class="muted">–</span>`],
    ['Wallet', html`<${CopyableId} of=${agent.wallet} what="the wallet’s id" />`],
    ['Wallet’s daily limit', html`<${Money} of=${agent.spendLimit} none="no limit" />`],
    ['Created', html`<${Time} at=${agent.createdAt} full />`],
    ['Changed', html`<${Time} at=${agent.updatedAt} full />`],
  ]} /><//>
    ${editable && html`<${Edit} agent=${agent} onChange=${onChange} />`}
    ${editable && html`<${Delete} agent=${agent} />`}
  </div>`;
}

function Edit({ agent, onChange }) {
  const save = async ({ name, type, description, spendLimit }) => {
    onChange(await patch(`/agents/${seg(agent.id)}`, { name, type: type || null, description: description || null, spendLimit }));
    say('Saved the agent.');
  };
  return html`<${Section} title="Edit">
    <${Form} label="Edit agent" action="Save" onSubmit=${save}>
      <div class="fields-2">
        <${TextField} name="name" label="Name" value=${agent.name} required />
        <${TextField} name="type" label="Type" value=${agent.type} optional />
      </div>
      <${AreaField} name="description" label="Description" value=${agent.description} optional />
      <div class="fields-2"><${MoneyField} name="spendLimit" label="Wallet’s daily limit" value=${agent.spendLimit} optional hint="What its spends may take from the wallet in a UTC day; transfers and escrows are not limited. Empty: no limit." /></div>
    <//>
  <//>`;
}

function Delete({ agent }) {
  const load = useLoad((signal) => get(`/agents/${seg(agent.id)}/wallet`, {}, { signal }), [agent.id]);
  const run = async () => {
    const sure = await confirm({
      title: `Delete ${agent.name}?`, action: 'Delete agent', type: agent.name,
      text: 'Its wallet is closed and it leaves the list. Its keys stop working, and its record stays in the audit trail. This cannot be undone.',
    });
    if (!sure) return;
    await del(`/agents/${seg(agent.id)}`);
    say(`Deleted the agent ${agent.name}.`);
    go(href('/agents'));
  };
  return html`<${Section} title="Delete" lead="Only an agent whose wallet is empty and in no open escrow can be deleted.">
    <${Loaded} load=${load} rows=${1} label="Loading the balance">${({ usdc }) => ((nanos(usdc) ?? 0n) > 0n
    ? html`<div class="next-step"><p>Its wallet holds <${Money} of=${usdc} />. Transfer it away first.</p>
        <span class="cell-actions"><${LinkButton} to=${href('/wallets', agent.wallet)}>Open wallet<//><${Button} kind="danger" disabled>Delete agent<//></span></div>`
    : html`<${ActionButton} kind="danger" run=${run}>Delete agent<//>`)}<//>
  <//>`;
}
