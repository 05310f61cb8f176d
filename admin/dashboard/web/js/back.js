/**
 * What Back and a reload find again: how far one had scrolled, which page of each list was shown, and from which page one
 * came. All stand in the entry of the browser's history, so the address stays one that can be passed on.
 */

/** Pause after the last scroll before it is noted: browsers bound how often an entry may be written. */
const PAUSE_MS = 200;
/** How long a page that is still loading is waited for until it is tall enough to scroll to where one was. */
const WAIT_MS = 10_000;
/** What a person does who does not want to be moved any more. */
const OWN = ['wheel', 'touchstart', 'keydown', 'pointerdown'];

let noting = 0;
let stopWaiting = null;
// The browser would scroll before the page has loaded what it shows.
history.scrollRestoration = 'manual';

function write(change) {
  history.replaceState({ ...history.state, ...change }, '');
}

/** Notes how far one has scrolled. Not while the page is on its way to where one was. */
function note() {
  clearTimeout(noting);
  noting = 0;
  if (!stopWaiting && Math.round(scrollY) !== (history.state?.scroll ?? 0)) write({ scroll: Math.round(scrollY) });
}

addEventListener('scroll', () => {
  clearTimeout(noting);
  noting = setTimeout(note, PAUSE_MS);
}, { passive: true });
// Whoever follows a link leaves the entry before the pause is over.
addEventListener('click', note, { capture: true });
addEventListener('pagehide', note);
// What is not noted yet belongs to the entry that was left.
addEventListener('hashchange', () => {
  clearTimeout(noting);
  stopWaiting?.();
});

/** The cursors of the pages of a list up to the one that is shown. @param {string} list */
export const cursorsOf = (list) => history.state?.lists?.[list] ?? [];

/** @param {string} list @param {string[]} cursors */
export const keepCursors = (list, cursors) => write({ lists: { ...history.state?.lists, [list]: cursors } });

/** Notes the page that led to a new entry of the history. @param {string} address the address that was left */
export function noteOrigin(address) {
  if (history.state?.origin === undefined) write({ origin: new URL(address).hash });
}

/** The hash of the page that led here, such as `#/calls?agentId=bot`: that of the entry before; null if none of ours did. */
export const origin = () => history.state?.origin || null;

/** Forgets it for what is shown now. */
export function forget() {
  stopWaiting?.();
  history.replaceState(null, '');
}

/** Scrolls to where one was in this entry, as soon as the page is tall enough; to the top of a new one. */
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
