/**
 * Result messages: visible toasts, which a live region also announces to screen readers.
 */
import { html, useEffect } from '../html.js';
import { place } from '../router.js';
import { session } from '../session.js';
import { store, useStore } from '../store.js';

/** Display time of a result. A failure stays until the user dismisses it or opens the second page after it. */
const SHOWN_MS = 6000;
const SHOWN_MAX = 3;
const toasts = store({ list: [], next: 1 });

/**
 * Shows a result message.
 * @param {string} text one sentence
 * @param {'ok'|'error'|'info'} tone
 * @param {string} [about] replaces an earlier message with the same `about`
 */
export function say(text, tone = 'ok', about = null) {
  const { list, next } = toasts.get();
  const others = list.filter((toast) => about === null || toast.about !== about);
  const entry = place.get().entry;
  toasts.set({ list: [...others, { id: next, text, tone, about, entry }].slice(-SHOWN_MAX), next: next + 1 });
}

// A failure stays visible on the page where it happened and on the next one, but on no later page.
place.watch(({ entry }) => {
  const { list } = toasts.get();
  const kept = list.filter((toast) => toast.tone !== 'error' || entry - toast.entry < 2);
  if (kept.length < list.length) toasts.set({ list: kept });
});

// The next user of this browser must not see the results of the previous one.
let userId;
session.watch(({ user }) => {
  if (userId && userId !== user?.id) toasts.set({ list: [] });
  userId = user?.id;
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

/** Container of the toasts. The frame renders it once. */
export function Toasts() {
  const { list } = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite" aria-label="Results">
    ${list.map((toast) => html`<${Toast} key=${toast.id} ...${toast} />`)}
  </div>`;
}
