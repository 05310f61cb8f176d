/**
 * The agents that spend most, by how close they are to the cap that would stop them first.
 */
import { html } from '../../html.js';
import { get, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { nanos, share } from '../../money.js';
import { href } from '../../router.js';
import { checkWord } from '../../words.js';
import { Meter, Name, Section } from '../../ui/show.js';
import { Empty, Loaded } from '../../ui/state.js';

/** Caps that fill up. */
const FILLING = ['daily_limit', 'monthly_limit', 'spend_limit'];

/** @param {{agents: Array<{agentId: string, name: string|null}>, asOf: string}} props another `asOf` asks again */
export function CloseToCaps({ agents, asOf }) {
  const ids = agents.map((agent) => agent.agentId);
  const load = useLoad(async (signal) => {
    const asked = await Promise.allSettled(ids.map((id) => get(`/agents/${seg(id)}/usage`, {}, { signal })));
    // An agent that was deleted meanwhile has no usage any more.
    return asked.map(({ value }, index) => value && { ...agents[index], tightest: tightest(value.checks) })
      .filter((agent) => agent?.tightest).sort((one, other) => full(other.tightest) - full(one.tightest));
  }, [ids.join(' '), asOf]);
  return html`<${Section} title="Closest to a cap" lead="Of the agents that spend most, the cap that would stop each first">
    <${Loaded} load=${load} label="Loading the caps">${(closest) => (closest.length === 0
    ? html`<${Empty} title="None of these agents has a cap that fills up." />`
    : html`<ul class="caps">${closest.map(({ agentId, name, tightest: check }) => html`<li key=${agentId}>
        <a href=${href('/agents', agentId)}><${Name} of=${name ?? agentId} /></a>
        <${Meter} label=${checkWord(check.check)} used=${check.spentUsd} limit=${check.limitUsd} /></li>`)}</ul>`)}<//>
  <//>`;
}

function full(check) {
  return share(nanos(check.spentUsd), nanos(check.limitUsd));
}

function tightest(checks) {
  return checks.filter((check) => FILLING.includes(check.check) && check.limitUsd !== null)
    .sort((one, other) => full(other) - full(one))[0];
}
