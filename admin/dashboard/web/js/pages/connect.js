/**
 * From nothing to the first call: the address of the edge, a key, a snippet for the client that is used, and the first call
 * as it arrives. The call is made by the program itself: no key of a provider and no pasted secret passes this page.
 */
import { html, useState } from '../html.js';
import { setQuery } from '../router.js';
import { useSession } from '../session.js';
import { LinkButton } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { PageHead, Section } from '../ui/show.js';
import { Empty, Loaded } from '../ui/state.js';
import { Tabs } from '../ui/tabs.js';
import { useLoad } from '../load.js';
import { get } from '../api.js';
import { Code } from './connect/code.js';
import { FirstCall } from './connect/first-call.js';
import { Key } from './connect/key.js';
import { CLIENTS, KEY_NAME } from './connect/snippets.js';

/** Agents that are offered. */
const MOST = 200;
const MODEL = 'gpt-4o-mini';
/** A model's name as it can stand in every snippet. */
const PLAIN_MODEL = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/;

/** The page. */
export default function Connect({ query }) {
  const { mode } = useSession();
  const load = useLoad((signal) => get('/agents', { limit: MOST }, { signal }), [mode]);
  return html`<div class="stack">
    <${PageHead} title="Connect">Point a program at the edge: an address and a key, no other change of its code.<//>
    ${mode === 'test'
    ? html`<div class="card"><div class="card-body"><${Empty} title="Calls and their keys exist in live mode only."><p>Switch to live mode to connect a program.</p><//></div></div>`
    : html`<${Loaded} load=${load} label="Loading the agents">${({ agents }) => (agents.length === 0
      ? html`<div class="card"><div class="card-body"><${Empty} title="There is no agent yet."><p>A program calls as an agent, which has caps and keys.</p>
          <p><${LinkButton} kind="primary" to="#/agents?new=1">Create an agent<//></p><//></div></div>`
      : html`<${Steps} agents=${agents} query=${query} />`)}<//>`}
  </div>`;
}

function Steps({ agents, query }) {
  const { place } = useSession();
  const [secret, setSecret] = useState(null);
  const agent = agents.find(({ id }) => id === query.agent) ?? agents[0];
  const model = (query.model ?? MODEL).trim();
  const good = PLAIN_MODEL.test(model);
  const base = `${place.edgeUrl}/v1`;
  const use = { base, model: good ? model : MODEL };
  const choose = (event) => {
    setSecret(null);
    setQuery({ agent: event.target.value === agents[0].id ? null : event.target.value });
  };
  return html`<div class="stack">
    <${Section} title="1. Address and key">
      <div class="stack">
        <div class="filters filters-plain">
          <label class="filter"><span class="filter-label">Agent</span>
            <select class="input" onChange=${choose}>${agents.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === agent.id}>${name ?? id}</option>`)}</select></label>
          <label class="filter"><span class="filter-label">Model</span>
            <input class="input" value=${query.model ?? MODEL} spellcheck="false" autocomplete="off" aria-invalid=${good ? null : 'true'}
              onChange=${(event) => setQuery({ model: event.target.value === MODEL ? null : event.target.value })} /></label>
        </div>
        ${!good && html`<p class="alert alert-warn">The snippets keep ${MODEL}: a model’s name has letters, digits and . _ : / @ - only.</p>`}
        <${CodeLine} label="Base URL" text=${base} what="the base URL" />
        <${Key} key=${agent.id} agent=${agent} secret=${secret} onSecret=${setSecret} />
        <${CodeLine} label="Once in the shell that the program runs in" text=${`export ${KEY_NAME}=${secret ?? '<your virtual key>'}`} what="the line for the key" />
      </div>
    <//>
    <${Section} title="2. Snippet">
      <${Tabs} label="Client" name="client" tabs=${CLIENTS.map(({ id, label, blocks, note }) => ({ id, label, show: () => html`<div class="stack">
        ${blocks(use).map(({ title, text }) => html`<${Code} key=${title} label=${title} text=${text} what=${`the snippet for ${label}: ${title}`} />`)}
        ${note && html`<p class="hint">${note}</p>`}</div>` }))} />
    <//>
    <${FirstCall} key=${`${agent.id} ${use.model}`} agent=${agent} model=${use.model} />
  </div>`;
}
