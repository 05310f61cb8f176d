/**
 * Resolves ids of API keys, virtual keys, policies, people and agents to names, in batches, cached as long as the page
 * is open.
 */
import { useCallback, useEffect, useRef, useState } from './html.js';
import { get } from './api.js';

/** Limit of the API on the ids of one request. */
const IDS_MAX = 100;
/** The API's syntax of ids. Other actors in a record, such as the operator, have no name. */
const ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * @returns {{of: (id: string) => {kind: string, name: string}|null, load: (ids: Array<string|null>) => void}} `load`
 *   requests the names not known yet; if the request fails, the page shows the ids alone
 */
export function useNames() {
  const [known, setKnown] = useState(new Map());
  const asked = useRef(new Set());
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const load = useCallback((ids) => {
    const fresh = [...new Set(ids)].filter((id) => id && ID.test(id) && !asked.current.has(id));
    abort.current ??= new AbortController();
    for (let at = 0; at < fresh.length; at += IDS_MAX) {
      const part = fresh.slice(at, at + IDS_MAX);
      for (const id of part) asked.current.add(id);
      get('/names', { ids: part.join(',') }, { signal: abort.current.signal }).then(
        ({ names }) => setKnown((old) => new Map([...old, ...names.map((one) => [one.id, one])])),
        () => part.forEach((id) => asked.current.delete(id)),
      );
    }
  }, []);
  return { of: (id) => known.get(id) ?? null, load };
}

/** The names of these ids, for a page that has all ids at once. */
export function useNamesOf(ids) {
  const names = useNames();
  useEffect(() => names.load(ids), [ids.join(' ')]);
  return names;
}
