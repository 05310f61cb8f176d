/**
 * Forecast of a call's decision, and the first call as it arrives. The page waits until the agent's newest call differs
 * from the one at the start, so it does not depend on the browser's clock.
 */
import { html, useEffect, useRef, useState } from '../../html.js';
import { get, post, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { href } from '../../router.js';
import { may } from '../../session.js';
import { Time, duration } from '../../time.js';
import { outcomeWord, reasonWord } from '../../words.js';
import { Button, LinkButton } from '../../ui/button.js';
import { Badge, Facts, Money, Name, Section } from '../../ui/show.js';
import { Loaded } from '../../ui/state.js';
import { KEY_PLACE } from './key.js';

const EVERY_MS = 2000;
/** Polls before the page asks the user whether to go on: ten minutes. */
const POLLS_MAX = 300;

/**
 * @param {{agent: object, model: string, keys: ReturnType<useLoad>}} props `keys` loads whether the agent has a virtual
 *   key
 */
export function FirstCall({ agent, model, keys }) {
  return html`<${Section} title="3. First call">
    <div class="stack"><${Forecast} key=${model} agent=${agent} model=${model} keys=${keys} /><${Waiting} key=${agent.id} agent=${agent} /></div>
  <//>`;
}

/** Predicts whether a call would be approved, and shows what prevents it. */
function Forecast({ agent, model, keys }) {
  const load = useLoad(() => post('/decisions/dry-run', { agent: agent.id, model }), [agent.id, model]);
  const again = () => {
    load.reload();
    keys.reload();
  };
  const ask = html`<${Button} small onClick=${again}>Ask again<//>`;
  return html`<${Loaded} load=${load} rows=${1} label="Asking whether a call would pass">${(data) => html`<div class="stack">
    ${!data.wouldApprove && html`<div class="alert alert-error next-step"><p dir="auto"><strong>${reasonWord(data.reason)}.</strong> ${data.message}</p>
      <span class="cell-actions">${cure(data.reason, agent)}${ask}</span></div>`}
    <${Loaded} load=${keys} rows=${1} label="Looking for a virtual key">${({ any }) => {
    if (!any) return html`<${NoKey} agent=${agent} ask=${data.wouldApprove && ask} />`;
    return data.wouldApprove && html`<div class="alert alert-ok next-step"><p dir="auto">A call would be approved now. Nothing was charged for asking.</p></div>`;
  }}<//></div>`}<//>`;
}

/** Leads users who may create keys to the first step, which shows the secret. */
function NoKey({ agent, ask }) {
  const make = () => {
    const button = document.querySelector(`#${KEY_PLACE} button`);
    button.scrollIntoView({ block: 'center' });
    button.focus();
  };
  return html`<div class="alert alert-error next-step"><p><strong>No active virtual key.</strong> Without one nothing can call as this agent.</p>
    <span class="cell-actions">${may('admin') ? html`<${Button} small onClick=${make}>Make one in step 1<//>`
    : html`<${LinkButton} small to=${href('/agents', agent.id, { tab: 'keys' })}>See the keys<//>`}${ask}</span></div>`;
}

/** Link to the page where the user can remove the reason for a denial. */
function cure(reason, agent) {
  const tabs = { no_provider_key: ['keys', 'Store the provider’s key'], plan_key_limit: ['keys', 'See the keys'] };
  const [tab, label] = tabs[reason] ?? ['caps', 'See caps and policy'];
  return html`<${LinkButton} small to=${href('/agents', agent.id, tab === 'caps' ? {} : { tab })}>${label}<//>`;
}

/**
 * Polls for a new call. `newest` is `undefined` before the first poll, then the id of the newest call that was shown or
 * was there before, or null. A call that is made before the first poll's end is not seen as new: only after it the page
 * asks for one.
 */
function Waiting({ agent }) {
  const [state, setState] = useState({ phase: 'waiting', isReady: false, call: null, message: null });
  const newest = useRef(undefined);
  const polls = useRef(0);
  useEffect(() => {
    if (state.phase !== 'waiting') return undefined;
    const abort = new AbortController();
    let timer = 0;
    const poll = async () => {
      if (document.visibilityState === 'visible') await once(agent, newest, abort.signal, setState);
      polls.current += 1;
      if (abort.signal.aborted) return;
      if (polls.current >= POLLS_MAX) setState((old) => ({ ...old, phase: 'stopped' }));
      else timer = setTimeout(poll, EVERY_MS);
    };
    poll();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [agent.id, state.phase]);
  const goOn = () => {
    polls.current = 0;
    setState((old) => ({ ...old, phase: 'waiting' }));
  };
  return html`<div class="stack">
    <p class="waiting" role="status">${statusText(state, agent)}</p>
    ${state.trouble && html`<p class="alert alert-warn" role="alert" dir="auto">${state.trouble}</p>`}
    ${state.phase === 'stopped' && html`<div class="actions actions-start"><${Button} onClick=${goOn}>Wait again<//></div>`}
    ${state.call && html`<${Arrived} call=${state.call} message=${state.message} />`}
  </div>`;
}

function statusText({ phase, isReady, call }, agent) {
  if (phase === 'stopped') return 'Stopped waiting after ten minutes.';
  const spinner = html`<span class="spinner" aria-hidden="true"></span>`;
  const name = agent.name ?? agent.id;
  if (!isReady) return html`${spinner}<span>Looking for earlier calls of <bdi>${name}</bdi>.</span>`;
  return call
    ? html`${spinner}<span>A call of <bdi>${name}</bdi> arrived. The next one replaces it here.</span>`
    : html`${spinner}<span>Waiting for a call of <bdi>${name}</bdi>. Run the snippet: the call appears here within seconds of its end.</span>`;
}

/** Polls once. A new call is shown with the explanation of its decision. */
async function once(agent, newest, signal, setState) {
  try {
    const { calls } = await get('/calls', { agentId: agent.id, limit: 1 }, { signal });
    const call = calls[0] ?? null;
    const isNew = newest.current !== undefined && call !== null && call.id !== newest.current;
    if (!isNew) {
      newest.current = call?.id ?? null;
      return setState((old) => (old.trouble || !old.isReady ? { ...old, isReady: true, trouble: null } : old));
    }
    const { decision } = await get(`/decisions/${seg(call.id)}`, {}, { signal });
    // Not before: a failure must not lose the call.
    newest.current = call.id;
    return setState({ phase: 'waiting', isReady: true, call, message: decision.message, trouble: null });
  } catch (error) {
    return signal.aborted ? null : setState((old) => ({ ...old, trouble: error.message }));
  }
}

function Arrived({ call, message }) {
  const denied = call.outcome === 'denied';
  return html`<section class="arrived" aria-label="The call that arrived">
    <p class=${denied ? 'alert alert-error' : 'alert alert-ok'} dir="auto">${message}</p>
    <${Facts} rows=${[
    ['Outcome', html`<${Badge} of=${call.outcome} /> ${denied ? reasonWord(call.reason) : outcomeWord(call.outcome)}`],
    ['Model', html`<${Name} of=${call.model} />`],
    ['When', html`<${Time} at=${call.at} full />`],
    call.inputTokens !== null && ['Tokens', `${call.inputTokens.toLocaleString('en-US')} in, ${(call.outputTokens ?? 0).toLocaleString('en-US')} out`],
    ['Cost', html`<${Money} of=${call.costUsd} />`],
    call.latencyMs !== null && ['Took', duration(call.latencyMs)],
  ]} />
    <div class="actions actions-start"><${LinkButton} small to=${href('/decisions', call.id)}>Open the decision<//>
      <${LinkButton} small to=${href('/calls', { agentId: call.agentId })}>All calls of the agent<//></div>
  </section>`;
}
