/**
 * Data of a component: loaded on first render and when a dependency changes, with its error and a function to retry.
 */
import { useCallback, useEffect, useRef, useState } from './html.js';

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} on dependencies: a change loads the data again
 * @param {unknown[]} same while these are unchanged, old data stays visible until the new data arrives; a change
 *   drops it
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
