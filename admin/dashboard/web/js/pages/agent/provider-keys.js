/**
 * The provider keys of an agent. They are stored encrypted; only the last four characters are ever shown.
 */
import { html, useState } from '../../html.js';
import { post, seg } from '../../api.js';
import { may, useSession } from '../../session.js';
import { Time } from '../../time.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, SelectField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Name, Section } from '../../ui/show.js';
import { ListTable } from '../../ui/table.js';

const COLUMNS = [
  { label: 'Provider', head: true, cell: (key) => html`<${Name} of=${key.provider} />` },
  { label: 'Ends with', cell: (key) => html`<code>…${key.last4}</code>` },
  { label: 'Stored', cell: (key) => html`<${Time} at=${key.createdAt} />` },
];

export function ProviderKeys({ agent }) {
  const [turn, setTurn] = useState(0);
  const [storing, setStoring] = useState(false);
  const stored = ({ providerKey }) => {
    setStoring(false);
    setTurn((count) => count + 1);
    say(`Stored the key for ${providerKey.provider}. The next call is sent with it.`);
  };
  const actions = may('admin') && html`<${Button} small onClick=${() => setStoring(true)}>Store provider key<//>`;
  return html`<${Section} title="Provider keys" flush actions=${actions} lead="What approved calls are sent to the provider with. Sealed; the agent never sees it.">
    <${ListTable} path=${`/agents/${seg(agent.id)}/provider-keys`} plural="providerKeys" refresh=${turn} caption="Provider keys" columns=${COLUMNS}
      keyOf=${(key) => key.keyId} empty="No provider key is stored: calls are denied with no_provider_key." />
    ${storing && html`<${Store} agent=${agent} onClose=${() => setStoring(false)} onDone=${stored} />`}
  <//>`;
}

/** Placeholder with the prefix of this provider's keys. */
function start(place, name) {
  const prefix = place.providers.find((known) => known.name === name)?.keyPrefix ?? 'sk-';
  return prefix === '' ? 'At least 8 characters.' : `Begins with ${prefix}.`;
}

function Store({ agent, onClose, onDone }) {
  const { place } = useSession();
  const [name, setName] = useState(place.provider);
  const submit = async (values) => onDone(await post(`/agents/${seg(agent.id)}/provider-keys`, values));
  return html`<${Dialog} title="Store provider key" onClose=${onClose}>
    <${Form} label="Store provider key" action="Store key" onSubmit=${submit} onCancel=${onClose}>
      ${place.providers.length > 1 ? html`<${SelectField} name="provider" label="Provider" value=${name} options=${place.providers.map((known) => [known.name, known.name])}
        required onChange=${(event) => setName(event.currentTarget.value)} hint="Each call uses the key that is stored under the name of the provider that serves its model." />`
      : html`<${TextField} name="provider" label="Provider" value=${place.provider} required hint="Calls use the key that is stored under the name of the edge’s provider." />`}
      <${TextField} name="apiKey" label="Provider’s API key" class="input masked" autocomplete="off" spellcheck=${false} required autofocus hint=${`${start(place, name)} A key that is stored already under this name is replaced.`} />
    <//>
  <//>`;
}
