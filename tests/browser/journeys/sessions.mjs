// Being signed in: a forged cookie and a session that was ended elsewhere lead to the sign-in page and back to where
// one was; back, reload and deep links keep working; a call from another origin does nothing.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account, plan } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const bot = await worker(acme, 'Invoice reader');
  const { owner } = acme.users;
  const here = `/agents/${bot.id}`;
  const ada = await journey.person('Ada at her desk');

  await journey.step('a deep link asks who one is, and then goes there', async () => {
    await ada.open(here);
    await ada.heading('Sign in');
    await ada.signIn(owner);
    await ada.heading(/Invoice reader/);
  });

  await journey.step('back, forward and reload', async () => {
    await ada.menu('Audit');
    await ada.menu('Team');
    await ada.page.goBack();
    await ada.heading('Audit');
    await ada.page.goBack();
    await ada.heading(/Invoice reader/);
    await ada.page.goForward();
    await ada.heading('Audit');
    await ada.page.reload();
    await ada.heading('Audit');
  });

  await journey.step('the cookie of before signing in is worth nothing after it', async () => {
    const eve = await journey.person('Eve, who set a cookie');
    const fixed = 'ab'.repeat(32);
    await eve.context.addCookies([{ name: 'tollgate_session', value: fixed, url: plan.base }]);
    eve.expect(401, '/api/user/me');
    await eve.open('/agents');
    await eve.heading('Sign in');
    await eve.signIn(owner);
    await eve.heading('Agents');
    const [cookie] = await eve.context.cookies();
    assert.notEqual(cookie.value, fixed);
    const answer = await fetch(`${plan.base}/api/user/me`, { headers: { cookie: `tollgate_session=${fixed}` } });
    assert.equal(answer.status, 401);
  });

  await journey.step('a session that is ended elsewhere', async () => {
    const phone = await journey.person('Ada on her phone');
    await phone.enter(owner, '/agents');
    await ada.menu('Account settings');
    await ada.look('settings');
    await ada.press('End other sessions');
    await ada.press('End other sessions', ada.dialog());
    await ada.sees('All other sessions of yours have ended.');
    phone.expect(401, /^\/api\/v1\//);
    await phone.toward('Wallets');
    await phone.heading('Sign in');
    await phone.sees('Your session has ended. Sign in again to go on where you were.');
    await phone.look('ended');
    await phone.signIn(owner);
    await phone.heading('Wallets');
    await phone.page.goBack();
    await phone.heading('Agents');
  });

  await journey.step('signing out ends it, for the back button as well', async () => {
    await ada.open(here);
    await ada.press('Sign out');
    await ada.heading('Sign in');
    const [cookie] = await ada.context.cookies();
    assert.equal(cookie, undefined);
    await ada.page.goBack();
    await ada.heading('Sign in');
    await ada.misses('Invoice reader');
  });

  await journey.step('a page of another origin can neither read nor change anything', async () => {
    const answer = await fetch(`${plan.base}/api/user/logout`, { method: 'POST', headers: { origin: 'http://evil.example' } });
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    assert.ok([401, 403].includes(answer.status), `${answer.status}`);
  });
});
