/**
 * An agent's caps and how much of each is used, its wallet, and its policy.
 */
import { html, useState } from '../../html.js';
import { get, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { nanos } from '../../money.js';
import { href } from '../../router.js';
import { may } from '../../session.js';
import { Time } from '../../time.js';
import { checkWord } from '../../words.js';
import { Button, LinkButton } from '../../ui/button.js';
import { CopyableId } from '../../ui/hash.js';
import { Facts, Meter, Money, Section } from '../../ui/show.js';
import { Empty, Loaded } from '../../ui/state.js';
import { EditPolicy } from './policy.js';
import { PolicyFacts } from './policy-facts.js';

/** Checks with a usage that grows over time; the others limit a single run or spend. */
const FILLING = ['daily_limit', 'monthly_limit', 'spend_limit'];

export function Caps({ agent }) {
  const [editing, setEditing] = useState(false);
  const usage = useLoad((signal) => get(`/agents/${seg(agent.id)}/usage`, {}, { signal }), [agent.id, agent.status]);
  const policy = useLoad((signal) => get('/policies', { agentId: agent.id }, { signal }), [agent.id]);
  const own = policy.data?.policies[0] ?? null;
  const saved = () => {
    setEditing(false);
    usage.reload();
    policy.reload();
  };
  const edit = may('admin') && policy.data && html`<${Button} small onClick=${() => setEditing(true)}>${own ? 'Edit policy' : 'Set a policy'}<//>`;
  return html`<div class="grid">
    <${Section} title="Spend against caps" actions=${html`<${Button} small kind="quiet" onClick=${usage.reload}>Refresh<//>`}>
      <${Loaded} load=${usage} label="Loading the spend">${(data) => html`<${Standing} data=${data} />`}<//>
    <//>
    <div class="stack">
      <${Section} title="Policy" actions=${edit}>
        <${Loaded} load=${policy} label="Loading the policy">${() => (own
    ? html`<${PolicyFacts} policy=${own} />`
    : html`<${NoPolicy} usage=${usage.data} />`)}<//>
      <//>
      <${Wallet} agent=${agent} usage=${usage.data} />
    </div>
    ${editing && html`<${EditPolicy} agent=${agent} policy=${own} onClose=${() => setEditing(false)} onSaved=${saved} />`}
  </div>`;
}

function Standing({ data }) {
  const filling = data.checks.filter((check) => FILLING.includes(check.check) && check.limitUsd !== null);
  const single = data.checks.filter((check) => !FILLING.includes(check.check) && check.limitUsd !== null);
  return html`<div class="caps-list">
    <${Facts} rows=${[
    ['Spent today', html`<${Money} of=${data.spentTodayUsd} />`],
    ['Spent this month', html`<${Money} of=${data.spentMonthUsd} />`],
    ['In calls under way', html`<${Money} of=${data.heldUsd} />`],
  ]} />
    ${filling.length > 0 && html`<div class="caps-meters">${filling.map((check) => html`<${Meter} key=${check.check} label=${checkWord(check.check)} used=${check.spentUsd}
      limit=${check.limitUsd} hint=${check.remainingUsd !== null && html`<${Money} of=${check.remainingUsd} /> left`} />`)}</div>`}
    ${single.length > 0 && html`<${Facts} rows=${single.map((check) => [checkWord(check.check), html`at most <${Money} of=${check.limitUsd} />`])} />`}
    ${filling.length + single.length === 0 && html`<p class="hint">No limit is set.</p>`}
    <p class="hint">As of <${Time} at=${data.asOf} />. The day and the month are UTC; calls under way count with their estimate.</p>
  </div>`;
}

function NoPolicy({ usage }) {
  if (usage?.policy && !usage.policy.agentOwn) {
    return html`<p>The agent has no policy of its own. The account’s policies hold for it; they stand on the page <a href=${href('/agents')}>Agents</a>.</p>`;
  }
  return html`<${Empty} title="No policy holds for this agent."><p>Without one its calls are denied with <code>cap_disabled</code>.</p><//>`;
}

function Wallet({ agent, usage }) {
  if (!agent.wallet) return html`<${Section} title="Wallet"><p class="muted">This agent has no wallet.</p><//>`;
  const balance = nanos(usage?.walletUsd);
  return html`<${Section} title="Wallet" actions=${html`<${LinkButton} small to=${href('/wallets', agent.wallet)}>Open wallet<//>`}>
    <${Facts} rows=${[
    ['Balance', html`<${Money} of=${balance} />`],
    ['Daily limit', html`<${Money} of=${agent.spendLimit} none="no limit" />`],
    ['Wallet', html`<${CopyableId} of=${agent.wallet} what="the wallet’s id" />`],
  ]} />
  <//>`;
}
