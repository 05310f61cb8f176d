/**
 * Router for addresses behind the hash, such as `#/agents/my-bot?tab=keys`: matches the route table and navigates. In
 * test mode they begin with `#/test`, so that a reload, a new tab, a bookmark and Back show the mode that was meant.
 */
import { noteOrigin, origin } from './back.js';
import { store, useStore } from './store.js';

/** The route table (`routes.js`). `main.js` passes it in, since the pages import the router. */
let routes = [];

/** First part of the addresses of test mode. */
const TEST = 'test';

/** The current route, the parameters of its path, the mode and the query. `entry` counts the entries of the history. */
export const place = store({ ...read(), entry: 0 });
addEventListener('hashchange', (event) => {
  noteOrigin(event.oldURL);
  place.set({ ...read(), entry: place.get().entry + 1 });
});

/** Sets the route table and reads the current address. */
export function setRoutes(table) {
  routes = table;
  place.set(read());
}

/** Subscribes the component to the current route. */
export const usePlace = () => useStore(place);

/** @returns {'live'|'test'} the mode of the current address */
export const currentMode = () => place.get().mode;

/** Subscribes the component to the mode. */
export const useMode = () => usePlace().mode;

/** The page of this mode that led here, with its route; null after a typed address or after signing in. */
export function cameFrom() {
  const hash = origin();
  const from = hash && read(hash);
  return from?.route && !from.route.open && from.mode === currentMode() ? { ...from, to: hash } : null;
}

function read(hash = location.hash) {
  const [address, query = ''] = hash.replace(/^#/, '').split('?');
  const parts = address.split('/').filter(Boolean);
  const mode = parts[0] === TEST ? 'test' : 'live';
  if (mode === 'test') parts.shift();
  const path = `/${parts.join('/')}`;
  for (const route of routes) {
    const params = match(route.path.split('/').filter(Boolean), parts);
    if (params) return { route, params, mode, path, query: Object.fromEntries(new URLSearchParams(query)) };
  }
  return { route: null, params: {}, mode, path, query: {} };
}

function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  const params = {};
  for (const [index, name] of pattern.entries()) {
    if (name.startsWith(':')) {
      const value = decoded(parts[index]);
      if (value === null) return null;
      params[name.slice(1)] = value;
    } else if (name !== parts[index]) return null;
  }
  return params;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The address of a page in the current mode: `href('/agents', id)`, `href('/audit', {agentId})`. Parts are escaped. */
export const href = (path, ...more) => hrefIn(currentMode(), path, ...more);

/** The same in this mode. @param {'live'|'test'} mode */
export function hrefIn(mode, path, ...more) {
  const query = more.find((part) => part !== null && typeof part === 'object') ?? {};
  const parts = more.filter((part) => typeof part !== 'object').map((part) => `/${encodeURIComponent(part)}`);
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const text = new URLSearchParams(given).toString();
  return `#${mode === 'test' ? `/${TEST}` : ''}${path}${parts.join('')}${text ? `?${text}` : ''}`;
}

/** Navigates to an address made by `href`. */
export function go(address) {
  location.hash = address;
}

/** The same in place of the current entry of the history, for redirects: Back would only lead to the next redirect. */
export function redirect(address) {
  location.replace(address);
}

/** Changes the query of the current page (filters, tabs, pages) without a new entry in the history. */
export function setQuery(change) {
  const { path, query } = place.get();
  history.replaceState(history.state, '', href(path, { ...query, ...change }));
  place.set(read());
}
