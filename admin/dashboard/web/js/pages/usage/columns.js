/**
 * The table of the usage: one row for each group, with links to its calls.
 */
import { html } from '../../html.js';
import { share } from '../../money.js';
import { href } from '../../router.js';
import { Amount, Id, Name } from '../../ui/show.js';
import { AgentLink } from '../../ui/who.js';
import { approvedIn } from './links.js';

const HEADS = { model: 'Model', agent: 'Agent', key: 'Virtual key', run: 'Run' };
/** The parameter by which the list of calls filters for a group. */
const FILTERS = { model: 'model', agent: 'agentId', key: 'keyId', run: 'runId' };
/** Label of calls without a group. */
const WITHOUT = { model: 'No model', agent: 'No agent', key: 'No key', run: 'Without a run' };

/** Label of a group. */
export const labelOf = ({ group, name }, groupBy) => (group === null ? WITHOUT[groupBy] : (name ?? group));

const whole = (number) => number.toLocaleString('en-US');

export function columns(wanted, groups) {
  const { groupBy, from, to } = wanted;
  const total = groups.reduce((all, { cost }) => all + cost, 0n);
  /** A number that links to the calls it counts. */
  const calls = (row, number, what, filter) => (row.group === null || number === 0 ? whole(number)
    : html`<a href=${href('/calls', { [FILTERS[groupBy]]: row.group, ...filter })} aria-label=${`${whole(number)}, ${what} of ${labelOf(row, groupBy)}`}>${whole(number)}</a>`);
  return [
    { label: HEADS[groupBy], head: true, cell: (row) => html`<${Group} row=${row} groupBy=${groupBy} />` },
    { label: 'Calls', num: true, cell: (row) => calls(row, row.calls, 'the calls', approvedIn(wanted)) },
    { label: 'Denied', wide: true, num: true, cell: (row) => calls(row, row.denied, 'the denied calls', { outcome: 'denied', from, to }) },
    { label: 'Tokens in', wide: true, num: true, cell: (row) => html`${whole(row.inputTokens)}${row.cachedTokens > 0 && html`<span class="cell-sub">${whole(row.cachedTokens)} cached</span>`}` },
    { label: 'Tokens out', wide: true, num: true, cell: (row) => html`${whole(row.outputTokens)}${row.unmeasured > 0 && html`<span class="cell-sub" title="Approved calls whose tokens are not known: they are in the cost and not in the tokens">+ ${whole(row.unmeasured)} unknown</span>`}` },
    { label: 'Share', wide: true, num: true, cell: (row) => `${(share(row.cost, total) * 100).toFixed(1)} %` },
    { label: 'Cost', num: true, cell: (row) => html`<${Amount} of=${row.cost} />` },
  ];
}

function Group({ row, groupBy }) {
  if (row.group === null) return html`<span class="muted">${WITHOUT[groupBy]}</span>`;
  if (groupBy === 'agent') return html`<${AgentLink} id=${row.group} name=${row.name} />`;
  if (!row.name) return html`<${Name} of=${row.group} />`;
  return html`<span class="agent-name"><${Name} of=${row.name} /><${Id} of=${row.group} /></span>`;
}
