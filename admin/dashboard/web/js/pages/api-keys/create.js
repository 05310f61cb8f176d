/**
 * Creating an API key with its mode, permissions, allowed addresses and expiry.
 */
import { html } from '../../html.js';
import { post } from '../../api.js';
import { useMode } from '../../router.js';
import { Dialog } from '../../ui/dialog.js';
import { AreaField, ChoicesField, FieldError, Form, SelectField, TextField } from '../../ui/form.js';

const PERMISSIONS = [
  ['read', 'Read'],
  ['write', 'Write: agents, policies, keys, money'],
  ['approve', 'Approve: decide on spends that wait. Not for a key that an agent has'],
];

/** @param {{onClose: () => void, onDone: (answer: object) => void}} props */
export function CreateApiKey({ onClose, onDone }) {
  const mode = useMode();
  const submit = async (values) => {
    if (values.permissions.length === 0) throw new FieldError('permissions', 'Choose at least one.');
    const allowIps = values.allowIps.split(/[\s,]+/).filter(Boolean);
    onDone(await post('/api-keys', {
      name: values.name || null, mode: values.mode, permissions: values.permissions, allowIps, expiresAt: end(values.expiresAt),
    }));
  };
  return html`<${Dialog} title="Create API key" onClose=${onClose}>
    <${Form} label="Create API key" action="Create key" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="name" label="Name" optional autofocus hint="Where it will be used, so that you know later which one to revoke." />
      <${SelectField} name="mode" label="Mode" value=${mode} options=${[['live', 'Live: real records and money'], ['test', 'Test: records and money that are not real']]} />
      <${ChoicesField} name="permissions" label="Permissions" options=${PERMISSIONS} value=${['read', 'write']} />
      <${AreaField} name="allowIps" label="Allowed addresses" optional rows="2" hint="Addresses or ranges such as 203.0.113.0/24, one a line. Empty: from anywhere." />
      <${TextField} name="expiresAt" label="Ends" type="datetime-local" optional hint="In UTC. Empty: never." />
    <//>
  <//>`;
}

/** Reads a typed time as UTC; null for an empty field. */
function end(typed) {
  if (typed === '') return null;
  const at = new Date(`${typed}Z`);
  if (Number.isNaN(at.getTime())) throw new FieldError('expiresAt', 'Give a date and a time.');
  return at.toISOString();
}
