/**
 * The columns of the list of calls. Small print below a value gives its details.
 */
import { html } from '../../html.js';
import { href } from '../../router.js';
import { Time, duration } from '../../time.js';
import { count, isNamedRun, outcomeWord, plainWord, reasonWord } from '../../words.js';
import { Amount, Badge, Name } from '../../ui/show.js';
import { AgentLink } from '../../ui/who.js';

const none = html`<span class="muted">–</span>`;
const tokens = ({ inputTokens, outputTokens }) => (inputTokens === null ? none : `${inputTokens.toLocaleString('en-US')} / ${(outputTokens ?? 0).toLocaleString('en-US')}`);
const sub = (content) => html`<span class="cell-sub">${content}</span>`;

const run = ({ runId }) => (isNamedRun(runId) ? html`<a href=${href('/calls', { runId })}><${Name} of=${runId} /></a>` : null);

/** Colours of outcomes. A call charged with its estimate stands out. */
const TONES = { settled: 'ok', corrected: 'ok', released: 'plain', voided: 'plain', denied: 'bad', unsent: 'bad', estimated: 'warn', kept: 'warn' };

export const COLUMNS = [
  { label: 'When, UTC', head: true, cell: (call) => html`<a href=${href('/decisions', call.id)}><${Time} at=${call.at} short /><span class="sr-only">, a call of ${call.agentName ?? call.agentId}</span></a>
    <span class="narrow-only"><${Outcome} call=${call} /></span>` },
  { label: 'Outcome', roomy: true, cell: (call) => html`<${Outcome} call=${call} />` },
  { label: 'Agent', cell: (call) => html`<${AgentLink} id=${call.agentId} name=${call.agentName} />
    ${call.keyId && sub(html`<bdi class="name" title=${call.keyId}>${call.keyName ?? call.keyId}</bdi>`)}
    ${run(call) && html`<span class="cell-sub narrow-only">${run(call)}</span>`}
    <span class="phone-only">${call.model && html`<${Name} of=${call.model} />`}${way(call) && sub(way(call))}</span>` },
  { label: 'Run', roomy: true, cell: (call) => run(call) ?? none },
  { label: 'Model', wide: true, cell: (call) => html`<${Name} of=${call.model} />${way(call) && sub(way(call))}` },
  { label: 'Tokens in / out', wide: true, num: true, cell: (call) => html`${tokens(call)}${call.cachedTokens > 0 && sub(`${call.cachedTokens.toLocaleString('en-US')} cached`)}` },
  { label: 'Cost', num: true, cell: (call) => html`<${Amount} of=${call.costUsd} />${call.estimatedUsd !== null && html`<span class="cell-sub wide-only">est. <${Amount} of=${call.estimatedUsd} /></span>`}` },
  { label: 'Took', wide: true, num: true, cell: (call) => html`${duration(call.latencyMs) ?? none}${call.firstByteMs !== null && sub(html`<span title="Time to the first byte">first ${duration(call.firstByteMs)}</span>`)}` },
];

function Outcome({ call }) {
  return html`<span title=${outcomeWord(call.outcome)}><${Badge} of=${call.outcome} tone=${TONES[call.outcome]} /></span>
    ${call.reason && sub(reasonWord(call.reason))}${call.count > 1 && sub(count(call.count, 'call'))}
    ${call.end && call.end !== 'completed' && sub(plainWord(call.end))}`;
}

/** Details of the request to the provider that differ from the default. */
function way({ endpoint, stream, upstream, billing }) {
  const tier = billing?.tierReported ?? billing?.tierAsked;
  const words = [endpoint && endpoint !== 'chat.completions' && plainWord(endpoint), stream && 'streamed', upstream && `by ${upstream}`, tier && `tier ${tier}`].filter(Boolean);
  return words.length > 0 ? words.join(', ') : null;
}
