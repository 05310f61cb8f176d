/**
 * The start: learns who is signed in, then shows the frame.
 */
import { html, render } from './html.js';
import { askWho, get } from './api.js';
import { session, signedIn, signedOut } from './session.js';
import { App } from './app.js';

async function start() {
  try {
    const answer = await fetch('/dashboard.json', { headers: { Accept: 'application/json' }, cache: 'no-store' });
    const { hasSession } = await answer.json();
    if (!hasSession) {
      signedOut(location.hash);
      return;
    }
    signedIn(await get('/api/user/me'));
  } catch (error) {
    signedOut(location.hash);
    if (error.status !== 401) session.set({ trouble: 'The server cannot be reached. Check the connection and reload.' });
  }
}

// The cookie is the browser's, not this tab's: whoever comes back to the tab sees who is signed in by now.
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && session.get().status === 'in') askWho();
});

render(html`<${App} />`, document.getElementById('app'));
start();
