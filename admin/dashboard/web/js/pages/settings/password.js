/**
 * Changing the signed-in user's password.
 */
import { html, useState } from '../../html.js';
import { post } from '../../api.js';
import { session } from '../../session.js';
import { FieldError, Form, TextField, UserName } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Section } from '../../ui/show.js';

/** @param {{user: {email: string}}} props */
export function Password({ user }) {
  const [turn, setTurn] = useState(0);
  const submit = async ({ currentPassword, newPassword, again }) => {
    if (newPassword !== again) throw new FieldError('again', 'The two passwords differ.');
    try {
      const { csrfToken } = await post('/api/user/password', { currentPassword, newPassword });
      session.set({ csrfToken });
    } catch (error) {
      if (error.code === 'INVALID_CREDENTIALS') throw new FieldError('currentPassword', 'This is not your password.');
      throw error;
    }
    say('Your password is changed. All other sessions of yours have ended.');
    setTurn((count) => count + 1);
  };
  return html`<${Section} title="Password" lead="Changing it ends all other sessions of yours.">
    <${Form} key=${turn} label="Change password" action="Change password" onSubmit=${submit}>
      <${UserName} value=${user.email} />
      <${TextField} name="currentPassword" label="Current password" type="password" autocomplete="current-password" required />
      <div class="fields-2">
        <${TextField} name="newPassword" label="New password" type="password" autocomplete="new-password" required hint="At least 8 characters." />
        <${TextField} name="again" label="New password again" type="password" autocomplete="new-password" required />
      </div>
    <//>
  <//>`;
}
