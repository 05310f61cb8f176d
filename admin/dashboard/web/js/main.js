/**
 * The start: hands the pages to the router, learns who is signed in, then shows the frame.
 */
import { html, render } from './html.js';
import { ApiError, askWho, get, unreachable } from './api.js';
import { ENDED, session, signedIn, signedOut } from './session.js';
import { App } from './app.js';
import { setRoutes } from './router.js';
import { ROUTES } from './routes.js';

/** Whether the browser sent a session's cookie. */
async function hasSession() {
  const answer = await fetch('/dashboard.json', { headers: { Accept: 'application/json' }, cache: 'no-store' });
  return (await answer.json()).hasSession;
}

/** A server that does not tell signs nobody out: the address stays, and one can ask again. */
async function start() {
  try {
    if (await hasSession()) signedIn(await get('/api/user/me'));
    else signedOut(location.hash);
  } catch (error) {
    if (error.status === 401) signedOut(location.hash, ENDED);
    else session.set({ status: 'unknown', error: error instanceof ApiError ? error : unreachable() });
  }
}

// The cookie is the browser's, not this tab's: whoever comes back to the tab sees who is signed in by now.
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && session.get().status === 'in') askWho();
});

setRoutes(ROUTES);
render(html`<${App} start=${start} />`, document.getElementById('app'));
start();
