/**
 * The filters of the list of calls. The address holds their values. The keys, models and runs offered are those of the
 * calls seen in the list.
 */
import { html } from '../../html.js';
import { typedAmount } from '../../money.js';
import { setQuery } from '../../router.js';
import { plainWord } from '../../words.js';
import { CALL_REASONS, REASONS } from '../../reasons.js';
import { AgentChoice } from '../../ui/agent-choice.js';
import { Button } from '../../ui/button.js';
import { DayFilter, Filters, SearchFilter, SelectFilter, TimeFilter } from '../../ui/filters.js';

/** The API's outcomes of a call. */
const OUTCOMES = ['settled', 'denied', 'estimated', 'kept', 'corrected', 'released', 'voided', 'unsent'];
const ENDPOINTS = [['', 'Any'], ['chat.completions', 'Chat completions'], ['responses', 'Responses'], ['embeddings', 'Embeddings']];
const AMOUNTS = [['minCostUsd', 'Cost'], ['minEstimatedUsd', 'Estimate']];
const NUMBERS = [['minInputTokens', 'Prompt tokens', '1000'], ['minCachedTokens', 'Cached tokens', '1000'], ['minOutputTokens', 'Answer tokens', '1000'],
  ['minLatencyMs', 'Latency', '5000'], ['minFirstByteMs', 'First byte', '1000']];
const NAMES = ['agentId', 'model', 'outcome', 'from', 'to', 'chargedFrom', 'chargedTo', 'runId', 'keyId', 'reason', 'endpoint', 'upstream',
  ...[...AMOUNTS, ...NUMBERS].map(([name]) => name)];
/** Filters under "More filters". */
const MORE = NAMES.slice(5);

/** A query that clears all filters. */
export const NONE = Object.fromEntries(NAMES.map((name) => [name, null]));

/** Converts a typed quantity to the API's form. Returns null if it is none. */
const quantity = (name, typed) => (AMOUNTS.some(([one]) => one === name) ? typedAmount(typed) : /^0*[1-9][0-9]{0,14}$/.test(typed) ? typed : null);
const isQuantity = (name) => [...AMOUNTS, ...NUMBERS].some(([one]) => one === name);

/** The query of the API. */
export function queryOf(query) {
  const given = NAMES.filter((name) => query[name]).map((name) => [name, isQuantity(name) ? quantity(name, query[name]) : query[name]]);
  return Object.fromEntries(given.filter(([, value]) => value && !/^[0.]+$/.test(value)));
}

/** Message about an invalid filter. */
export function refused(query) {
  const wrong = ([name]) => query[name] && quantity(name, query[name]) === null;
  const [amount, number] = [AMOUNTS.find(wrong), NUMBERS.find(wrong)];
  if (amount) return `Not filtered by ${amount[1].toLowerCase()}: give an amount in USD like 0.01.`;
  return number ? `Not filtered by ${number[1].toLowerCase()}: give a whole number like ${number[2]}.` : null;
}

/** @param {{query: object, seen: object[]}} props `seen` are calls */
export function CallFilters({ query, seen }) {
  const of = (field, label = field) => [...new Map(seen.filter((call) => call[field]).map((call) => [call[field], call[label] ?? call[field]]))];
  const choices = (all, pairs, value) => [['', all], ...(value && !pairs.some(([one]) => one === value) ? [[value, value]] : []), ...pairs];
  const more = MORE.some((name) => query[name]);
  return html`<${Filters} label="Calls">
    <${AgentChoice} label="Agent" first=${[['', 'All']]} value=${query.agentId ?? ''} choose=${(id) => setQuery({ agentId: id || null })} />
    <${SearchFilter} name="model" label="Model" placeholder="Exact name" offers=${of('model').map(([one]) => one)} />
    <${SelectFilter} name="outcome" label="Outcome" options=${choices('Any', OUTCOMES.map((word) => [word, plainWord(word)]), query.outcome)} />
    <${TimeFilter} name="from" label="From" /><${TimeFilter} name="to" label="Before" />
    <details class="more-filters" open=${more}>
      <summary>More filters</summary>
      <div class="filters">
        <${DayFilter} name="chargedFrom" label="Charged from" /><${DayFilter} name="chargedTo" label="Charged before" />
        <${SearchFilter} name="runId" label="Run" placeholder="Exact id" offers=${of('runId').map(([one]) => one)} />
        <${SelectFilter} name="keyId" label="Virtual key" options=${choices('Any', of('keyId', 'keyName'), query.keyId)} />
        <${SelectFilter} name="reason" label="Reason of the denial" options=${choices('Any', CALL_REASONS.map((word) => [word, REASONS[word]]), query.reason)} />
        <${SelectFilter} name="endpoint" label="Endpoint" options=${choices('Any', ENDPOINTS.slice(1), query.endpoint)} />
        <${SearchFilter} name="upstream" label="Upstream" placeholder="Its name" offers=${of('upstream').map(([one]) => one)} />
        ${AMOUNTS.map(([name, label]) => html`<${SearchFilter} key=${name} name=${name} label=${`${label} from, in USD`} placeholder="0.01" />`)}
        ${NUMBERS.map(([name, label, example]) => html`<${SearchFilter} key=${name} name=${name} label=${`${label} from${name.endsWith('Ms') ? ', in ms' : ''}`} placeholder=${example} />`)}
      </div>
    </details>
    ${NAMES.some((name) => query[name]) && html`<${Button} small kind="quiet" onClick=${() => setQuery(NONE)}>Clear filters<//>`}
  <//>`;
}
