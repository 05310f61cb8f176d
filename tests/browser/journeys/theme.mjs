// The theme: the system's, until light or dark is chosen in this browser; it is there before the first drawing, in
// every tab, and can be chosen with the keyboard.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const ada = await journey.person('Ada', { colorScheme: 'light' });
  const { page } = ada;
  const theme = page.getByRole('group', { name: 'Theme' });
  const choice = (name) => theme.getByRole('radio', { name });
  /** Whether a page is drawn dark: by the brightness of what it is drawn on. */
  const isDark = (of = page) => of.evaluate(() => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
    return red + green + blue < 200;
  });

  await journey.step('it follows the system', async () => {
    await ada.enter(acme.users.owner);
    assert.equal(await choice('System').isChecked(), true);
    assert.equal(await isDark(), false);
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.equal(await isDark(), true);
    await page.emulateMedia({ colorScheme: 'light' });
  });

  await journey.step('dark is chosen with the keyboard, against the system', async () => {
    await choice('System').focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await choice('Light').isChecked(), true);
    await page.keyboard.press('ArrowRight');
    assert.equal(await choice('Dark').isChecked(), true);
    assert.equal(await isDark(), true);
    await ada.look('dark-chosen');
    assert.equal(await isDark(), true, 'whatever the system says');
  });

  await journey.step('it is remembered, and set before anything is drawn', async () => {
    // The rest of the head waits for this script, which is neither a module nor deferred.
    const [first] = await page.evaluate(() => [...document.head.querySelectorAll('script, link[rel="stylesheet"]')].map((one) => [one.tagName, one.src ?? '', one.type ?? '', one.async, one.defer]));
    assert.equal(first[0], 'SCRIPT');
    assert.match(first[1], /\/js\/theme\.js$/);
    assert.deepEqual(first.slice(2), ['', false, false]);
    await page.addInitScript(() => {
      new MutationObserver((_, watch) => {
        if (!document.body) return;
        window.themeAtBody = document.documentElement.dataset.theme;
        watch.disconnect();
      }).observe(document, { childList: true, subtree: true });
    });
    await page.reload();
    await ada.heading('Overview');
    assert.equal(await page.evaluate(() => window.themeAtBody), 'dark');
    assert.equal(await isDark(), true);
    await ada.press('Sign out');
    await ada.heading('Sign in');
    assert.equal(await isDark(), true);
  });

  await journey.step('another tab follows', async () => {
    await ada.signIn(acme.users.owner);
    await ada.heading('Overview');
    const other = await ada.context.newPage();
    await other.goto(page.url());
    await other.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    assert.equal(await isDark(other), true);
    await choice('System').check();
    await other.waitForFunction(() => !document.documentElement.dataset.theme);
    assert.equal(await isDark(other), false);
    assert.equal(await other.getByRole('radio', { name: 'System' }).isChecked(), true);
    assert.deepEqual(await page.evaluate(() => ({ ...localStorage })), {});
    await other.close();
  });
});
