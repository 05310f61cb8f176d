/**
 * The overview: spend by agent, denials by reason, and open tasks for the user.
 */
import { html } from '../html.js';
import { get } from '../api.js';
import { useLoad } from '../load.js';
import { nanos, sum } from '../money.js';
import { useNamesOf } from '../names.js';
import { CALL_REASONS } from '../reasons.js';
import { href, setQuery, useMode } from '../router.js';
import { Time } from '../time.js';
import { count, reasonWord } from '../words.js';
import { Button, LinkButton } from '../ui/button.js';
import { StackedDays } from '../ui/chart.js';
import { Amount, Meter, Money, Name, PageHead, Section } from '../ui/show.js';
import { Empty, Loaded } from '../ui/state.js';
import { CloseToCaps } from './overview/caps.js';
import { FirstSteps } from './overview/first-steps.js';

const SPANS = [['7', '7 days'], ['30', '30 days'], ['90', '90 days']];
const OTHERS = 'Other agents';

export default function Overview({ query }) {
  const span = SPANS.some(([days]) => days === query.days) ? query.days : '30';
  const load = useLoad((signal) => get('/overview', { days: span }, { signal }), [span]);
  return html`<div>
    <${PageHead} title="Overview" actions=${html`<${Span} span=${span} /><${Button} onClick=${load.reload}>Refresh<//>`} />
    <${Loaded} load=${load} label="Loading the overview">${(data) => (isNew(data) ? html`<${FirstSteps} />` : html`<${Body} data=${data} span=${span} />`)}<//>
  </div>`;
}

function isNew({ totals, days }) {
  return totals.agents === 0 && days.every((day) => day.calls === 0 && day.denied === 0);
}

function Span({ span }) {
  return html`<div class="segments" role="group" aria-label="Time span">
    ${SPANS.map(([days, label]) => html`<button key=${days} type="button" class="segment" aria-pressed=${days === span ? 'true' : 'false'}
      onClick=${() => setQuery({ days: days === '30' ? null : days })}>${label}</button>`)}
  </div>`;
}

function Body({ data, span }) {
  const mode = useMode();
  return html`<div class="stack">
    ${data.partial && html`<p class="alert alert-info">Not everything was looked at: the days below are still being added up, or there are more than 5,000 agents, and then today’s sum and what needs attention are those of the newest.</p>`}
    <${Tiles} data=${data} mode=${mode} />
    <${Attention} data=${data} />
    <${Section} title=${`Spend by day and agent, ${span} days`}><${Chart} data=${data} /><//>
    <div class="grid">
      <${CloseToCaps} asOf=${data.asOf} />
      <${Denials} denials=${data.denials} since=${data.days[0]?.day} span=${span} mode=${mode} />
    </div>
    <p class="hint">As of <${Time} at=${data.asOf} />. Days are UTC.</p>
  </div>`;
}

function Tiles({ data, mode }) {
  const { spend, totals } = data;
  const held = nanos(spend.heldUsd) ?? 0n;
  return html`<div class="tiles">
    <section class="tile" aria-label="Spend today"><h2>Spend today</h2>
      <p class="tile-value num"><${Amount} of=${spend.todayUsd} /></p>
      <p class="hint">${held > 0n ? html`of which <${Money} of=${held} /> in calls under way` : 'no call under way'}</p></section>
    <section class="tile" aria-label="Spend this month"><h2>Spend this month</h2>
      <p class="tile-value num"><${Amount} of=${spend.monthUsd} /></p>
      ${spend.trackedLimitUsd === null
    ? html`<p class="hint">${mode === 'test' ? 'test mode counts against no plan' : 'the plan sets no limit'}</p>`
    : html`<${Meter} label="Plan" used=${spend.monthUsd} limit=${spend.trackedLimitUsd} />`}</section>
    <section class="tile" aria-label="Agents"><h2>Agents</h2>
      <p class="tile-value num"><a href=${href('/agents')}>${totals.agents.toLocaleString('en-US')}</a></p>
      <p class="hint">${totals.frozenAgents > 0
    ? html`<a href=${href('/agents', { status: 'frozen' })}>${totals.frozenAgents.toLocaleString('en-US')} frozen</a>` : 'none frozen'}
        ${' · '}${count(totals.activeVirtualKeys, 'active key')}</p></section>
  </div>`;
}

/** Page for each kind of task. */
const PLACES = {
  frozen_agent: ({ agentId, id }) => ['Agent frozen', href('/agents', agentId ?? id)],
  approval_waiting: ({ id }) => ['Waits for approval', href('/intents', id)],
  low_balance: ({ agentId, id }) => ['Low balance', agentId ? href('/agents', agentId) : href('/wallets', id)],
  failing_webhook: ({ id }) => ['Webhook failing', href('/webhooks', id)],
  near_limit: ({ agentId }) => (agentId ? ['Close to a cap', href('/agents', agentId)] : ['Close to the plan', href('/plan')]),
  kept_hold: ({ id }) => ['Charge not settled', href('/decisions', id)],
};

function Attention({ data }) {
  const { attention, attentionTotal, topAgents } = data;
  const names = useNamesOf(attention.map(({ agentId }) => agentId).filter((id) => !topAgents.some(({ agentId, name }) => agentId === id && name)));
  if (attention.length === 0) return html`<p class="alert alert-ok">Nothing needs attention.</p>`;
  return html`<${Section} title="Needs attention" flush actions=${html`<span class="muted num">${attentionTotal.toLocaleString('en-US')}</span>`}>
    <ul class="rows">${attention.map((item) => {
    const agent = topAgents.find(({ agentId }) => agentId === item.agentId)?.name ?? names.of(item.agentId)?.name ?? item.agentId;
    const [kind, to] = PLACES[item.kind]?.(item) ?? [item.kind, href('/')];
    return html`<li key=${`${item.kind} ${item.id}`}><a class="row" href=${to}>
      <span class=${`badge badge-${item.kind === 'frozen_agent' || item.kind === 'failing_webhook' ? 'bad' : 'warn'}`}>${kind}</span>
      <span class="row-text">${agent && html`<strong title=${item.agentId}><bdi class="name">${agent}</bdi></strong> `}<span dir="auto">${item.text}</span></span>
      <span class="row-when muted">${item.since && html`<${Time} at=${item.since} />`}</span>
    </a></li>`;
  })}</ul>
    ${attentionTotal > attention.length && html`<p class="rows-more muted">and ${(attentionTotal - attention.length).toLocaleString('en-US')} more</p>`}
  <//>`;
}

function Chart({ data }) {
  const names = [...data.topAgents.map((agent) => agent.name ?? agent.agentId), OTHERS];
  const days = data.days.map((day) => ({
    day: day.day, calls: day.calls, denied: day.denied, total: nanos(day.totalUsd) ?? 0n, parts: parts(day, names.length),
  }));
  const total = days.reduce((all, day) => all + day.total, 0n);
  const others = data.days.map((day) => day.byAgent.at(-1));
  const about = `over ${count(days.length, 'day')}, in calls and spends`;
  return html`<div>
    <${StackedDays} days=${days} series=${names} total=${total} about=${about} />
    <ul class="legend">
      ${data.topAgents.map((agent, index) => html`<li key=${agent.agentId}><span class=${`swatch c${index + 1}`} aria-hidden="true"></span>
        <a href=${href('/agents', agent.agentId)}><${Name} of=${agent.name ?? agent.agentId} /></a><${Amount} of=${agent.usd} /></li>`)}
      ${sum(others) > 0n && html`<li><span class="swatch c8" aria-hidden="true"></span>${OTHERS}<${Amount} of=${sum(others)} /></li>`}
    </ul>
  </div>`;
}

/** Spend of each agent on a day. The last part is the sum of the others, which always has the eighth colour. */
function parts(day, many) {
  const amounts = day.byAgent.map((amount) => nanos(amount) ?? 0n);
  return [...amounts.slice(0, many - 1), amounts.at(-1) ?? 0n];
}

/** Sum of denied calls and denied spends since a day. Test mode has no calls. */
function Denials({ denials, since, span, mode }) {
  const live = mode === 'live';
  const denied = { outcome: 'denied', from: since && `${since}T00:00:00Z` };
  const most = Math.max(1, ...denials.map((denial) => denial.count));
  return html`<${Section} title="Denials by reason" lead=${`The last ${span} days`}>
    ${denials.length === 0
    ? html`<${Empty} title="Nothing was denied." />`
    : html`<ul class="bars">${denials.map(({ reason, count: many }) => html`<li key=${reason}>
        <span class="bars-text">${live && CALL_REASONS.includes(reason)
    ? html`<a href=${href('/calls', { ...denied, reason })} title=${reason}>${reasonWord(reason)}</a>`
    : html`<span title=${reason}>${reasonWord(reason)}</span>`}<span class="num">${many.toLocaleString('en-US')}</span></span>
        <span class="bars-track" aria-hidden="true"><span style=${{ width: `${(many / most) * 100}%` }}></span></span></li>`)}</ul>`}
    ${denials.length > 0 && html`<p class="card-foot">${live && html`<${LinkButton} small to=${href('/calls', denied)}>See the denied calls<//>`}
      <${LinkButton} small to=${href('/intents', { state: 'blocked' })}>See the blocked spends<//></p>`}
  <//>`;
}
