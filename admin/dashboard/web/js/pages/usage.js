/**
 * Usage over time by model, agent, key or run, as a chart, a table and a file.
 */
import { html, useMemo, useState } from '../html.js';
import { download } from '../download.js';
import { useLoad } from '../load.js';
import { href, setQuery, useMode } from '../router.js';
import { Time } from '../time.js';
import { count } from '../words.js';
import { ActionButton, Button, LinkButton } from '../ui/button.js';
import { StackedDays } from '../ui/chart.js';
import { Filters, TimeFilter } from '../ui/filters.js';
import { say } from '../ui/live.js';
import { Amount, Name, PageHead, Section } from '../ui/show.js';
import { Empty, Loaded } from '../ui/state.js';
import { Table } from '../ui/table.js';
import { columns, labelOf } from './usage/columns.js';
import { read, series, summed } from './usage/sums.js';

const GROUPS = [['model', 'Model'], ['agent', 'Agent'], ['key', 'Virtual key'], ['run', 'Run']];
const SPANS = [['1', '24 hours'], ['7', '7 days'], ['30', '30 days'], ['90', '90 days']];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Longest time range that the chart draws by the hour. */
const BY_HOUR_MS = 3 * DAY_MS;

/** Groups in the table until the user shows all. */
const SHOWN = 50;

export default function Usage({ query }) {
  const mode = useMode();
  const groupBy = GROUPS.some(([group]) => group === query.by) ? query.by : 'model';
  const span = SPANS.some(([days]) => days === query.days) ? query.days : '30';
  const wanted = useMemo(() => queryOf(groupBy, span, query), [groupBy, span, query.from, query.to]);
  const load = useLoad((signal) => read(wanted, signal), [JSON.stringify(wanted)]);
  const actions = html`<${Segments} label="Time span" options=${SPANS} value=${query.from || query.to ? null : span}
      choose=${(days) => setQuery({ days: days === '30' ? null : days, from: null, to: null })} />
    <${Button} onClick=${load.reload}>Refresh<//>`;
  return html`<div class="stack">
    <${PageHead} title="Usage" actions=${actions}>Calls, tokens and cost of all agents over time. Spends and transfers of wallets are not calls.<//>
    ${mode === 'test' && html`<p class="alert alert-info">Calls exist in live mode only.</p>`}
    <${Filters} label="Usage">
      <div class="filter filter-wide"><span class="filter-label" id="usage-by">Group by</span>
        <${Segments} label="Group by" options=${GROUPS} value=${groupBy} choose=${(by) => setQuery({ by: by === 'model' ? null : by })} /></div>
      <${TimeFilter} name="from" label="From" /><${TimeFilter} name="to" label="Before" />
    <//>
    <${Loaded} load=${load} label="Loading the usage">${(data) => html`<${Body} data=${data} wanted=${wanted} load=${load} />`}<//>
  </div>`;
}

/** The query of the API: whole hours for up to three days, otherwise whole days. */
function queryOf(groupBy, span, { from, to }) {
  const now = Date.now();
  const unit = span === '1' ? HOUR_MS : DAY_MS;
  const back = span === '1' ? 23 : Number(span) - 1;
  const begin = from || new Date(Math.floor(now / unit) * unit - back * unit).toISOString();
  const length = (to ? Date.parse(to) : now) - Date.parse(begin);
  return { groupBy, interval: length <= BY_HOUR_MS ? 'hour' : 'day', from: begin, to };
}

function Segments({ label, options, value, choose }) {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${options.map(([key, text]) => html`<button key=${key} type="button" class="segment" aria-pressed=${key === value ? 'true' : 'false'} onClick=${() => choose(key)}>${text}</button>`)}
  </div>`;
}

function Body({ data, wanted, load }) {
  const groups = summed(data.rows);
  const [all, setAll] = useState(false);
  const shown = all ? groups : groups.slice(0, SHOWN);
  const further = async () => load.set(await read(wanted, undefined, data));
  const csv = html`<${ActionButton} small run=${() => keep(wanted)}>Download CSV<//>`;
  return html`<div class="stack">
    ${data.cursor && html`<div class="alert alert-warn next-step"><p>There are more calls than one look reads: what is shown begins at <${Time} at=${data.coveredFrom} full />.</p>
      <${ActionButton} small run=${further}>Read further back<//></div>`}
    ${groups.length === 0
    ? html`<div class="card"><div class="card-body"><${Empty} title="No call in this time."><p><${LinkButton} to=${href('/connect')}>Connect a program<//></p><//></div></div>`
    : html`<${Section} title=${`Cost by ${wanted.interval}`}><${Chart} data=${data} groups=${groups} wanted=${wanted} /><//>
      <${Section} title=${`By ${GROUPS.find(([group]) => group === wanted.groupBy)[1].toLowerCase()}`} flush actions=${csv}>
        <${Table} caption="Usage" columns=${columns(wanted, groups)} rows=${shown} keyOf=${(row) => row.group ?? ''} />
        ${groups.length > SHOWN && html`<div class="pager"><span class="muted num">${all ? 'All' : `The ${SHOWN} dearest`} of ${groups.length.toLocaleString('en-US')}</span>
          <${Button} small onClick=${() => setAll(!all)}>${all ? `Show the ${SHOWN} dearest` : 'Show all'}<//></div>`}
      <//>`}
    <p class="hint">From <${Time} at=${data.coveredFrom} full /> ${wanted.to ? html`until before <${Time} at=${wanted.to} full />` : 'on'}. A call counts when it was approved, with what it cost in the end.</p>
  </div>`;
}

function Chart({ data, groups, wanted }) {
  const { names, steps } = series(data, groups, wanted, labelOf);
  const total = groups.reduce((all, group) => all + group.cost, 0n);
  const calls = groups.reduce((all, group) => all + group.calls, 0);
  const about = `in ${count(calls, 'call')} over ${count(steps.length, wanted.interval)}`;
  return html`<div>
    <${StackedDays} days=${steps} series=${names.map(({ name }) => name)} total=${total} about=${about} hours=${wanted.interval === 'hour'} />
    <ul class="legend">${names.map(({ name, cost }, index) => html`<li key=${index}><span class=${`swatch c${index + 1}`} aria-hidden="true"></span>
      <${Name} of=${name} /><${Amount} of=${cost} /></li>`)}</ul>
  </div>`;
}

async function keep(wanted) {
  await download('/usage', { query: { ...wanted, format: 'csv' }, name: 'usage.csv' });
  say('Saved the usage as CSV.');
}
