/**
 * Editing a policy. The server saves it only on the revision that was read. If someone else changed it meanwhile, the
 * form shows their values beside the user's, and the user decides.
 */
import { html, useState } from '../../html.js';
import { Exact, get, post, seg } from '../../api.js';
import { nanos, usd } from '../../money.js';
import { Time } from '../../time.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { CheckField, Form, MoneyField, SelectField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { LIMITS } from './policy-facts.js';

/**
 * @param {{agent: object|null, policy: object|null, onClose: () => void, onSaved: () => void}} props without an agent
 *   the form creates an account-wide policy; these can be deleted but not changed
 */
export function EditPolicy({ agent, policy, onClose, onSaved }) {
  const [base, setBase] = useState(policy);
  const [changed, setChanged] = useState(null);
  const [round, setRound] = useState(0);
  const save = async (values) => {
    try {
      await send(agent, base, bodyOf(values));
    } catch (error) {
      if (error.status !== 412) throw error;
      const theirs = await newest(agent);
      setChanged({ theirs, mine: values });
      setBase(theirs);
      return;
    }
    say('Saved the policy. It applies from the next call on.');
    onSaved();
  };
  const takeTheirs = () => {
    setChanged(null);
    setRound(round + 1);
  };
  const title = agent ? `Policy of ${agent.name ?? agent.id}` : 'Account-wide policy';
  return html`<${Dialog} title=${title} onClose=${onClose} wide>
    ${changed && html`<${Meanwhile} ...${changed} takeTheirs=${takeTheirs} />`}
    <${Form} key=${round} label=${title} action=${changed ? 'Save mine over theirs' : 'Save policy'} onSubmit=${save} onCancel=${onClose}>
      <${Fields} policy=${base ?? {}} />
    <//>
  <//>`;
}

function Fields({ policy }) {
  return html`<div class="form">
    <${TextField} name="name" label="Name" value=${policy.name ?? 'default'} required />
    <${CheckField} name="capEnabled" label="Cap enabled" value=${policy.capEnabled ?? true} hint="Off, every call of the agent is denied." />
    <div class="fields-2">
      ${LIMITS.map(([field, label, hint]) => html`<${MoneyField} key=${field} name=${field} label=${label} hint=${hint} value=${policy[field] ?? ''} optional />`)}
    </div>
    <${SelectField} name="currency" label="Currency" options=${[['USD', 'USD'], ['USDC', 'USDC']]} value=${policy.currency ?? 'USD'} />
  </div>`;
}

/** The request's body: all fields of the form. An empty field clears its limit. */
function bodyOf({ name, capEnabled, currency, ...limits }) {
  return { name, capEnabled, currency, ...Object.fromEntries(LIMITS.map(([field]) => [field, limits[field] ?? null])) };
}

function send(agent, base, body) {
  if (!agent) return post('/policies', body);
  // A new policy must not overwrite one that someone else created meanwhile.
  return post(`/policies/${seg(agent.id)}`, body, base ? { ifMatch: base.revision } : { ifNoneMatch: '*' });
}

/** The agent's current policy; null if it was deleted. */
async function newest(agent) {
  return (await get('/policies', { agentId: agent.id })).policies[0] ?? null;
}

function Meanwhile({ theirs, mine, takeTheirs }) {
  if (!theirs) return html`<p class="alert alert-warn" role="alert">This policy was deleted after you opened it. Saving makes it anew.</p>`;
  const rows = [
    ['Name', theirs.name, mine.name],
    ['Cap enabled', theirs.capEnabled ? 'yes' : 'no', mine.capEnabled ? 'yes' : 'no'],
    ...LIMITS.map(([field, label]) => [label, usd(theirs[field], 'not set'), usd(amount(mine[field]), 'not set')]),
    ['Currency', theirs.currency, mine.currency],
  ].filter(([, one, other]) => one !== other);
  return html`<div class="alert alert-warn" role="alert">
    <p><strong>Changed meanwhile.</strong> This policy was saved <${Time} at=${theirs.updatedAt} />, after you opened it. Nothing of yours is saved yet.</p>
    ${rows.length > 0 && html`<table class="theirs"><thead><tr><th scope="col">Field</th><th scope="col">Now in force</th><th scope="col">Yours</th></tr></thead>
      <tbody>${rows.map(([label, one, other]) => html`<tr key=${label}><th scope="row">${label}</th><td><bdi>${one}</bdi></td><td><bdi>${other}</bdi></td></tr>`)}</tbody></table>`}
    <p><${Button} small onClick=${takeTheirs}>Take theirs<//></p>
  </div>`;
}

function amount(value) {
  return nanos(value instanceof Exact ? value.text : null);
}
