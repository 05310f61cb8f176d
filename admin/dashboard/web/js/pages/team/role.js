/**
 * Changing the role of a team member, and the effect on the API keys that they created.
 */
import { html } from '../../html.js';
import { patch, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { CheckField, Form, SelectField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Loaded } from '../../ui/state.js';
import { ROLE_OPTIONS } from '../../roles.js';
import { madeBy } from './remove.js';

/** @param {{person: {id: string, email: string, role: string}, onClose: () => void, onDone: () => void}} props */
export function ChangeRole({ person, onClose, onDone }) {
  const keys = useLoad((signal) => madeBy(person, signal), [person.id]);
  const submit = async ({ role, keep }) => {
    await patch(`/api/user/team/${seg(person.id)}`, { role }, { query: keep ? { keepApiKeys: 'true' } : {} });
    say(`${person.email} is ${role} now.`);
    onDone();
  };
  return html`<${Dialog} title=${`Role of ${person.email}`} onClose=${onClose}>
    <${Loaded} load=${keys} rows=${1}>${(made) => html`<${Form} label="Change role" action="Change role" onSubmit=${submit} onCancel=${onClose}>
      <${SelectField} name="role" label="Role" value=${person.role} options=${ROLE_OPTIONS} autofocus hint="It binds their very next click." />
      ${made.length > 0 && html`<${CheckField} name="keep" label=${`Keep the API keys that they made (${made.length})`} hint="A role below admin revokes them otherwise." />`}
    <//>`}<//>
  <//>`;
}
