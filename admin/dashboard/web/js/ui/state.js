/**
 * Placeholders for data that is loading, failed to load, or is empty.
 */
import { html } from '../html.js';
import { Button } from './button.js';

/** Grey bars while data loads. */
export function Skeleton({ rows = 3, label = 'Loading' }) {
  return html`<div class="skeleton" role="status" aria-label=${label}>
    ${Array.from({ length: rows }, (_, index) => html`<div key=${index} class="skeleton-bar"></div>`)}
  </div>`;
}

/** An error with a button that tries again. */
export function Failed({ error, retry }) {
  const gone = error.status === 404;
  return html`<div class="notice" role="alert">
    <p class="empty-title">${gone ? 'Not found' : 'This could not be loaded'}</p>
    <p dir="auto">${error.message}</p>
    ${error.requestId && error.status >= 500 && html`<p class="muted">Request id: <code>${error.requestId}</code></p>`}
    ${retry && !gone && html`<${Button} onClick=${retry}>Try again<//>`}
  </div>`;
}

/** Warning above data that could not be reloaded: it may be outdated. */
export function Stale({ load }) {
  if (!load.error || !load.data) return null;
  return html`<div class="alert alert-warn next-step" role="alert"><p>This is as it was before; it could not be loaded again: <span dir="auto">${load.error.message}</span></p>
    <${Button} small onClick=${load.reload}>Try again<//></div>`;
}

/** Says that there is no data yet. The children say how to get some. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/**
 * Shows a placeholder until the data is loaded, then calls `children` with it.
 * @param {{load: ReturnType<import('../load.js').useLoad>}} props
 */
export function Loaded({ load, rows = 4, label, children }) {
  if (load.error) return html`<${Failed} error=${load.error} retry=${load.reload} />`;
  if (!load.data) return html`<${Skeleton} rows=${rows} label=${label} />`;
  return children(load.data);
}
