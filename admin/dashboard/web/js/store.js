/**
 * Observable state: components subscribe to a value and are drawn again when it changes.
 */
import { useEffect, useState } from './html.js';

/**
 * @template T
 * @param {T} first
 */
export function store(first) {
  let value = first;
  const watchers = new Set();
  return {
    get: () => value,
    /** @param {Partial<T>} change merged into the value */
    set(change) {
      value = { ...value, ...change };
      watchers.forEach((watcher) => watcher(value));
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Returns the store's current value and redraws the component on each change. */
export function useStore(of) {
  const [value, setValue] = useState(of.get());
  useEffect(() => {
    setValue(of.get());
    return of.watch(setValue);
  }, [of]);
  return value;
}
