/**
 * All policies. The account-wide ones apply to every agent without a policy of its own; they can be added and deleted.
 */
import { html, useState } from '../../html.js';
import { del, seg } from '../../api.js';
import { useNames } from '../../names.js';
import { may } from '../../session.js';
import { ActionButton, Button } from '../../ui/button.js';
import { confirm } from '../../ui/dialog.js';
import { say } from '../../ui/live.js';
import { Amount, Badge, Name, Section } from '../../ui/show.js';
import { ListTable } from '../../ui/table.js';
import { AgentLink } from '../../ui/who.js';
import { EditPolicy } from './policy.js';

export function AccountPolicies() {
  const [edited, setEdited] = useState(null);
  const [turn, setTurn] = useState(0);
  const names = useNames();
  const again = () => setTurn((count) => count + 1);
  const agentOf = ({ agentId }) => names.of(agentId)?.name ?? agentId;
  /** Policies can have equal names, so the confirmation names the agent too. */
  const called = (policy) => (policy.agentId ? `the policy ${policy.name} of ${agentOf(policy)}` : `the account-wide policy ${policy.name}`);
  const remove = async (policy) => {
    const sure = await confirm({
      title: `Delete ${called(policy)}?`, action: 'Delete policy',
      text: policy.agentId ? 'The account-wide policies will apply to its agent; if there is none, its calls are denied.'
        : 'The remaining policies will apply to agents without one of their own; if there is none, their calls are denied.',
    });
    if (!sure) return;
    await del(`/policies/${seg(policy.id)}`);
    say(`Deleted ${called(policy)}.`);
    again();
  };
  const columns = [
    { label: 'Policy', head: true, cell: (policy) => html`<${Name} of=${policy.name} />
      <span class="phone-only cell-sub">${policy.maxSpendPerDay === null ? 'no daily cap' : html`<${Amount} of=${policy.maxSpendPerDay} /> a day`}</span>` },
    { label: 'For', cell: (policy) => (policy.agentId ? html`<${AgentLink} id=${policy.agentId} name=${agentOf(policy)} />` : 'all without one of their own') },
    { label: 'Cap', wide: true, cell: (policy) => html`<${Badge} of=${policy.capEnabled ? 'on' : 'off'} tone=${policy.capEnabled ? 'ok' : 'bad'} />` },
    { label: 'Per day', wide: true, num: true, cell: (policy) => html`<${Amount} of=${policy.maxSpendPerDay} none="not set" />` },
    { label: 'Per month', wide: true, num: true, cell: (policy) => html`<${Amount} of=${policy.maxSpendPerMonth} none="not set" />` },
    may('admin') && { label: 'Actions', hidden: true, cell: (policy) => html`<span class="cell-actions">
      ${policy.agentId && html`<${Button} small onClick=${() => setEdited({ policy })} aria-label=${`Edit ${called(policy)}`}>Edit<//>`}
      <${ActionButton} small kind="danger" run=${() => remove(policy)} aria-label=${`Delete ${called(policy)}`}>Delete<//></span>` },
  ].filter(Boolean);
  const actions = may('admin') && html`<${Button} small onClick=${() => setEdited({ policy: null })}>Add account-wide policy<//>`;
  return html`<${Section} title="Policies" flush actions=${actions} lead="An agent’s own policy stands alone. Account-wide ones hold for agents without one, the strictest of each limit.">
    <${ListTable} path="/policies" plural="policies" refresh=${turn} caption="Policies" columns=${columns} keyOf=${(policy) => policy.id}
      onData=${({ policies }) => names.load(policies.map(({ agentId }) => agentId))} empty="There is no policy yet. Without one, calls are denied." />
    ${edited && html`<${EditPolicy} agent=${edited.policy?.agentId ? { id: edited.policy.agentId, name: agentOf(edited.policy) } : null} policy=${edited.policy}
      onClose=${() => setEdited(null)} onSaved=${() => { setEdited(null); again(); }} />`}
  <//>`;
}
