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

const kind = (column) => [column.num && 'num', column.wide && 'wide-only'].filter(Boolean).join(' ') || null;

/**
 * @param {{caption: string, columns: Column[], rows: object[], keyOf: (row: object) => string, busy?: boolean,
 *   detail?: {label: (row: object) => string, show: (row: object) => unknown}}} props `caption` is read by screen readers;
 *   with `detail` each row can be opened, `label` names its button
 */
export function Table({ caption, columns, rows, keyOf, busy = false, detail }) {
  return html`<div class="table-scroll" role="group" aria-label=${caption} tabindex="0">
    <table class="table" aria-busy=${busy ? 'true' : null}>
      <caption class="sr-only">${caption}</caption>
      <thead><tr>
        ${detail && html`<th scope="col"><span class="sr-only">Details</span></th>`}
        ${columns.map((column) => html`<th key=${column.label} scope="col" class=${kind(column)}>
          ${column.hidden ? html`<span class="sr-only">${column.label}</span>` : column.label}
        </th>`)}
      </tr></thead>
      <tbody>
        ${rows.map((row) => (detail
    ? html`<${Openable} key=${keyOf(row)} columns=${columns} row=${row} detail=${detail} />`
    : html`<tr key=${keyOf(row)}><${Cells} columns=${columns} row=${row} /></tr>`))}
      </tbody>
    </table>
  </div>`;
}

function Cells({ columns, row }) {
  return columns.map((column) => (column.head
    ? html`<th key=${column.label} scope="row" class=${kind(column)}>${column.cell(row)}</th>`
    : html`<td key=${column.label} class=${kind(column)}>${column.cell(row)}</td>`));
}

/** A row with a second one below it that is shown on request. */
function Openable({ columns, row, detail }) {
  const [open, setOpen] = useState(false);
  const toggle = html`<button type="button" class="icon-button row-toggle" aria-expanded=${open ? 'true' : 'false'} aria-label=${detail.label(row)}
    onClick=${() => setOpen(!open)}><span aria-hidden="true">›</span></button>`;
  const first = html`<tr key="row"><td class="cell-toggle">${toggle}</td><${Cells} columns=${columns} row=${row} /></tr>`;
  if (!open) return [first];
  return [first, html`<tr key="detail" class="row-detail"><td colspan=${columns.length + 1}>${detail.show(row)}</td></tr>`];
}

/**
 * A list of the API.
 * @param {{path: string, plural: string, query?: object, refresh?: unknown, caption: string, columns: Column[], keyOf: Function,
 *   empty: unknown, detail?: object, onData?: (answer: object) => void}} props `refresh`: another value loads again
 */
export function ListTable({ path, plural, query = {}, refresh = 0, caption, columns, keyOf, empty, detail, onData }) {
  const [offset, setOffset] = useState(0);
  const filters = JSON.stringify(query);
  useEffect(() => setOffset(0), [path, filters]);
  const { data, error, loading, reload } = useLoad(
    (signal) => get(path, { ...query, limit: PAGE, offset }, { signal }),
    [path, filters, offset, refresh],
  );
  useEffect(() => {
    if (!data) return;
    // The last record of the last page went: the page before it is the last one then.
    if (data[plural].length === 0 && data.total > 0 && offset >= data.total) setOffset(lastPage(data.total));
    onData?.(data);
  }, [data]);
  if (error) return html`<${Failed} error=${error} retry=${reload} />`;
  if (!data) return html`<${Skeleton} rows=${5} label=${`Loading: ${caption}`} />`;
  const rows = data[plural];
  if (data.total === 0) return typeof empty === 'string' ? html`<${Empty} title=${empty} />` : empty;
  return html`<div>
    <${Table} ...${{ caption, columns, rows, keyOf, detail, busy: loading }} />
    <${Pager} total=${data.total} offset=${offset} limit=${PAGE} go=${setOffset} />
  </div>`;
}

/** Where the last page begins. */
const lastPage = (total) => Math.floor((total - 1) / PAGE) * PAGE;

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
