/**
 * The account's agents, for select boxes and names: the newest, or the results of a search.
 */
import { get } from './api.js';
import { useLoad } from './load.js';

/** Limit of one list of agents. */
export const MOST = 200;

/**
 * @param {string} [q] part of their id or name
 * @returns {{agents: object[], more: boolean, nameOf: (id: string) => string}} `more`: the account has further agents;
 *   `nameOf` returns the id of an agent that is not listed
 */
export function useAgents(q = '') {
  const { data } = useLoad((signal) => get('/agents', { limit: MOST, q }, { signal }), [q], []);
  const agents = data?.agents ?? [];
  return { agents, more: Boolean(data?.nextCursor), nameOf: (id) => agents.find((agent) => agent.id === id)?.name ?? id };
}
