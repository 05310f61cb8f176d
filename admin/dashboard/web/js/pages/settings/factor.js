/**
 * The second factor: enabling it with an authenticator app and recovery codes, and disabling it with the password.
 */
import { html, useState } from '../../html.js';
import { post } from '../../api.js';
import { session } from '../../session.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { FieldError, Form, TextField, UserName } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { CodeLine, SecretOnce } from '../../ui/secret.js';
import { Badge, Section } from '../../ui/show.js';

const enabled = (on) => session.set({ user: { ...session.get().user, totpEnabled: on } });

/** @param {{user: {email: string, totpEnabled: boolean}}} props */
export function SecondFactor({ user }) {
  const [starting, setStarting] = useState(false);
  const [offer, setOffer] = useState(null);
  const [codes, setCodes] = useState(null);
  const [leaving, setLeaving] = useState(false);
  const begun = (answer) => {
    setStarting(false);
    setOffer(answer);
  };
  const confirmed = (answer) => {
    setOffer(null);
    setCodes(answer.recoveryCodes);
    enabled(true);
  };
  const left = () => {
    setLeaving(false);
    enabled(false);
    say('The second factor is off.');
  };
  return html`<${Section} title="Second factor">
    <p>A code of an authenticator app, asked for after the password. ${user.totpEnabled
    ? html`It is <${Badge} of="on" tone="ok" />.` : html`It is <${Badge} of="off" tone="plain" />.`}</p>
    <div class="actions actions-start">${user.totpEnabled
    ? html`<${Button} kind="danger" onClick=${() => setLeaving(true)}>Turn off<//>`
    : html`<${Button} onClick=${() => setStarting(true)}>Turn on<//>`}</div>
    ${starting && html`<${WithPassword} user=${user} title="Turn on the second factor" action="Continue" text="Enter your password first, so that no other person can lock you out."
      path="/api/user/totp" onClose=${() => setStarting(false)} onDone=${begun} />`}
    ${offer && html`<${TurnOn} offer=${offer} onClose=${() => setOffer(null)} onDone=${confirmed} />`}
    ${codes && html`<${SecretOnce} title="Recovery codes" label="Each works once, in place of a code" what="the recovery codes" secret=${codes.join('\n')} onClose=${() => setCodes(null)} />`}
    ${leaving && html`<${WithPassword} user=${user} title="Turn off the second factor" action="Turn off" kind="danger" text="From then on your password alone opens the account."
      path="/api/user/totp/disable" onClose=${() => setLeaving(false)} onDone=${left} />`}
  <//>`;
}

function TurnOn({ offer, onClose, onDone }) {
  const submit = async ({ code }) => {
    try {
      onDone(await post('/api/user/totp/confirm', { code: code.replace(/\s/g, '') }));
    } catch (error) {
      if (error.code === 'INVALID_CREDENTIALS') throw new FieldError('code', 'This code is not right. Codes change every 30 seconds.');
      throw error;
    }
  };
  return html`<${Dialog} title="Turn on the second factor" onClose=${onClose}>
    <p>Scan this with an authenticator app, or type the secret into it. Its first code turns it on, within 15 minutes.</p>
    <img class="qr" alt="The secret as a QR code" width="200" height="200" src=${`data:image/svg+xml,${encodeURIComponent(offer.qrSvg)}`} />
    <${CodeLine} label="Secret" text=${offer.secret} what="the secret" />
    <${Form} label="Turn on the second factor" action="Turn on" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="code" label="Code that the app shows" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus />
    <//>
  <//>`;
}

/** A step that requires the password. */
function WithPassword({ user, title, text, action, kind = 'primary', path, onClose, onDone }) {
  const submit = async ({ password }) => {
    try {
      onDone(await post(path, { password }));
    } catch (error) {
      if (error.code === 'INVALID_CREDENTIALS') throw new FieldError('password', 'This is not your password.');
      throw error;
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${text}</p>
    <${Form} label=${title} action=${action} kind=${kind} onSubmit=${submit} onCancel=${onClose}>
      <${UserName} value=${user.email} />
      <${TextField} name="password" label="Password" type="password" autocomplete="current-password" required autofocus />
    <//>
  <//>`;
}
