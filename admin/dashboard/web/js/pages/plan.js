/**
 * The plan: the used share of its limits, and a comparison with the other plans.
 */
import { html } from '../html.js';
import { get, post } from '../api.js';
import { useLoad } from '../load.js';
import { may } from '../session.js';
import { plainWord } from '../words.js';
import { confirm } from '../ui/dialog.js';
import { say } from '../ui/live.js';
import { CopyableId } from '../ui/hash.js';
import { Facts, Meter, PageHead, Section } from '../ui/show.js';
import { Loaded } from '../ui/state.js';
import { Plans } from './plan/plans.js';

export default function Plan({ query }) {
  const load = useLoad((signal) => get('/account', {}, { signal }), []);
  const choose = async (name) => {
    // Without self-service, users can choose smaller plans only.
    const final = !load.data.selfServicePlans;
    const text = `It takes effect with the next call or request. A smaller plan can deny keys, agents and spend beyond its limits.${final ? ' Only the operator can move it back.' : ''}`;
    if (!(await confirm({ title: `Change the plan to ${plainWord(name)}?`, text, action: 'Change plan', danger: final }))) return;
    load.set(await post('/account/plan', { plan: name }));
    say(`The plan is ${plainWord(name)} now.`);
  };
  return html`<div class="stack">
    <${PageHead} title="Plan and usage">What the account may use in a month, and how much of it is used. Test mode counts against no limit.<//>
    <${Loaded} load=${load} label="Loading the plan">${(data) => html`<div class="stack">
      <${Used} data=${data} />
      <${Plans} data=${data} wanted=${query.to} choose=${may('owner') ? choose : null} />
    </div>`}<//>
  </div>`;
}

function Used({ data }) {
  const { account, limits, usage } = data;
  return html`<div class="grid">
    <${Section} title="This month">
      <div class="stack">
        <${Meter} label="Tracked spend" used=${usage.trackedUsdThisMonth} limit=${limits.trackedUsdPerMonth} hint="All agents together. It starts anew on the 1st, UTC." />
        <${Meter} label="Agents that spent" used=${usage.capAgentsThisMonth} limit=${limits.capAgentsPerMonth} money=${false} />
        <${Meter} label="Active virtual keys" used=${usage.activeVirtualKeys} limit=${limits.activeVirtualKeys} money=${false} />
        <${Meter} label="Agents" used=${usage.customAgents} limit=${limits.customAgents} money=${false} />
      </div>
    <//>
    <${Section} title="Account">
      <${Facts} rows=${[
    ['Name', html`<bdi>${account.name}</bdi>`],
    ['Plan', plainWord(account.plan)],
    ['Account id', html`<${CopyableId} of=${account.id} what="the account’s id" />`],
    ['People', usage.users],
    ['API keys', usage.apiKeys],
    ['Webhooks in this mode', usage.webhooks],
  ]} />
    <//>
  </div>`;
}
