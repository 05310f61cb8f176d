/**
 * Table that compares all plans.
 */
import { html, useLayoutEffect, useRef } from '../../html.js';
import { usd } from '../../money.js';
import { plainWord } from '../../words.js';
import { ActionButton } from '../../ui/button.js';
import { Badge, Section } from '../../ui/show.js';

const number = (value, unit = '') => (value === null ? 'unlimited' : `${value.toLocaleString('en-US')}${unit}`);

/** Rows of the table: a label, and a function that formats a plan's value. */
const ROWS = [
  ['Tracked spend a month', ({ limits }) => (limits.trackedUsdPerMonth === null ? 'unlimited' : usd(limits.trackedUsdPerMonth))],
  ['Agents that spend in a month', ({ limits }) => number(limits.capAgentsPerMonth)],
  ['Active virtual keys', ({ limits }) => number(limits.activeVirtualKeys)],
  ['Calls of a key', ({ limits }) => number(limits.proxyRequestsPerMinute, ' a minute')],
  ['Agents', ({ limits }) => number(limits.customAgents)],
  ['Requests of an API key', ({ limits }) => number(limits.managementRequestsPerMinute, ' a minute')],
  ['– for wallets and escrow', ({ limits }) => number(limits.walletRequestsPerMinute, ' a minute')],
  ['– for spends, transfers, new agents, policies, the audit trail', ({ limits }) => number(limits.agentRequestsPerDay, ' a day')],
  ['Webhooks in the dashboard', ({ features }) => (features.webhooksInDashboard ? 'yes' : 'no')],
];

function lead(choose, { selfServicePlans }) {
  if (!choose) return 'An owner can change the plan.';
  return selfServicePlans ? null : 'Ask the operator of this installation for a larger plan. You can move to a smaller one yourself.';
}

/**
 * @param {{data: object, wanted?: string, choose: null | ((name: string) => Promise<void>)}} props `wanted` is
 *   highlighted
 */
export function Plans({ data, wanted, choose }) {
  const { plans } = data;
  const badge = (plan) => {
    if (plan.current) return html`<${Badge} of="yours" tone="info" />`;
    return plan.name === (wanted ?? data.upgradeTo) ? html`<${Badge} of="next step" tone="ok" />` : '';
  };
  const now = plans.findIndex(({ current }) => current);
  const way = (plan) => (plans.indexOf(plan) > now ? 'Upgrade' : 'Downgrade');
  const action = (plan) => {
    if (plan.current) return null;
    if (way(plan) === 'Upgrade' && !data.selfServicePlans) return html`<span class="muted">by the operator</span>`;
    return html`<${ActionButton} small kind=${plan.name === (wanted ?? data.upgradeTo) ? 'primary' : 'plain'}
      run=${() => choose(plan.name)} aria-label=${`${way(plan)} to ${plainWord(plan.name)}`}>${way(plan)}<//>`;
  };
  // On a phone the column of the current plan may be outside the visible part of the table.
  const box = useRef(null);
  useLayoutEffect(() => {
    const { offsetLeft, offsetWidth } = box.current.querySelector('[aria-current]') ?? box.current;
    box.current.scrollLeft = offsetLeft + offsetWidth - box.current.clientWidth;
  }, []);
  return html`<${Section} title="Plans" flush lead=${lead(choose, data)}>
    <div ref=${box} class="table-scroll" role="group" aria-label="Plans" tabindex="0"><table class="table plans">
      <caption class="sr-only">Plans</caption>
      <thead><tr><th scope="col"><span class="sr-only">What</span></th>
        ${plans.map((plan) => html`<th key=${plan.name} scope="col" aria-current=${plan.current ? 'true' : null}><span class="plan-name">${plainWord(plan.name)} ${badge(plan)}</span></th>`)}</tr></thead>
      <tbody>
        ${ROWS.map(([label, of]) => html`<tr key=${label}><th scope="row">${label}</th>${plans.map((plan) => html`<td key=${plan.name} class="num">${of(plan)}</td>`)}</tr>`)}
        ${choose && html`<tr><th scope="row"><span class="sr-only">Change the plan</span></th>${plans.map((plan) => html`<td key=${plan.name}>${action(plan)}</td>`)}</tr>`}
      </tbody>
    </table></div>
  <//>`;
}
