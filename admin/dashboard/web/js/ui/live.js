/**
 * Results told to everyone: a toast for eyes, a live region for screen readers.
 */
import { html, useEffect } from '../html.js';
import { store, useStore } from '../store.js';

/** How long a result is shown; a failure stays until it is dismissed. */
const SHOWN_MS = 6000;
const SHOWN_MAX = 3;
const toasts = store({ list: [], next: 1 });

/**
 * Tells of a result.
 * @param {string} text one sentence
 * @param {'ok'|'error'|'info'} tone
 */
export function say(text, tone = 'ok') {
  const { list, next } = toasts.get();
  toasts.set({ list: [...list, { id: next, text, tone }].slice(-SHOWN_MAX), next: next + 1 });
}

function dismiss(id) {
  toasts.set({ list: toasts.get().list.filter((toast) => toast.id !== id) });
}

function Toast({ id, text, tone }) {
  useEffect(() => {
    if (tone === 'error') return undefined;
    const timer = setTimeout(() => dismiss(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return html`<div class="toast toast-${tone}">
    <span dir="auto">${text}</span>
    <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => dismiss(id)}>×</button>
  </div>`;
}

/** The place of the toasts; the frame has one. */
export function Toasts() {
  const { list } = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite" aria-label="Results">
    ${list.map((toast) => html`<${Toast} key=${toast.id} ...${toast} />`)}
  </div>`;
}
