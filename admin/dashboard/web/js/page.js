/**
 * Shows the page of the route: loads its module, sets the document's title, and moves the focus to the heading, so that
 * screen readers announce the new page.
 */
import { html, useEffect, useRef, useState } from './html.js';
import { returnTo } from './back.js';
import { href, usePlace } from './router.js';
import { may, useSession } from './session.js';
import { useAbout } from './title.js';
import { Button } from './ui/button.js';
import { Empty, Skeleton } from './ui/state.js';
import { PageHead } from './ui/show.js';

export function Page() {
  const { route, params, query, path, mode, entry } = usePlace();
  const { status, user } = useSession();
  const [loaded, setLoaded] = useState({ route: null, show: null, failed: false });
  const name = useAbout();
  const first = useRef(true);
  useEffect(() => {
    document.title = title(route, name ?? Object.values(params)[0], status === 'in' && mode === 'test');
  }, [route, path, mode, status, name]);
  useEffect(() => {
    let wanted = true;
    route?.load().then(
      (module) => wanted && setLoaded({ route, show: module.default, failed: false }),
      () => wanted && setLoaded({ route, show: null, failed: true }),
    );
    return () => { wanted = false; };
  }, [route]);
  useEffect(returnTo, [entry, loaded]);
  useEffect(() => {
    // The first page keeps the browser's own initial focus.
    if (!first.current && loaded.show) document.querySelector('#main h1')?.focus({ preventScroll: true });
    if (loaded.show) first.current = false;
  }, [path, loaded]);
  if (!route) return html`<${Missing} />`;
  if (route.role && !may(route.role)) return html`<${NotYours} route=${route} />`;
  if (loaded.route !== route) return html`<${Skeleton} rows=${4} label="Loading the page" />`;
  if (loaded.failed) return html`<${Outdated} />`;
  // The key drops the page's state when another person has signed in in this browser meanwhile.
  return html`<${loaded.show} key=${route.open ? path : `${user?.id} ${path}`} params=${params} query=${query} />`;
}

/** Title of the document. `name` is that of the record on a detail page. */
function title(route, name, test) {
  const page = route?.title ?? 'Not found';
  const shown = !route?.path.includes(':') || route.open || name === page ? page : `${name} · ${page}`;
  return `${test ? '[TEST] ' : ''}${shown} · Tollgate`;
}

function Missing() {
  return html`<div><${PageHead} title="Not found" /><${Empty} title="There is no such page."><a href=${href('/')}>Go to the overview</a><//></div>`;
}

function NotYours({ route }) {
  return html`<div><${PageHead} title=${route.title} />
    <${Empty} title=${`This page is for the role ${route.role} and above.`}><a href=${href('/')}>Go to the overview</a><//></div>`;
}

/** Shown if a page's module fails to load, mostly because the server was upgraded while this tab was open. */
function Outdated() {
  return html`<div><${PageHead} title="This page could not be loaded" />
    <${Empty} title="The server may have been upgraded since this tab was opened, or cannot be reached.">
      <${Button} kind="primary" onClick=${() => location.reload()}>Reload<//>
    <//></div>`;
}
