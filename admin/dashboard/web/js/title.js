/**
 * What the record is called that a page shows, for the title of the document. The head of the page says it.
 */
import { store, useStore } from './store.js';

const about = store({ name: null });

/** Watches it. */
export const useAbout = () => useStore(about).name;

/** @param {string|null} name */
export const setAbout = (name) => about.set({ name });
