/**
 * Entry point: sets up the router, loads the session, then renders the frame.
 */
import { html, render } from './html.js';
import { ApiError, askWho, get, unreachable } from './api.js';
import { ENDED, onOtherTab, session, signedIn, signedOut } from './session.js';
import { App } from './app.js';
import { setRoutes } from './router.js';
import { ROUTES } from './routes.js';

/** Whether the browser has a session cookie. */
async function hasSession() {
  const answer = await fetch('/dashboard.json', { headers: { Accept: 'application/json' }, cache: 'no-store' });
  return (await answer.json()).hasSession;
}

/** Loads the session. A failure signs nobody out: the address stays, and the user can try again. */
async function start() {
  try {
    if (await hasSession()) signedIn(await get('/api/user/me'));
    else signedOut(location.hash);
  } catch (error) {
    if (error.status === 401) signedOut(location.hash, ENDED);
    else session.set({ status: 'unknown', error: error instanceof ApiError ? error : unreachable() });
  }
}

// All tabs share the cookie. A tab loads the session when somebody has signed in or out in another one, and when it
// becomes visible: the browser may have dropped the message of a suspended tab.
const askAgain = () => session.get().status === 'in' && askWho();
onOtherTab(askAgain);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') askAgain();
});

setRoutes(ROUTES);
render(html`<${App} start=${start} />`, document.getElementById('app'));
start();
