/**
 * The calls of agents with model, tokens, duration and cost. The list can be filtered, followed and exported.
 */
import { html, useState } from '../html.js';
import { download } from '../download.js';
import { href, setQuery, useMode } from '../router.js';
import { ActionButton, Button, LinkButton } from '../ui/button.js';
import { Follow, useFollow } from '../ui/follow.js';
import { say } from '../ui/live.js';
import { PageHead, Section } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { COLUMNS } from './calls/columns.js';
import { CallFilters, NONE, queryOf, refused } from './calls/filters.js';

export default function Calls({ query }) {
  const mode = useMode();
  const follow = useFollow();
  const [seen, setSeen] = useState([]);
  const [partial, setPartial] = useState(false);
  const filter = queryOf(query);
  const filtered = Object.keys(filter).length > 0;
  const wrong = refused(query);
  const onData = (answer) => {
    setPartial(answer.partial);
    // Filters keep offering the values seen so far when the list is narrowed.
    setSeen((old) => [...answer.calls, ...old.filter((call) => !answer.calls.some(({ id }) => id === call.id))].slice(0, SEEN_MAX));
  };
  const actions = html`<${Follow} of=${follow} what="the calls" />
    <${ActionButton} small run=${() => keep(filter)}>Download CSV<//>`;
  return html`<div class="stack">
    <${PageHead} title="Calls">Every call of an agent, approved or denied, newest first. A call appears when it has ended.<//>
    ${mode === 'test' && html`<p class="alert alert-info">Calls exist in live mode only.</p>`}
    <${Section} title="Calls" flush actions=${actions}>
      <div class="in-card call-filters"><${CallFilters} query=${query} seen=${seen} />
        ${wrong && html`<p class="alert alert-warn entry-alert">${wrong}</p>`}
        ${partial && filtered && html`<p class="hint entry-alert">2,000 calls are searched at a time, the newest first: “Next” searches those behind them.</p>`}
      </div>
      <div class="calls"><${ListTable} path="/calls" plural="calls" query=${filter} refresh=${follow.turn} quiet=${follow.on} caption="Calls" columns=${COLUMNS}
        keyOf=${(call) => call.id} onData=${onData} empty=${html`<${None} filter=${filtered ? filter : null} />`} /></div>
    <//>
  </div>`;
}

/** Number of seen calls whose keys, models and runs are offered as filters. */
const SEEN_MAX = 200;

function None({ filter }) {
  if (filter) {
    const intents = href('/intents', { agentId: filter.agentId, state: filter.outcome === 'denied' ? 'blocked' : null });
    return html`<${Empty} title="No call matches."><p>Spends are no calls: they are among the <a href=${intents}>intents</a>.</p>
      <${Button} onClick=${() => setQuery(NONE)}>Show all<//><//>`;
  }
  return html`<${Empty} title="No agent has called yet.">
    <p>As soon as a call has ended or was denied, it stands here with what it took and what it cost.</p>
    <p><${LinkButton} kind="primary" to=${href('/connect')}>Connect a program<//></p><//>`;
}

async function keep(filter) {
  await download('/calls/export', { query: filter, name: 'calls.csv' });
  say('Saved the calls as CSV.');
}
