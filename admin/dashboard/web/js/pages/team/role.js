/**
 * Changing what a person of the team may do.
 */
import { html } from '../../html.js';
import { patch, seg } from '../../api.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, SelectField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { ROLE_OPTIONS } from '../../roles.js';

/** @param {{person: {id: string, email: string, role: string}, onClose: () => void, onDone: () => void}} props */
export function ChangeRole({ person, onClose, onDone }) {
  const submit = async ({ role }) => {
    await patch(`/api/user/team/${seg(person.id)}`, { role });
    say(`${person.email} is ${role} now.`);
    onDone();
  };
  return html`<${Dialog} title=${`Role of ${person.email}`} onClose=${onClose}>
    <${Form} label="Change role" action="Change role" onSubmit=${submit} onCancel=${onClose}>
      <${SelectField} name="role" label="Role" value=${person.role} options=${ROLE_OPTIONS} autofocus hint="It binds their very next click." />
    <//>
  <//>`;
}
