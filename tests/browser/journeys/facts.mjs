// Facts about the dashboard that hold whoever uses it: what the first page weighs, and that a server which is away is
// shown as such, with a way to try again, and never as a blank page.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account, ask } from '../kit/stage.mjs';
import { meter } from '../kit/transfer.mjs';

/** The first page in all: every byte until somebody sees the overview, the page for signing in included. */
const FIRST_PAGE_MAX = 200_000;
const REFUSED = 'net::ERR_CONNECTION_REFUSED';
const CUT = ['net::ERR_CONNECTION_RESET', 'net::ERR_EMPTY_RESPONSE'];

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const ada = await journey.person('Ada');

  await journey.step('the first page is small', async () => {
    const total = await meter(ada.page);
    await ada.enter(acme.users.owner);
    await ada.heading('Overview');
    console.log(`  first page: ${total.bytes} bytes in ${total.count} answers`);
    assert.ok(total.count > 5, `${total.count} answers were counted`);
    assert.ok(total.bytes < FIRST_PAGE_MAX, `${total.bytes} bytes`);
  });

  await journey.step('no page knows what it is not given: no cookie can be read by a script, nothing is kept', async () => {
    assert.equal(await ada.page.evaluate(() => document.cookie), '');
    const kept = await ada.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    assert.ok(!/[0-9a-f]{32}/.test(kept), kept);
    const [cookie] = await ada.context.cookies();
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ['tollgate_session', true, 'Strict']);
  });

  await journey.step('a server that is away is reported, with a way to try again', async () => {
    await ada.menu('Agents');
    await ada.menu('Overview');
    await ada.sees('This is the way to the first call that passes the gate.');
    ada.expect(REFUSED, /./);
    // Requests under way when the server stops, or on one of its old connections, end with other errors.
    for (const cut of CUT) ada.allow(cut, /./);
    await ask('stop');
    await ada.menu('Agents');
    await ada.sees('The server cannot be reached. Check the connection and try again.');
    await ada.look('server-away');
    await ask('start');
    await ada.press('Try again');
    await ada.sees('There is no agent yet.');
  });

  await journey.step('a server that cannot determine who is signed in signs nobody out: the page is there when it can', async () => {
    const text = 'Tollgate cannot reach its store.';
    const away = (route) => route.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ success: false, error: text, code: 'SERVICE_UNAVAILABLE' }) });
    await ada.open('/agents?status=frozen');
    await ada.page.route('**/api/user/me', away);
    ada.expect(503, '/api/user/me');
    await ada.page.reload();
    await ada.heading('This could not be loaded');
    await ada.sees(text);
    await ada.look('nobody-known');
    await ada.page.unroute('**/api/user/me', away);
    await ada.press('Try again');
    await ada.heading('Agents');
    assert.match(ada.page.url(), /#\/agents\?status=frozen$/);
  });

  await journey.step('a page whose code cannot be fetched says so, and loads when the server is back', async () => {
    await ask('stop');
    await ada.toward('Escrow');
    await ada.sees('This page could not be loaded');
    await ada.look('code-away');
    await ask('start');
    await ada.press('Reload');
    await ada.heading('Escrow');
  });
});
