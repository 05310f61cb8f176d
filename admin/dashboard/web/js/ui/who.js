/**
 * The actor of an entry: the name, with the id in small print below it.
 */
import { html } from '../html.js';
import { href } from '../router.js';
import { Id, Name } from './show.js';

/** The trail's names for actors without a record. */
const OTHERS = {
  operator: 'Operator', worker: 'Worker', payer: 'The payer’s account', payee: 'The payee’s account', 'another account': 'Another account',
};
const KINDS = { api_key: 'API key', virtual_key: 'Virtual key', policy: 'Policy', user: 'Person', agent: 'Agent' };

/**
 * @param {{id: string|null, names: ReturnType<import('../names.js').useNames>}} props an id without a name is shown
 *   alone
 */
export function By({ id, names }) {
  const found = id && names.of(id);
  if (found) {
    return html`<span class="agent-name"><span title=${KINDS[found.kind]}><${Name} of=${found.name} /></span><${Id} of=${id} /></span>`;
  }
  return OTHERS[id] ?? html`<${Id} of=${id} />`;
}

/** An agent by its name, leading to its page; the id is the title. */
export function AgentLink({ id, name }) {
  if (!id) return html`<span class="muted">–</span>`;
  return html`<a href=${href('/agents', id)} title=${name ? `${name} (${id})` : id}><bdi class="name">${name ?? id}</bdi></a>`;
}
