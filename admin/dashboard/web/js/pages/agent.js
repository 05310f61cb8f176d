/**
 * One agent: its caps and usage, calls, runs, keys and record; freezing and unfreezing it.
 */
import { html } from '../html.js';
import { get, post, seg } from '../api.js';
import { useLoad } from '../load.js';
import { href, useMode } from '../router.js';
import { may } from '../session.js';
import { ActionButton, LinkButton } from '../ui/button.js';
import { confirm } from '../ui/dialog.js';
import { CopyableId } from '../ui/hash.js';
import { say } from '../ui/live.js';
import { Badge, PageHead } from '../ui/show.js';
import { Failed, Skeleton, Stale } from '../ui/state.js';
import { Tabs } from '../ui/tabs.js';
import { Activity } from './agent/activity.js';
import { Caps } from './agent/caps.js';
import { Details } from './agent/details.js';
import { Keys } from './agent/keys.js';
import { Runs } from './agent/runs.js';

const back = () => ({ to: href('/agents'), label: 'Agents' });

export default function Agent({ params }) {
  const { id } = params;
  const mode = useMode();
  const load = useLoad((signal) => get(`/agents/${seg(id)}`, {}, { signal }), [id]);
  if (load.error && !load.data) return html`<div><${PageHead} title=${id} back=${back()} /><${Failed} error=${load.error} retry=${load.reload} /></div>`;
  if (!load.data) return html`<div><${PageHead} title=${id} back=${back()} /><${Skeleton} label="Loading the agent" /></div>`;
  const { agent } = load.data;
  return html`<div>
    <${PageHead} title=${agent.name ?? agent.id} back=${back()} badge=${html`<${Badge} of=${agent.status} />`}
      actions=${html`${mode === 'live' && html`<${LinkButton} to=${href('/connect', { agent: agent.id })}>Connect a program<//>`}
        ${may('manager') && html`<${Freeze} agent=${agent} onChange=${load.set} />`}`}>
      <${CopyableId} of=${agent.id} what="the agent’s id" />
    <//>
    <${Stale} load=${load} />
    ${agent.status === 'frozen' && html`<p class="alert alert-error agent-alert">This agent is frozen: its calls are denied and nothing leaves its wallet.</p>`}
    <${Tabs} label="About the agent" tabs=${[
    { id: 'caps', label: 'Caps and spend', show: () => html`<${Caps} agent=${agent} />` },
    { id: 'activity', label: 'Decisions', show: () => html`<${Activity} agent=${agent} />` },
    { id: 'runs', label: 'Runs', show: () => html`<${Runs} agent=${agent} />` },
    { id: 'keys', label: 'Keys', show: () => html`<${Keys} agent=${agent} mode=${mode} />` },
    { id: 'details', label: 'Details', show: () => html`<${Details} agent=${agent} onChange=${load.set} />` },
  ]} />
  </div>`;
}

function Freeze({ agent, onChange }) {
  const name = agent.name ?? agent.id;
  const frozen = agent.status === 'frozen';
  const run = async () => {
    const sure = await confirm(frozen
      ? { title: `Unfreeze ${name}?`, text: 'From its next call on, its caps decide again.', action: 'Unfreeze agent', danger: false }
      : { title: `Freeze ${name}?`, text: 'Its next call is denied with 403, and nothing leaves its wallet until it is unfrozen. Calls under way go on to their end.', action: 'Freeze agent' });
    if (!sure) return;
    onChange(await post(`/agents/${seg(agent.id)}/${frozen ? 'unfreeze' : 'freeze'}`));
    say(frozen ? `${name} is active again.` : `${name} is frozen.`);
  };
  return html`<${ActionButton} kind=${frozen ? 'primary' : 'danger'} run=${run}>${frozen ? 'Unfreeze' : 'Freeze'}<//>`;
}
