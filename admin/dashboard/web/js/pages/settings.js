/**
 * Settings of the signed-in user: password, second factor and sessions.
 */
import { html } from '../html.js';
import { useSession } from '../session.js';
import { Time } from '../time.js';
import { Facts, Name, PageHead, Section } from '../ui/show.js';
import { SecondFactor } from './settings/factor.js';
import { Password } from './settings/password.js';
import { Sessions } from './settings/sessions.js';

export default function Settings() {
  const { user, account } = useSession();
  return html`<div class="stack">
    <${PageHead} title="Account settings">How you sign in. These settings are yours alone.<//>
    <div class="grid">
      <${Section} title="You">
        <${Facts} rows=${[
    ['Email', html`<${Name} of=${user.email} />`],
    ['Role', user.role],
    ['Account', html`<${Name} of=${account.name} />`],
    ['Member since', html`<${Time} at=${user.createdAt} />`],
    ['Last sign-in', html`<${Time} at=${user.lastLoginAt} none="never" />`],
  ]} />
      <//>
      <${SecondFactor} user=${user} />
    </div>
    <${Password} user=${user} />
    <${Sessions} />
  </div>`;
}
