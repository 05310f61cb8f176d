/**
 * Tables of records, and tables that load their records page by page.
 */
import { html, useEffect, useState } from '../html.js';
import { get } from '../api.js';
import { cursorsOf, keepCursors } from '../back.js';
import { useLoad } from '../load.js';
import { useMode } from '../router.js';
import { useSession } from '../session.js';
import { Button } from './button.js';
import { Empty, Failed, Skeleton } from './state.js';

/** Records on one page. */
const PAGE = 25;

/**
 * @typedef {{label: string, cell: (row: object) => unknown, num?: boolean, wide?: boolean, roomy?: boolean, head?:
 *   boolean, hidden?: boolean}} Column `num` aligns right; phones leave out `wide` columns, and screens narrower than a
 *   desktop leave out `roomy` ones; `head` makes the cell the row's header; `hidden` shows the label to screen readers
 *   only (for actions)
 */

const kind = (column) => [column.num && 'num', column.wide && 'wide-only', column.roomy && 'roomy-only'].filter(Boolean).join(' ') || null;

/**
 * @param {{caption: string, columns: Column[], rows: object[], keyOf: (row: object) => string, busy?: boolean,
 *   detail?: {label: (row: object) => string, show: (row: object) => unknown}}} props `caption` is read by screen
 *   readers; with `detail` each row can be opened, `label` names its button
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

/** A row with a button that opens a second row below it. */
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
 * @param {{path: string, plural: string, query?: object, refresh?: unknown, caption: string, columns: Column[],
 *   keyOf: Function, empty: unknown, detail?: object, onData?: (answer: object) => void, quiet?: boolean}} props a new
 *   value of `refresh` reloads the list; a `quiet` list is not dimmed meanwhile. A page stays visible until the next
 *   one is loaded, and Back returns to the same page
 */
export function ListTable({ path, plural, query = {}, refresh = 0, caption, columns, keyOf, empty, detail, onData, quiet = false }) {
  const { account } = useSession();
  const mode = useMode();
  const list = JSON.stringify([account?.id, mode, path, query]);
  // Cursors of the pages up to the current one; the first page has none. The browser's history keeps them.
  const cursors = cursorsOf(list);
  const [, draw] = useState(cursors);
  const go = (to) => {
    keepCursors(list, to);
    draw(to);
  };
  const cursor = cursors.at(-1);
  const { data: shown, error, loading, reload } = useLoad(
    async (signal) => ({ data: await get(path, { ...query, limit: PAGE, cursor }, { signal }), pages: cursors.length }),
    [list, cursor, refresh], [list],
  );
  const data = shown?.data ?? null;
  useEffect(() => {
    if (!data) return;
    // The last page lost its last record, so the page before it is now the last one.
    if (data[plural].length === 0 && data.nextCursor === null && shown.pages > 0) go(cursors.slice(0, -1));
    onData?.(data);
  }, [shown]);
  // The server refuses a cursor that has become invalid: start at the first page.
  useEffect(() => {
    if (error?.status === 400 && cursors.length > 0) go([]);
  }, [error]);
  if (error) return html`<${Failed} error=${error} retry=${reload} />`;
  if (!data) return html`<${Skeleton} rows=${5} label=${`Loading: ${caption}`} />`;
  const rows = data[plural];
  // Until the page has loaded, the cursors do not match the rows, so the buttons do nothing.
  const turn = (to) => () => loading || go(to);
  const isAll = shown.pages === 0 && data.nextCursor === null;
  if (rows.length === 0 && isAll) return typeof empty === 'string' ? html`<${Empty} title=${empty} />` : empty;
  return html`<div>
    <${Table} ...${{ caption, columns, rows, keyOf, detail, busy: loading && !quiet }} />
    ${!isAll && html`<${Pager} ...${{ pages: shown.pages, rows: rows.length, data, back: turn(cursors.slice(0, -1)), next: turn([...cursors, data.nextCursor]) }} />`}
  </div>`;
}

/**
 * Position in the list, with buttons for the previous and next page. A list that is searched by scanning has no total.
 */
function Pager({ pages, rows, data, back, next }) {
  const first = rows === 0 ? 0 : pages * PAGE + 1;
  const [from, to, all] = [first, rows === 0 ? 0 : first + rows - 1, data.total].map((number) => number?.toLocaleString('en-US'));
  return html`<nav class="pager" aria-label="Pages">
    <span class="muted num">${from}–${to}${data.partial === undefined ? ` of ${all}` : ''}</span>
    <${Button} small off=${pages === 0} onClick=${back}>Previous<//>
    <${Button} small off=${data.nextCursor === null} onClick=${next}>Next<//>
  </nav>`;
}
