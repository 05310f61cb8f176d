/**
 * Select box of the newest agents, with a search for the others.
 */
import { html, useRef, useState } from '../html.js';
import { MOST, useAgents } from '../agents.js';
import { useNamesOf } from '../names.js';
import { useTyping } from './filters.js';

/**
 * @param {{label: string, value: string, choose: (id: string) => void, first?: Array<[string, string]>}} props
 *   `value` is the id of the agent that is chosen, also of one that is not listed; `first` stands above the agents, as
 *   id and words
 */
export function AgentChoice({ label, value, choose, first = [] }) {
  const [q, setQ] = useState('');
  const many = useRef(false);
  const { agents, more } = useAgents(q);
  many.current ||= more;
  const known = labelled(agents);
  const other = value !== '' && ![...first, ...known].some(([id]) => id === value);
  const names = useNamesOf(other && agents.length > 0 ? [value] : []);
  const options = [...first, ...(other ? [[value, names.of(value)?.name ?? value]] : []), ...known];
  return html`<label class="filter"><span class="filter-label">${label}</span>
      <select class="input" onChange=${(event) => choose(event.target.value)}>
        ${options.map(([id, name]) => html`<option key=${id} value=${id} selected=${id === value}>${name}</option>`)}
        ${more && html`<option key="more" value="-" disabled>${q ? `The first ${MOST} that match` : `The newest ${MOST} only: find others`}</option>`}
      </select></label>
    ${many.current && html`<${Find} found=${agents.length} q=${q} find=${setQ} />`}`;
}

/** Ids and labels of agents. The id is added where names are equal apart from white space. */
function labelled(agents) {
  const bare = agents.map(({ name }) => name?.trim().replace(/\s+/g, ' '));
  return agents.map(({ id, name }, at) => {
    const alike = bare.indexOf(bare[at]) !== bare.lastIndexOf(bare[at]);
    return [id, name && alike ? `${name} (${id})` : name ?? id];
  });
}

function Find({ found, q, find }) {
  const { later } = useTyping();
  const type = ({ target }) => later(() => find(target.value.trim()));
  return html`<label class="filter"><span class="filter-label">Find an agent</span>
    <input class="input" type="search" dir="auto" placeholder="Name or id" onInput=${type} /></label>
    <span class="sr-only" role="status">${q && `${found} listed`}</span>`;
}
