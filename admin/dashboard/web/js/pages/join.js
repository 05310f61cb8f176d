/**
 * Accepting an invitation: shows the account and role, and lets the user choose a password.
 */
import { html } from '../html.js';
import { post } from '../api.js';
import { useLoad } from '../load.js';
import { go } from '../router.js';
import { session, startSession } from '../session.js';
import { FieldError, Form, TextField } from '../ui/form.js';
import { OpenPage } from '../ui/open.js';
import { Skeleton } from '../ui/state.js';

const ROLES = {
  viewer: 'You can see everything and change nothing.',
  manager: 'You can freeze agents, decide on approvals and settle escrows.',
  admin: 'You can manage agents, policies, keys, wallets and webhooks.',
  owner: 'You can do everything, the team and the plan included.',
};

export default function Join({ params }) {
  const load = useLoad((signal) => post('/api/user/invitations/look', { token: params.token }, { signal }), [params.token]);
  if (load.error) {
    return html`<${OpenPage} title="This invitation cannot be used" lead=${load.error.message}
      foot=${html`<p><a href="#/login">Go to sign in</a></p>`}><p>Ask the person who invited you for a new link. Each works once, for seven days.</p><//>`;
  }
  if (!load.data) return html`<${OpenPage} title="Join" lead="Looking at the invitation"><${Skeleton} /><//>`;
  const { email, role, accountName } = load.data;
  const present = session.get().account?.name;
  const accept = async ({ password, again }) => {
    if (password !== again) throw new FieldError('again', 'The two passwords differ.');
    const answer = await post('/api/user/invitations/accept', { token: params.token, password });
    session.set({ wanted: null });
    startSession(answer);
    go('#/');
  };
  return html`<${OpenPage} title=${`Join ${accountName}`} lead=${`You are invited as ${role}. ${ROLES[role] ?? ''}`}>
    <${Form} label="Join" action="Join" onSubmit=${accept}>
      <${TextField} name="email" label="Email" type="email" value=${email} autocomplete="username" readonly />
      <${TextField} name="password" label="Password" type="password" autocomplete="new-password" required autofocus hint="At least 8 characters; a few words are better than a short puzzle." />
      <${TextField} name="again" label="Password again" type="password" autocomplete="new-password" required />
    <//>
    ${present && html`<p class="hint">This browser is signed in to <bdi>${present}</bdi>. Joining signs it out there.</p>`}
  <//>`;
}
