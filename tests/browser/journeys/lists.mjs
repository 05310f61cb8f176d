// Long lists: the next page keeps the focus and what was shown until it is there; Back and a reload find the page of
// the list and the place on it; a link to the list starts at its beginning. Times on the page go on.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';

const AGENTS = 60;
/** Distance that a person scrolls down the page. */
const DOWN = 400;
/** A time is said anew within seconds. */
const CLOCK_MS = 12_000;

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['viewer']);
  const call = api(acme.liveKey);
  for (let made = 0; made < AGENTS; made += 1) await call('POST', '/agents', { name: `Agent ${made}` });
  const vera = await journey.person('Vera, viewer');
  const { page } = vera;
  const shown = page.getByRole('navigation', { name: 'Pages' }).locator('.num').first();
  const scrolled = () => page.evaluate(() => Math.round(scrollY));
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  const stands = async (where) => {
    await vera.rest();
    assert.equal(await shown.innerText(), where);
  };

  await journey.step('Next keeps the focus, and what is shown until the next page is there', async () => {
    await vera.enter(acme.users.viewer, '/agents');
    await stands('1–25 of 60');
    let go;
    const held = new Promise((open) => { go = open; });
    await page.route('**/api/v1/agents?*', async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Next' }).first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: 'Agents' }).and(page.locator('[aria-busy="true"]')).waitFor();
    await vera.sees('Agent 59');
    assert.equal(await focused(), 'Next');
    go();
    await vera.misses('Agent 59');
    await stands('26–50 of 60');
    assert.equal(await focused(), 'Next');
    await page.unroute('**/api/v1/agents?*');
  });

  await journey.step('the last page keeps it, too, and has no next one', async () => {
    await page.keyboard.press('Enter');
    await vera.misses('Agent 34');
    await stands('51–60 of 60');
    assert.equal(await focused(), 'Next');
    assert.equal(await page.getByRole('button', { name: 'Next' }).first().getAttribute('aria-disabled'), 'true');
    await page.keyboard.press('Enter');
    await stands('51–60 of 60');
    await vera.press('Previous');
    await vera.sees('Agent 34');
    await stands('26–50 of 60');
  });

  await journey.step('Back finds the page of the list, and the place on it', async () => {
    await page.evaluate((down) => scrollTo(0, down), DOWN);
    await vera.follow('Agent 25');
    await vera.heading('Agent 25');
    await vera.rest();
    assert.equal(await scrolled(), 0);
    assert.equal(await page.title(), 'Agent 25 · Agent · Tollgate');
    await page.goBack();
    await vera.sees('Agent 25');
    await stands('26–50 of 60');
    assert.equal(await scrolled(), DOWN);
  });

  await journey.step('so does a reload', async () => {
    await page.reload();
    await vera.sees('Agent 25');
    await stands('26–50 of 60');
    assert.equal(await scrolled(), DOWN);
  });

  await journey.step('another filter and a link to the list start at its beginning', async () => {
    await vera.fill({ Status: 'Active' });
    await vera.sees('Agent 59');
    await stands('1–25');
    await vera.menu('Overview');
    await vera.menu('Agents');
    await vera.sees('Agent 59');
    await stands('1–25 of 60');
    assert.equal(await scrolled(), 0);
  });

  await journey.step('an agent without a wallet is in no list, and is shown below it', async () => {
    await vera.menu('Agents');
    await vera.sees('Agent 59');
    assert.equal(await page.getByRole('heading', { name: 'Agents without a wallet' }).count(), 0);
    const { newAgent } = await call('POST', '/agents/mistyped/virtual-keys', {});
    assert.equal(newAgent, true);
    await vera.menu('Overview');
    await vera.menu('Agents');
    await vera.sees(vera.section('Agents without a wallet').getByRole('link', { name: 'mistyped' }));
    await vera.follow('mistyped');
    await vera.heading('mistyped');
  });

  await journey.step('what is said of a time goes on', async () => {
    await vera.menu('Overview');
    await vera.rest();
    const said = page.getByText(/^As of /).locator('time');
    const before = await said.innerText();
    await page.waitForFunction((old) => [...document.querySelectorAll('.hint time')].every((one) => one.innerText !== old), before, { timeout: CLOCK_MS });
  });
});
