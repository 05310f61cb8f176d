// The fixture itself: a page without a fault passes, and each kind of fault is found and named.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { play } from '../kit/journey.mjs';
import { look } from '../kit/look.mjs';

const POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self' http://localhost:9; img-src 'self' data: http://localhost:9";
const page = (body, head = '') =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
  <title>Static</title><link rel="icon" href="data:,">${head}</head><body><main><h1>Static</h1>${body}</main></body></html>`;
const script = (name) => `<script src="/${name}.js"></script>`;

const FILES = {
  '/good': page('<p>Nothing is wrong here.</p><button>Press</button>'),
  '/error': page(script('error')),
  '/error.js': 'console.error("broken");',
  '/warning': page(script('warning')),
  '/warning.js': 'console.warn("careful");',
  '/exception': page(script('exception')),
  '/exception.js': 'setTimeout(() => { throw new Error("unforeseen"); });',
  '/policy': page('<p style="color: red">Red</p>'),
  '/host': page('<img alt="far" src="http://localhost:9/far.png">'),
  '/missing': page('<img alt="none" src="/none.png">'),
  '/alert': page(script('alert')),
  '/alert.js': 'alert(1);',
  '/injected': page(script('injected')),
  '/injected.js': 'window.__xss = 1;',
  '/unlabelled': page('<input><p id="a">a</p>'),
  '/faint': page('<p class="faint">Hard to read at night</p>', '<link rel="stylesheet" href="/faint.css">'),
  '/faint.css': '@media (prefers-color-scheme: dark) { .faint { color: #333; background: #222; } }',
  '/wide': page('<pre class="wide">x</pre>', '<link rel="stylesheet" href="/wide.css">'),
  '/wide.css': '.wide { width: 2000px; }',
  '/stuck': page('<table><tr><td><code class="stuck">an id that is longer than its cell</code></td><td>next</td></tr></table>', '<link rel="stylesheet" href="/stuck.css">'),
  '/stuck.css': 'table { table-layout: fixed; width: 200px; } .stuck { display: inline-block; width: 150px; white-space: nowrap; overflow: hidden; }',
};
const TYPES = { js: 'text/javascript', css: 'text/css' };

/** The page, and what has to be said against it. */
const CASES = [
  ['/error', /console error: broken/],
  ['/warning', /console warning: careful/],
  ['/exception', /nobody caught: Error: unforeseen/],
  ['/policy', /Content Security Policy/],
  ['/host', /another host: http:\/\/localhost:9\/far\.png/],
  ['/missing', /GET .*\/none\.png was answered 404/],
  ['/alert', /a dialog of the browser: alert 1/],
];

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://x');
  const body = FILES[pathname];
  response.setHeader('content-security-policy', POLICY);
  response.setHeader('content-type', TYPES[pathname.split('.')[1]] ?? 'text/html');
  response.writeHead(body === undefined ? 404 : 200).end(body ?? '');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const base = `http://127.0.0.1:${server.address().port}`;

/** Somebody who goes there; their faults are taken off them, since finding them is what is asked. */
async function visit(journey, path, prepare = () => {}) {
  const person = await journey.person(path, { base });
  prepare(person);
  await person.page.goto(base + path, { waitUntil: 'load' });
  const faults = () => person.watch.verdict();
  return { person, faults };
}

async function until(what, look) {
  const end = Date.now() + 10_000;
  for (;;) {
    const found = look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((again) => setTimeout(again, 20));
  }
}

await play(async (journey) => {
  await journey.step('a good page has no faults', async () => {
    const { person, faults } = await visit(journey, '/good');
    await person.look('good');
    assert.deepEqual([...faults(), ...journey.faults], []);
  });
  for (const [path, wanted] of CASES) {
    await journey.step(`${path} is found`, async () => {
      const { person, faults } = await visit(journey, path);
      await until(`${wanted} in ${JSON.stringify(faults())}`, () => faults().some((fault) => wanted.test(fault)));
      person.watch.faults.length = 0;
    });
  }
  await journey.step('what is expected is no fault, and has to come', async () => {
    const { faults } = await visit(journey, '/missing', (person) => person.expect(404, '/none.png'));
    await until('the 404', () => faults().length === 0);
    const other = await visit(journey, '/good', (person) => person.expect(404, '/none.png'));
    assert.match(other.faults().join(), /never came: 404/);
    other.person.watch.expected.length = 0;
  });
  await journey.step('an injected script is found', async () => {
    const { person } = await visit(journey, '/injected');
    assert.match((await journey.verdict()).join(), /\/injected: a script was injected/);
    journey.faults.length = 0;
    await person.context.close();
  });
  await journey.step('what axe-core has against a page is found', async () => {
    const { person } = await visit(journey, '/unlabelled');
    assert.match((await look(person.page, 'fixture-unlabelled')).join('\n'), /phone: label .*\n(.*\n)*.*light: label/);
  });
  await journey.step('what can be read in light but not in dark is found', async () => {
    const { person } = await visit(journey, '/faint');
    assert.match((await look(person.page, 'fixture-faint')).join('\n'), /^fixture-faint, dark: color-contrast [^\n]*$/);
  });
  await journey.step('a page that is wider than a phone is found', async () => {
    const { person } = await visit(journey, '/wide');
    const faults = await look(person.page, 'fixture-wide');
    assert.match(faults.join('\n'), /phone: the page scrolls sideways, 20\d\d > 390 px: .*wide/);
  });
  await journey.step('an element that sticks out of its cell is found', async () => {
    const { person } = await visit(journey, '/stuck');
    const faults = await look(person.page, 'fixture-stuck');
    assert.match(faults.join('\n'), /tablet: .*class="stuck".* sticks \d+ px out of its cell/);
  });
  server.close();
});
