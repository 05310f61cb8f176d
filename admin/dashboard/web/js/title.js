/**
 * The name of the record on a detail page, for the document's title. `PageHead` sets it.
 */
import { store, useStore } from './store.js';

const about = store({ name: null });

/** Subscribes the component to the name. */
export const useAbout = () => useStore(about).name;

/** @param {string|null} name */
export const setAbout = (name) => about.set({ name });
