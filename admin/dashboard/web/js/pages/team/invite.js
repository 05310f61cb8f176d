/**
 * Inviting a person: the server creates a link for one e-mail address and role, which is shown once.
 */
import { html, useState } from '../../html.js';
import { post } from '../../api.js';
import { Dialog } from '../../ui/dialog.js';
import { Form, SelectField, TextField } from '../../ui/form.js';
import { SecretOnce } from '../../ui/secret.js';
import { ROLE_OPTIONS } from '../../roles.js';

/** @param {{onClose: () => void, onDone: () => void}} props */
export function Invite({ onClose, onDone }) {
  const [made, setMade] = useState(null);
  const submit = async ({ email, role }) => {
    setMade(await post('/api/user/invitations', { email, role }));
    onDone();
  };
  if (made) {
    return html`<${SecretOnce} title="The invitation" label=${`Link for ${made.invitation.email}`} what="the link" secret=${made.link} onClose=${onClose}>
      <p class="hint">Send it over a channel that you trust: the first person who opens it becomes ${made.invitation.role} of this account. It works once, for seven days.</p>
    <//>`;
  }
  return html`<${Dialog} title="Invite person" onClose=${onClose}>
    <${Form} label="Invite person" action="Make link" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="email" label="Email" type="email" autocomplete="off" required autofocus hint="What they sign in with. Nothing is sent: you get a link to pass on." />
      <${SelectField} name="role" label="Role" value="viewer" options=${ROLE_OPTIONS} />
    <//>
  <//>`;
}
