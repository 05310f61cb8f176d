/**
 * Signing in, in up to three steps: the password; the account, if the password matches users of several accounts; and
 * the code of the second factor or a recovery code, if the user has enabled it.
 */
import { html, useState } from '../html.js';
import { ApiError, post } from '../api.js';
import { startSession, useSession } from '../session.js';
import { Form, SelectField, TextField } from '../ui/form.js';
import { OpenPage } from '../ui/open.js';
import { SecondFactor, plainLock } from '../ui/second-factor.js';

export default function Login() {
  const { reason } = useSession();
  const [first, setFirst] = useState(null);
  const [choice, setChoice] = useState(null);
  const attempt = async (body) => {
    try {
      startSession(await post('/api/user/login', body));
    } catch (error) {
      if (error.code === 'ACCOUNT_REQUIRED') setChoice({ body, accounts: error.body.accounts });
      else if (error.code === 'TOTP_REQUIRED') setFirst(body);
      else throw plain(error);
    }
  };
  const password = ({ email, password: secret }) => attempt({ email, password: secret });
  const account = ({ account: id }) => attempt({ ...choice.body, account: id });
  const again = () => {
    setFirst(null);
    setChoice(null);
  };
  const code = async (totp) => startSession(await post('/api/user/login', { ...first, totp }));
  if (!first && choice) {
    // Accounts can have equal names: the end of the id distinguishes them.
    const options = choice.accounts.map(({ id, name }) => [id, `${name} (${id.slice(-6)})`]);
    return html`<${OpenPage} title="Which account?" lead="You are in several accounts with this email and password."
      foot=${html`<button type="button" class="button button-quiet button-small" onClick=${again}>Start again</button>`}>
      <${Form} key="account" label="Account" action="Sign in" onSubmit=${account}>
        <${SelectField} name="account" label="Account" value=${options[0][0]} options=${options} autofocus />
      <//>
    <//>`;
  }
  if (!first) {
    return html`<${OpenPage} title="Sign in" lead="To the dashboard of your account."
      foot=${html`<p>Forgot your password? The operator of this installation makes a link with <code>tollgate-admin user reset-password</code>.</p>`}>
      ${reason && html`<p class="alert alert-warn entry-alert" role="alert">${reason}</p>`}
      <${Form} key="password" label="Sign in" action="Sign in" onSubmit=${password}>
        <${TextField} name="email" label="Email" type="email" autocomplete="username" required autofocus />
        <${TextField} name="password" label="Password" type="password" autocomplete="current-password" required />
      <//>
    <//>`;
  }
  return html`<${SecondFactor} action="Sign in" onCode=${code} onAgain=${again} />`;
}

/** Error messages of signing in. */
function plain(error) {
  if (!(error instanceof ApiError)) return error;
  if (error.code === 'INVALID_CREDENTIALS') return new Error('Email or password is not right.');
  return plainLock(error);
}
