/**
 * Choosing a new password with a link from the operator. The page checks the link first, and asks for the code of the
 * second factor if the user has enabled it.
 */
import { html, useState } from '../html.js';
import { post } from '../api.js';
import { useLoad } from '../load.js';
import { go } from '../router.js';
import { session, startSession } from '../session.js';
import { FieldError, Form, TextField, UserName } from '../ui/form.js';
import { OpenPage } from '../ui/open.js';
import { SecondFactor, plainLock } from '../ui/second-factor.js';
import { Skeleton } from '../ui/state.js';

export default function Reset({ params }) {
  const load = useLoad((signal) => post('/api/user/password/reset/look', { token: params.token }, { signal }), [params.token]);
  // The chosen password, while the second factor is entered.
  const [chosen, setChosen] = useState(null);
  const foot = html`<p><a href="#/login">Go to sign in</a></p>`;
  if (load.error) {
    return html`<${OpenPage} title="This link cannot be used" lead=${load.error.message} foot=${foot}>
      <p>Ask the operator of this installation for a new link. Each works once, for an hour.</p>
    <//>`;
  }
  if (!load.data) return html`<${OpenPage} title="Choose a new password" lead="Looking at the link"><${Skeleton} /><//>`;
  const save = async (newPassword, totp) => {
    const answer = await post('/api/user/password/reset', { token: params.token, newPassword, ...(totp ? { totp } : {}) });
    session.set({ wanted: null });
    startSession(answer);
    go('#/');
  };
  if (chosen) {
    return html`<${SecondFactor} action="Save and sign in" onCode=${(totp) => save(chosen, totp)} onAgain=${() => setChosen(null)} />`;
  }
  const submit = async ({ newPassword, again }) => {
    if (newPassword !== again) throw new FieldError('again', 'The two passwords differ.');
    try {
      await save(newPassword);
    } catch (error) {
      if (error.code !== 'TOTP_REQUIRED') throw plainLock(error);
      setChosen(newPassword);
    }
  };
  return html`<${OpenPage} title="Choose a new password" lead="The link works once. All other sessions of yours are signed out." foot=${foot}>
    <${Form} label="Choose a new password" action="Save and sign in" onSubmit=${submit}>
      <${UserName} />
      <${TextField} name="newPassword" label="New password" type="password" autocomplete="new-password" required autofocus hint="At least 8 characters; a few words are better than a short puzzle." />
      <${TextField} name="again" label="New password again" type="password" autocomplete="new-password" required />
    <//>
  <//>`;
}
