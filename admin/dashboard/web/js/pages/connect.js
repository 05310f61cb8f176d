/**
 * Guide to the first call: the edge's address, a key, a snippet for the chosen client, and the first call as it
 * arrives. The user's program makes the call, so neither provider keys nor pasted secrets pass through this page.
 */
import { html, useState } from '../html.js';
import { href, setQuery, useMode } from '../router.js';
import { useSession } from '../session.js';
import { LinkButton } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { AgentChoice } from '../ui/agent-choice.js';
import { PageHead, Section } from '../ui/show.js';
import { Empty, Loaded } from '../ui/state.js';
import { Tabs } from '../ui/tabs.js';
import { useLoad } from '../load.js';
import { get, seg } from '../api.js';
import { Code } from './connect/code.js';
import { FirstCall } from './connect/first-call.js';
import { Key, hasKey } from './connect/key.js';
import { CLIENTS, KEY_NAME } from './connect/snippets.js';

const MODEL = 'gpt-4o-mini';
/** Syntax of a model's name that needs no escaping in any snippet. */
const PLAIN_MODEL = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/;

export default function Connect({ query }) {
  const mode = useMode();
  return html`<div class="stack">
    <${PageHead} title="Connect">Point a program at the edge: an address and a key, no other change of its code.<//>
    ${mode === 'test'
    ? html`<${Instead} title="Calls and their keys exist in live mode only."><p>Switch to live mode to connect a program.</p><//>`
    : html`<${Live} query=${query} />`}
  </div>`;
}

/** Shown in place of the steps. */
function Instead({ title, children }) {
  return html`<div class="card"><div class="card-body"><${Empty} title=${title}>${children}<//></div></div>`;
}

function Live({ query }) {
  const load = useLoad((signal) => wanted(query.agent, signal), [query.agent]);
  const agent = load.data?.agent ?? null;
  if (!query.agent && load.data && !agent) {
    return html`<${Instead} title="There is no agent yet."><p>A program calls as an agent, which has caps and keys.</p>
      <p><${LinkButton} kind="primary" to=${href('/agents', { new: 1 })}>Create an agent<//></p><//>`;
  }
  const model = (query.model ?? MODEL).trim();
  const good = PLAIN_MODEL.test(model);
  return html`<div class="stack">
    <div class="filters filters-plain">
      <${AgentChoice} label="Agent" value=${query.agent ?? agent?.id ?? ''} choose=${(id) => setQuery({ agent: id })} />
      <label class="filter"><span class="filter-label">Model</span>
        <input class="input" value=${query.model ?? MODEL} spellcheck="false" autocomplete="off" aria-invalid=${good ? null : 'true'}
          onChange=${(event) => setQuery({ model: event.target.value === MODEL ? null : event.target.value })} /></label>
    </div>
    ${!good && html`<p class="alert alert-warn">The snippets keep ${MODEL}: a model’s name has letters, digits and . _ : / @ - only.</p>`}
    <${Loaded} load=${load} label="Loading the agent">${() => (agent
    ? html`<${Steps} key=${agent.id} agent=${agent} model=${good ? model : MODEL} />`
    : html`<${Instead} title="There is no such agent."><p>The address names one that does not exist, or not any more. Choose another one above.</p><//>`)}<//>
  </div>`;
}

/** The agent named in the address, or the newest if it names none. An unknown name falls back to no other agent, since
* the page creates a key for the agent. */
async function wanted(id, signal) {
  if (!id) return { agent: (await get('/agents', { limit: 1 }, { signal })).agents[0] ?? null };
  try {
    return await get(`/agents/${seg(id)}`, {}, { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    return { agent: null };
  }
}

function Steps({ agent, model }) {
  const { place } = useSession();
  const [secret, setSecret] = useState(null);
  const keys = useLoad((signal) => hasKey(agent, signal), [agent.id]);
  const base = `${place.edgeUrl}/v1`;
  const use = { base, model };
  const made = (text) => {
    setSecret(text);
    keys.set({ any: true });
  };
  return html`<div class="stack">
    <${Section} title="1. Address and key">
      <div class="stack">
        <${CodeLine} label="Base URL" text=${base} what="the base URL" />
        <${Key} agent=${agent} secret=${secret} onSecret=${made} />
        <${CodeLine} label="Once in the shell that the program runs in" text=${`export ${KEY_NAME}=${secret ?? '<your virtual key>'}`} what="the line for the key" />
      </div>
    <//>
    <${Section} title="2. Snippet">
      <${Tabs} label="Client" name="client" tabs=${CLIENTS.map(({ id, label, blocks, note }) => ({ id, label, show: () => html`<div class="stack">
        ${blocks(use).map(({ title, text }) => html`<${Code} key=${title} label=${title} text=${text} what=${`the snippet for ${label}: ${title}`} />`)}
        ${note && html`<p class="hint">${note}</p>`}</div>` }))} />
    <//>
    <${FirstCall} agent=${agent} model=${model} keys=${keys} />
  </div>`;
}
