/**
 * Tables of records, and tables that load their records page by page.
 */
import { html, useEffect, useState } from '../html.js';
import { get } from '../api.js';
import { useLoad } from '../load.js';
import { Button } from './button.js';
import { Empty, Failed, Skeleton } from './state.js';

/** Records on one page. */
const PAGE = 25;

/**
 * @typedef {{label: string, cell: (row: object) => unknown, num?: boolean, wide?: boolean, head?: boolean, hidden?: boolean}} Column
 *   `num` aligns right; `wide` is left out on phones; `head` makes the cell the row's header; `hidden` hides the label from
 *   eyes only (for actions)
 */

/**
 * @param {{caption: string, columns: Column[], rows: object[], keyOf: (row: object) => string, busy?: boolean}} props
 *   `caption` is read by screen readers
 */
export function Table({ caption, columns, rows, keyOf, busy = false }) {
  const kind = (column) => [column.num && 'num', column.wide && 'wide-only'].filter(Boolean).join(' ') || null;
  return html`<div class="table-scroll" role="group" aria-label=${caption} tabindex="0">
    <table class="table" aria-busy=${busy ? 'true' : null}>
      <caption class="sr-only">${caption}</caption>
      <thead><tr>
        ${columns.map((column) => html`<th key=${column.label} scope="col" class=${kind(column)}>
          ${column.hidden ? html`<span class="sr-only">${column.label}</span>` : column.label}
        </th>`)}
      </tr></thead>
      <tbody>
        ${rows.map((row) => html`<tr key=${keyOf(row)}>
          ${columns.map((column) => (column.head
            ? html`<th key=${column.label} scope="row" class=${kind(column)}>${column.cell(row)}</th>`
            : html`<td key=${column.label} class=${kind(column)}>${column.cell(row)}</td>`))}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

/**
 * A list of the API.
 * @param {{path: string, plural: string, query?: object, refresh?: unknown, caption: string, columns: Column[], keyOf: Function,
 *   empty: unknown, onData?: (answer: object) => void}} props `refresh`: another value loads again
 */
export function ListTable({ path, plural, query = {}, refresh = 0, caption, columns, keyOf, empty, onData }) {
  const [offset, setOffset] = useState(0);
  const filters = JSON.stringify(query);
  useEffect(() => setOffset(0), [path, filters]);
  const { data, error, loading, reload } = useLoad(
    (signal) => get(path, { ...query, limit: PAGE, offset }, { signal }),
    [path, filters, offset, refresh],
  );
  useEffect(() => {
    if (data) onData?.(data);
  }, [data]);
  if (error) return html`<${Failed} error=${error} retry=${reload} />`;
  if (!data) return html`<${Skeleton} rows=${5} label=${`Loading: ${caption}`} />`;
  const rows = data[plural];
  if (data.total === 0) return typeof empty === 'string' ? html`<${Empty} title=${empty} />` : empty;
  return html`<div>
    <${Table} ...${{ caption, columns, rows, keyOf, busy: loading }} />
    <${Pager} total=${data.total} offset=${offset} limit=${PAGE} go=${setOffset} />
  </div>`;
}

/** Which part of a list is shown, and the way to the others. */
export function Pager({ total, offset, limit, go }) {
  if (total <= limit && offset === 0) return null;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pager" aria-label="Pages">
    <span class="muted num">${total === 0 ? 0 : offset + 1}–${last} of ${total}</span>
    <${Button} small disabled=${offset === 0} onClick=${() => go(Math.max(0, offset - limit))}>Previous<//>
    <${Button} small disabled=${last >= total} onClick=${() => go(offset + limit)}>Next<//>
  </nav>`;
}
