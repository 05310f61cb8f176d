/**
 * Results told to everyone: a toast for eyes, a live region for screen readers.
 */
import { html, useEffect } from '../html.js';
import { place } from '../router.js';
import { store, useStore } from '../store.js';

/** How long a result is shown; a failure stays until it is dismissed, or the page after the next is opened. */
const SHOWN_MS = 6000;
const SHOWN_MAX = 3;
const toasts = store({ list: [], next: 1 });

/**
 * Tells of a result.
 * @param {string} text one sentence
 * @param {'ok'|'error'|'info'} tone
 * @param {string} [about] takes the place of an earlier result about the same
 */
export function say(text, tone = 'ok', about = null) {
  const { list, next } = toasts.get();
  const others = list.filter((toast) => about === null || toast.about !== about);
  const entry = place.get().entry;
  toasts.set({ list: [...others, { id: next, text, tone, about, entry }].slice(-SHOWN_MAX), next: next + 1 });
}

// A failure is told on the page where it happened and on the one that follows from it, and on no later one.
place.watch(({ entry }) => {
  const { list } = toasts.get();
  const kept = list.filter((toast) => toast.tone !== 'error' || entry - toast.entry < 2);
  if (kept.length < list.length) toasts.set({ list: kept });
});

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
