/**
 * The decision on one call: a sentence that explains it, every check, and the outcome.
 */
import { html } from '../html.js';
import { get, seg } from '../api.js';
import { useLoad } from '../load.js';
import { useNamesOf } from '../names.js';
import { cameFrom, href } from '../router.js';
import { Time, duration } from '../time.js';
import { checkWord, count, isNamedRun, outcomeWord, plainWord } from '../words.js';
import { CopyableId } from '../ui/hash.js';
import { Amount, Badge, Facts, Id, Money, Name, PageHead, Section } from '../ui/show.js';
import { Loaded } from '../ui/state.js';
import { Table } from '../ui/table.js';
import { AgentLink, By } from '../ui/who.js';

export default function Decision({ params }) {
  const load = useLoad((signal) => get(`/decisions/${seg(params.id)}`, {}, { signal }), [params.id]);
  const back = backOf(load.data?.decision.agentId);
  const title = load.data ? (load.data.decision.approved ? 'Approved call' : 'Denied call') : 'Decision';
  return html`<div>
    <${PageHead} title=${title} back=${back} badge=${load.data && html`<${Badge} of=${load.data.decision.outcome} />`}><${CopyableId} of=${params.id} what="the decision’s id" /><//>
    <${Loaded} load=${load} label="Loading the decision">${({ decision }) => html`<${Body} decision=${decision} />`}<//>
  </div>`;
}

/** Target of the back link: the page that led here, with its filters, otherwise the agent. */
function backOf(agent) {
  const from = cameFrom();
  const itself = from?.route.path === '/decisions/:id';
  if (from && !itself) return { to: from.to, label: from.route.path === '/agents/:id' ? 'Decisions of the agent' : from.route.title, isOrigin: true };
  return agent ? { to: href('/agents', agent, { tab: 'activity' }), label: 'Decisions of the agent' } : { to: href('/agents'), label: 'Agents' };
}

function Body({ decision }) {
  const names = useNamesOf([decision.agentId, decision.keyId]);
  return html`<div class="stack">
    <p class=${`alert lead-text ${decision.approved ? 'alert-ok' : 'alert-error'}`} dir="auto">${decision.message}</p>
    <${Section} title="Checks" flush lead="As they stood before this call’s own charge, in order of precedence. A denial has those up to the one that decided.">
      <${Table} caption="Checks" columns=${CHECKS} rows=${decision.checks} keyOf=${(check) => check.check} />
    <//>
    <div class="grid">
      <${Section} title="The call"><${Facts} rows=${[
    ['Agent', html`<${AgentLink} id=${decision.agentId} name=${names.of(decision.agentId)?.name} />`],
    ['Virtual key', html`<${By} id=${decision.keyId} names=${names} />`],
    ['Model', html`<${Name} of=${decision.model} />`],
    ['Run', html`<${Name} of=${isNamedRun(decision.runId) ? decision.runId : null} none="none named" />`],
    ['Decided', html`<${Time} at=${decision.at} full />`],
    decision.endedAt && ['Ended', html`<${Time} at=${decision.endedAt} full />`],
    ...measured(decision.call),
    decision.resetsAt && ['Counts anew', html`<${Time} at=${decision.resetsAt} full />`],
  ]} /><//>
      <${Section} title="The money"><${Facts} rows=${[
    ['Outcome', outcomeWord(decision.outcome)],
    ['Estimate', html`<${Money} of=${decision.estimateUsd} none="none made" />`],
    ['Charged', html`<${Money} of=${decision.chargedUsd} />`],
    ['Real cost', html`<${Money} of=${decision.actualUsd} none="not known" />`],
    ...charged(decision.call?.billing),
    ['Price table', html`<${Id} of=${decision.priceVersion} />`],
  ]} /><//>
    </div>
    ${decision.history.length > 0 && html`<${Section} title="In the audit trail" flush>
      <${Table} caption="Entries in the audit trail" columns=${HISTORY} rows=${decision.history} keyOf=${(step) => step.auditSeq} />
    <//>`}
  </div>`;
}

/** The call's measurements by the edge, as far as they are known. */
function measured(call) {
  if (!call) return [];
  const tokens = (number) => (number === null ? 'not known' : number.toLocaleString('en-US'));
  const billing = call.billing ?? {};
  const parts = (...list) => {
    const words = list.filter(([number]) => number > 0).map(([number, word]) => `${tokens(number)} ${word}`);
    return words.length > 0 && `, of which ${words.join(', ')}`;
  };
  const lifetimes = [[billing.cacheWrite12hTokens, '12 hours'], [billing.cacheWrite30mTokens, '30 minutes']]
    .filter(([number]) => number > 0).map(([number, time]) => `${tokens(number)} for ${time}`);
  const written = lifetimes.length > 0 ? `written to the cache (${lifetimes.join(', ')})` : 'written to the cache';
  return [
    call.endpoint && ['Endpoint', html`${plainWord(call.endpoint)}${call.stream && ', streamed'}`],
    call.upstream && ['Upstream', html`<${Name} of=${call.upstream} />`],
    ['Tokens in', html`${tokens(call.inputTokens)}${parts([call.cachedTokens, 'cached'], [billing.cacheWriteTokens, written], [billing.audioInputTokens, 'sound'])}`],
    ['Tokens out', html`${tokens(call.outputTokens)}${parts([billing.reasoningTokens, 'reasoning'], [billing.audioOutputTokens, 'sound'])}`],
    call.latencyMs !== null && ['Took', html`${duration(call.latencyMs)}${call.firstByteMs !== null && `, first byte after ${duration(call.firstByteMs)}`}`],
    call.end && ['Exchange with the provider', html`${plainWord(call.end)}${billing.providerStatus && `, status ${billing.providerStatus}`}`],
    call.extensions > 0 && ['Hold raised', count(call.extensions, 'time')],
  ];
}

/** Factors of the charge other than model and tokens, if the call has any. */
function charged(billing) {
  if (!billing) return [];
  return [
    (billing.tierAsked || billing.tierReported) && ['Service tier', html`<bdi>${tier(billing)}</bdi>`],
    billing.webSearch && ['Web search', 'charged'],
    billing.longCache && ['Cache lifetime', 'requested longer than the default'],
    billing.reportedCostUsd !== undefined && ['Reported by the provider', html`<${Money} of=${billing.reportedCostUsd} />, more than computed`],
    billing.pricePrefix !== undefined && ['Priced as', billing.pricePrefix ? html`<${Name} of=${`${billing.pricePrefix}…`} />` : 'a model of the default upstream'],
  ];
}

/** The billed tier, and the requested one if it differs. */
function tier({ tierAsked, tierReported }) {
  if (!tierReported) return `${tierAsked} requested, none reported`;
  if (!tierAsked) return `${tierReported}, none requested`;
  return tierAsked === tierReported ? tierReported : `${tierReported}, ${tierAsked} requested`;
}

/** Amounts are followed by their exact nanos, counts are not. */
function value(check, name) {
  if (check[name] === null || check[name] === undefined) return '–';
  if (check[`${name}Nanos`] === null || check[`${name}Nanos`] === undefined) return Number(check[name]).toLocaleString('en-US');
  return html`<${Amount} of=${check[name]} />`;
}

const CHECKS = [
  { label: 'Check', head: true, cell: (check) => html`<span title=${check.check}>${checkWord(check.check)}</span>` },
  { label: 'Result', cell: (check) => (check.passes ? html`<span class="check-ok">✓ passes</span>` : html`<span class="check-bad">✕ denies</span>`) },
  { label: 'Spent', num: true, cell: (check) => value(check, 'spent') },
  { label: 'of which under way', wide: true, num: true, cell: (check) => value(check, 'held') },
  { label: 'Limit', num: true, cell: (check) => (check.limit === null ? 'no limit' : value(check, 'limit')) },
  { label: 'Counts anew', wide: true, cell: (check) => html`<${Time} at=${check.resetsAt} none="" />` },
];

const HISTORY = [
  { label: 'Entry', head: true, cell: (step) => step.auditSeq },
  { label: 'Outcome', cell: (step) => html`<${Badge} of=${step.outcome} />` },
  { label: 'Charged', num: true, cell: (step) => html`<${Amount} of=${step.chargedUsd} />` },
  { label: 'When', wide: true, cell: (step) => html`<${Time} at=${step.at} />` },
  { label: 'Hash', wide: true, cell: (step) => html`<${Id} of=${step.hash} />` },
];
