/**
 * State that Back and a reload restore: the scroll position, the page of each list, and the page that led here. It is
 * kept in the entry of the browser's history, so the address stays clean enough to share.
 */

/** Delay after the last scroll event before the position is saved: browsers limit how often an entry may be written. */
const PAUSE_MS = 200;
/** Maximum wait for a loading page to become tall enough for the saved scroll position. */
const WAIT_MS = 10_000;
/** User input that cancels a pending scroll. */
const OWN = ['wheel', 'touchstart', 'keydown', 'pointerdown'];

let noting = 0;
let stopWaiting = null;
// The browser would scroll before the page has loaded its data.
history.scrollRestoration = 'manual';

function write(change) {
  history.replaceState({ ...history.state, ...change }, '');
}

/** Saves the scroll position, unless a restored position is still pending. */
function note() {
  clearTimeout(noting);
  noting = 0;
  if (!stopWaiting && Math.round(scrollY) !== (history.state?.scroll ?? 0)) write({ scroll: Math.round(scrollY) });
}

addEventListener('scroll', () => {
  clearTimeout(noting);
  noting = setTimeout(note, PAUSE_MS);
}, { passive: true });
// A click on a link leaves the entry before the delay is over.
addEventListener('click', note, { capture: true });
addEventListener('pagehide', note);
// A position that is not saved yet belongs to the previous entry.
addEventListener('hashchange', () => {
  clearTimeout(noting);
  stopWaiting?.();
});

/** Cursors of a list's pages up to the current one. @param {string} list */
export const cursorsOf = (list) => history.state?.lists?.[list] ?? [];

/** @param {string} list @param {string[]} cursors */
export const keepCursors = (list, cursors) => write({ lists: { ...history.state?.lists, [list]: cursors } });

/** Saves which page led to a new entry of the history. @param {string} address the previous address */
export function noteOrigin(address) {
  if (history.state?.origin === undefined) write({ origin: new URL(address).hash });
}

/** The hash of the previous entry, such as `#/calls?agentId=bot`; null if it was no page of the dashboard. */
export const origin = () => history.state?.origin || null;

/** Restores the entry's scroll position as soon as the page is tall enough. A new entry starts at the top. */
export function returnTo() {
  stopWaiting?.();
  const wanted = history.state?.scroll ?? 0;
  const arrived = () => {
    scrollTo(0, wanted);
    return wanted <= document.documentElement.scrollHeight - innerHeight;
  };
  if (arrived()) return;
  const observer = new ResizeObserver(() => arrived() && stopWaiting?.());
  const stop = () => {
    observer.disconnect();
    clearTimeout(timer);
    for (const one of OWN) removeEventListener(one, stop);
    stopWaiting = null;
  };
  const timer = setTimeout(stop, WAIT_MS);
  for (const one of OWN) addEventListener(one, stop, { passive: true });
  stopWaiting = stop;
  observer.observe(document.body);
}
