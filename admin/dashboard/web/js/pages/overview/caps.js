/**
 * Limits that are more than half used: daily and monthly caps of agents, and the plan of the account.
 */
import { html } from '../../html.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { href } from '../../router.js';
import { Meter, Name, Section } from '../../ui/show.js';
import { Empty, Loaded } from '../../ui/state.js';

/** Limits shown, the fullest first. */
const MOST = 8;
const CAPS = { day: 'Daily cap', month: 'Monthly cap', plan: 'Tracked spend of the month', spend: 'Spend limit of the day' };

/** @param {{asOf: string}} props a new `asOf` reloads the list */
export function CloseToCaps({ asOf }) {
  const load = useLoad((signal) => get('/thresholds', { limit: MOST }, { signal }), [asOf]);
  return html`<${Section} title="Closest to a limit" lead="Agents beyond half of a cap, and the plan, the fullest first">
    <${Loaded} load=${load} label="Loading the limits">${({ thresholds, total, partial }) => (thresholds.length === 0
    ? html`<${Empty} title="No limit is more than half used." />`
    : html`<ul class="caps">${thresholds.map((one) => html`<li key=${`${one.cap} ${one.agentId}`}>
        ${one.cap === 'plan' ? html`<a href=${href('/plan')}>The plan</a>` : html`<a href=${href('/agents', one.agentId)} title=${one.agentId}><${Name} of=${one.agentName ?? one.agentId} /></a>`}
        <${Meter} label=${`${CAPS[one.cap]}, ${one.percent} %`} used=${one.spentUsd} limit=${one.limitUsd} /></li>`)}</ul>
      ${total > thresholds.length && html`<p class="hint card-foot">and ${(total - thresholds.length).toLocaleString('en-US')} more</p>`}
      ${partial && html`<p class="hint card-foot">There are more than 5,000 agents: these are of the newest.</p>`}`)}<//>
  <//>`;
}
