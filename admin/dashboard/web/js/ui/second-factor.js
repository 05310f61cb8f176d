/**
 * The step of signing in that requires a code of the second factor or a recovery code.
 */
import { html, useState } from '../html.js';
import { ApiError } from '../api.js';
import { FieldError, Form, TextField } from './form.js';
import { OpenPage } from './open.js';

/**
 * @param {{action: string, onCode: (totp: string) => Promise<unknown>, onAgain: () => void}} props `action` is the
 *   label of the button that sends the code; `onAgain` leads back to the first step
 */
export function SecondFactor({ action, onCode, onAgain }) {
  const [recovery, setRecovery] = useState(false);
  const submit = async ({ totp }) => {
    try {
      await onCode(totp.replace(/\s/g, ''));
    } catch (error) {
      if (error.code === 'INVALID_CREDENTIALS') throw new FieldError('totp', wrong(recovery));
      throw plainLock(error);
    }
  };
  return html`<${OpenPage} title="Second factor"
    lead=${recovery ? 'Enter one of the recovery codes that you stored. Each works once.' : 'Enter the code that your authenticator app shows.'}
    foot=${html`<button type="button" class="button button-quiet button-small" onClick=${() => setRecovery(!recovery)}>
      ${recovery ? 'Use the authenticator app' : 'Use a recovery code'}</button>
      <button type="button" class="button button-quiet button-small" onClick=${onAgain}>Start again</button>`}>
    <${Form} key=${recovery ? 'recovery' : 'code'} label="Second factor" action=${action} onSubmit=${submit}>
      ${recovery
    ? html`<${TextField} name="totp" label="Recovery code" autocomplete="off" required autofocus />`
    : html`<${TextField} name="totp" label="Code" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus />`}
    <//>
  <//>`;
}

const wrong = (recovery) =>
  (recovery ? 'This recovery code is not right, or was used before.' : 'This code is not right. Codes change every 30 seconds.');

/** Returns the error, with the time to wait in its message if there were too many attempts. */
export function plainLock(error) {
  if (!(error instanceof ApiError) || error.code !== 'LOGIN_LOCKED') return error;
  const minutes = Math.ceil((error.retryAfter ?? 60) / 60);
  return new Error(`Too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`);
}
