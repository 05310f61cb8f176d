/**
 * Buttons, and links that look like them.
 */
import { html, useState } from '../html.js';
import { say } from './live.js';

/**
 * @param {{kind?: 'plain'|'primary'|'danger'|'quiet', small?: boolean, busy?: boolean, off?: boolean, type?: string,
 *   onClick?: Function}} props a `busy` button ignores clicks and shows that it works; an `off` button is disabled but
 *   keeps the focus
 */
export function Button({ kind = 'plain', small = false, busy = false, off = false, type = 'button', onClick, disabled, children, ...rest }) {
  const classes = `button button-${kind}${small ? ' button-small' : ''}`;
  const click = (event) => (busy || off ? event.preventDefault() : onClick?.(event));
  return html`<button type=${type} class=${classes} disabled=${disabled} aria-busy=${busy ? 'true' : null} aria-disabled=${off ? 'true' : null} onClick=${click} ...${rest}>
    ${busy && html`<span class="spinner" aria-hidden="true"></span>`}${children}
  </button>`;
}

/** A link that looks like a button. */
export function LinkButton({ to, kind = 'plain', small = false, children, ...rest }) {
  return html`<a class=${`button button-${kind}${small ? ' button-small' : ''}`} href=${to} ...${rest}>${children}</a>`;
}

/**
 * A button that runs one change. It is busy meanwhile, and shows a failure in a toast.
 * @param {{run: () => Promise<unknown>}} props
 */
export function ActionButton({ run, children, ...rest }) {
  const [busy, setBusy] = useState(false);
  const click = async () => {
    setBusy(true);
    try {
      await run();
    } catch (error) {
      say(error.message, 'error');
    } finally {
      setBusy(false);
    }
  };
  return html`<${Button} busy=${busy} onClick=${click} ...${rest}>${children}<//>`;
}

/**
 * Copies a text.
 * @param {{text: string, what: string}} props `what` names it: "the secret"
 */
export function CopyButton({ text, what, small = true }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 2000);
    } catch {
      say('The browser does not let this page copy. Select the text and copy it by hand.', 'error');
    }
  };
  // The button shows the failure itself: toasts are out of reach while a dialog is open.
  return html`<span class="copy"><${Button} small=${small} onClick=${copy} aria-label=${`${done ? 'Copied' : 'Copy'} ${what}`}>${done ? 'Copied' : 'Copy'}<//>
    <span class="sr-only" role="status">${done ? `Copied ${what}.` : ''}</span></span>`;
}
