/**
 * Dialogs, built on the native element, which traps and restores the focus; and the confirmation before an action that
 * deletes or stops something.
 */
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js';
import { underWay } from '../once.js';
import { place } from '../router.js';
import { session } from '../session.js';
import { store, useStore } from '../store.js';
import { Button } from './button.js';

let made = 0;

/**
 * A modal dialog, open as long as it is rendered. It cannot be closed while a request with an idempotency key is under
 * way: only the form has the key that makes it safe to send again.
 * @param {{title: string, onClose: () => void, wide?: boolean, locked?: boolean}} props `locked` ignores Escape
 */
export function Dialog({ title, onClose, wide = false, locked = false, children }) {
  const element = useRef(null);
  const leaving = useRef(false);
  const sending = useStore(underWay).count > 0;
  const held = locked || sending;
  const [id] = useState(() => `dialog-${(made += 1)}`);
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    dialog.querySelector('[data-first]')?.focus();
    return () => {
      leaving.current = true;
      dialog.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    if (!held) onClose();
  };
  // A second Escape closes a dialog even if `cancel` was prevented, so a held dialog swallows the key. If the element
  // closes in any other way, the component closes with it.
  const keys = (event) => held && event.key === 'Escape' && event.preventDefault();
  const closed = () => !leaving.current && onClose();
  return html`<dialog ref=${element} class=${wide ? 'dialog dialog-wide' : 'dialog'} aria-labelledby=${id} onCancel=${cancel} onKeyDown=${keys} onClose=${closed}>
    <header class="dialog-head">
      <h2 id=${id} dir="auto">${title}</h2>
      ${!locked && html`<button type="button" class="icon-button" aria-label="Close" disabled=${sending} onClick=${onClose}>×</button>`}
    </header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

const pending = store({ question: null });

/** Closes the open confirmation, if there is one, and resolves it. */
function answer(said) {
  const { question } = pending.get();
  pending.set({ question: null });
  question?.resolve(said);
}

const userId = () => session.get().user?.id;

const historyEntry = () => place.get().entry;

// A yes of one user must not be carried out as another, who has signed in in another tab meanwhile; nor may a question
// outlive its page, which the browser's Back leaves also while a dialog is open.
for (const source of [session, place]) {
  source.watch(() => {
    const { question } = pending.get();
    if (question && (question.userId !== userId() || question.entry !== historyEntry())) answer(false);
  });
}

/**
 * Asks for confirmation before an action that deletes or stops something.
 * @param {{title: string, text: string, action: string, danger?: boolean, type?: string}} question `action` is the
 *   button's label ("Freeze agent"); with `type`, the user must type that text first
 * @returns {Promise<boolean>} false also if another user has signed in or the page was left meanwhile
 */
export function confirm(question) {
  return new Promise((resolve) => {
    pending.set({ question: { danger: true, ...question, userId: userId(), entry: historyEntry(), resolve } });
  });
}

function Question({ title, text, action, danger, type }) {
  const [typed, setTyped] = useState('');
  const ready = !type || typed === type;
  return html`<${Dialog} title=${title} onClose=${() => answer(false)}>
    <form method="dialog" onSubmit=${(event) => { event.preventDefault(); if (ready) answer(true); }}>
      <p dir="auto">${text}</p>
      ${type && html`<div class="field">
        <label for="confirm-type">Type <bdi class="code">${type}</bdi> to confirm</label>
        <input id="confirm-type" class="input" autocomplete="off" dir="auto" value=${typed} onInput=${(event) => setTyped(event.target.value)} />
      </div>`}
      <div class="actions">
        <${Button} onClick=${() => answer(false)}>Cancel<//>
        <${Button} type="submit" kind=${danger ? 'danger' : 'primary'} disabled=${!ready}>${action}<//>
      </div>
    </form>
  <//>`;
}

/** Renders the open confirmation; part of the frame. If the frame disappears with the session, the answer is no. */
export function Confirmations() {
  const { question } = useStore(pending);
  useEffect(() => () => answer(false), []);
  return question && html`<${Question} ...${question} />`;
}
