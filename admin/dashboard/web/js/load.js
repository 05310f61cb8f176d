/**
 * Data for a page: loaded when it is shown or when what it depends on changes, with its error and a way to try again.
 */
import { useCallback, useEffect, useRef, useState } from './html.js';

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} on what the data depends on
 * @param {unknown[]} same while this is the same, what is shown stays until the new data are there; another one starts empty
 * @returns {{data: T|null, error: Error|null, loading: boolean, reload: () => void, set: (data: T) => void}}
 */
export function useLoad(load, on, same = on) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const last = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    const key = JSON.stringify(same);
    const keep = last.current === key;
    last.current = key;
    setState((old) => ({ data: keep ? old.data : null, error: null, loading: true }));
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, error: null, loading: false }),
      (error) => !abort.signal.aborted && setState((old) => ({ data: old.data, error, loading: false })),
    );
    return () => abort.abort();
  }, [...on, turn]);
  const reload = useCallback(() => setTurn((count) => count + 1), []);
  const set = useCallback((data) => setState({ data, error: null, loading: false }), []);
  return { ...state, reload, set };
}
