/**
 * The account's agents, for choosing one and for naming them: the newest, or those that a search finds.
 */
import { get } from './api.js';
import { useLoad } from './load.js';

/** Agents that are listed at once. */
export const MOST = 200;

/**
 * @param {string} [q] what their id or name has in it
 * @returns {{agents: object[], more: boolean, nameOf: (id: string) => string}} with `more` there are others;
 *   `nameOf` an agent that is not listed is its id
 */
export function useAgents(q = '') {
  const { data } = useLoad((signal) => get('/agents', { limit: MOST, q }, { signal }), [q], []);
  const agents = data?.agents ?? [];
  return { agents, more: Boolean(data?.nextCursor), nameOf: (id) => agents.find((agent) => agent.id === id)?.name ?? id };
}
