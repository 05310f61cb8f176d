/**
 * The frame: navigation, the live/test switch, the page of the route, toasts and confirmations.
 */
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { get, post } from './api.js';
import { endSession, session, useSession, may } from './session.js';
import { go, href, hrefIn, redirect, usePlace } from './router.js';
import { NAV } from './routes.js';
import { Page } from './page.js';
import { Button } from './ui/button.js';
import { Confirmations } from './ui/dialog.js';
import { say, Toasts } from './ui/live.js';
import { OpenPage } from './ui/open.js';
import { Name } from './ui/show.js';
import { ThemeSwitch } from './ui/theme.js';

/**
 * The root component. Without a session only open pages are shown.
 * @param {{start: () => Promise<void>}} props loads the session
 */
export function App({ start }) {
  const { status, wanted, place } = useSession();
  const { route, path, mode } = usePlace();
  useLayoutEffect(() => {
    document.documentElement.dataset.mode = status === 'in' ? mode : 'live';
  }, [status, mode]);
  const shown = useRef(mode);
  useEffect(() => {
    if (status === 'in' && mode !== shown.current) say(mode === 'test' ? 'You are now in test mode.' : 'You are now in live mode.', 'info', 'mode');
    shown.current = mode;
  }, [mode]);
  useEffect(() => {
    if (status === 'out' && !route?.open) redirect('#/login');
    if (status === 'in' && path === '/login') redirect(wanted && !wanted.startsWith('#/login') ? wanted : '#/');
  }, [status, path]);
  useEffect(() => {
    if (status === 'in' && !place) learnPlace();
  }, [status]);
  if (status === 'unknown') return html`<${Unknown} start=${start} />`;
  const framed = status === 'in' && !route?.open;
  if (status === 'loading' || (framed && !place)) return html`<p class="boot" role="status">Loading…</p>`;
  if (!framed && !route?.open) return null;
  return html`<div class=${framed ? 'frame' : 'frame-open'}>
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    ${framed && html`<${Frame} />`}
    <main id="main" tabindex="-1"><${Page} key=${mode} /></main>
    <${Toasts} />
    <${Confirmations} />
  </div>`;
}

/** Shown in place of the requested page while the session is unknown, with a button that asks the server again. */
function Unknown({ start }) {
  const { error } = useSession();
  const [busy, setBusy] = useState(false);
  const again = async () => {
    setBusy(true);
    await start();
    setBusy(false);
  };
  return html`<div class="frame-open"><main id="main" tabindex="-1">
    <${OpenPage} title="This could not be loaded" lead=${error.message}>
      ${error.requestId && html`<p class="open-lead muted">Request id: <code>${error.requestId}</code></p>`}
      <div class="actions"><${Button} kind="primary" busy=${busy} onClick=${again}>Try again<//></div>
    <//>
  </main></div>`;
}

/** Loads the edge's address and the providers. If that fails, pages show neither. */
async function learnPlace() {
  let place = { edgeUrl: '', provider: '', providers: [] };
  try {
    place = await get('/installation');
  } catch (error) {
    if (error.status !== 401) say(error.message, 'error');
  }
  if (session.get().status === 'in') session.set({ place });
}

/** The router owns the hash, so the skip link moves the focus itself. */
function skip(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function Frame() {
  const { path, mode } = usePlace();
  const [open, setOpen] = useState(false);
  const toggle = useRef(null);
  useEffect(() => setOpen(false), [path]);
  const close = (event) => {
    if (event.key !== 'Escape' || !open) return;
    setOpen(false);
    toggle.current.focus();
  };
  return html`
    ${mode === 'test' && html`<section class="mode-banner" aria-label="Test mode"><strong>Test mode.</strong> Records and money here are for trying things out; nothing of it is real.</section>`}
    <header class="side" onKeyDown=${close}>
      <div class="side-top">
        <a class="brand" href=${href('/')} aria-label="Tollgate, overview"><span class="brand-mark" aria-hidden="true"></span><span>Tollgate</span></a>
        <button ref=${toggle} type="button" class="menu-button" aria-expanded=${open ? 'true' : 'false'} aria-controls="side-body" onClick=${() => setOpen(!open)}>
          <span class="menu-lines" aria-hidden="true"></span>Menu
        </button>
      </div>
      <${ModeSwitch} />
      <div id="side-body" class=${open ? 'side-body side-body-open' : 'side-body'}>
        <${Navigation} />
        <${ThemeSwitch} />
        <${Who} />
      </div>
    </header>`;
}

/** The live/test switch. A record exists in one mode only, so a switch on a detail page opens its list. */
function ModeSwitch() {
  const { path, mode } = usePlace();
  const choose = (next) => next !== mode && go(hrefIn(next, `/${path.split('/')[1]}`));
  return html`<div class="mode-switch" role="group" aria-label="Mode">
    ${['live', 'test'].map((name) => html`<button key=${name} type="button" class=${`mode mode-${name}`}
      aria-pressed=${mode === name ? 'true' : 'false'} onClick=${() => choose(name)}>
      <span class="mode-dot" aria-hidden="true"></span>${name === 'live' ? 'Live' : 'Test'}
    </button>`)}
  </div>`;
}

function Navigation() {
  const { route } = usePlace();
  return html`<nav class="nav" aria-label="Main">
    ${NAV.map((group) => html`<div class="nav-group" key=${group.name ?? 'first'}>
      ${group.name && html`<p class="nav-title">${group.name}</p>`}
      <ul>
        ${group.items.filter((item) => !item.role || may(item.role)).map((item) => html`<li key=${item.nav}>
          <a href=${href(item.path)} class="nav-link" aria-current=${route?.nav === item.nav ? 'page' : null}>${item.label}</a>
        </li>`)}
      </ul>
    </div>`)}
  </nav>`;
}

function Who() {
  const { user, account } = useSession();
  const leave = async () => {
    try {
      await post('/api/user/logout');
    } catch (error) {
      if (error.status !== 401) {
        say(error.message, 'error');
        return;
      }
    }
    endSession();
  };
  return html`<div class="who">
    <p class="who-account"><${Name} of=${account.name} /></p>
    <p class="who-user"><${Name} of=${user.email} /> <span class="muted">· ${user.role}</span></p>
    <p class="who-links"><${Button} small kind="quiet" onClick=${leave}>Sign out<//><a href="/reference">API reference</a></p>
  </div>`;
}
