// With the keyboard alone: signs in, finds an agent, freezes it after thinking twice.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

/** More stops than any page has. */
const STOPS_MAX = 120;

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const bot = await worker(acme, 'Invoice reader');
  const status = async () => (await api(acme.liveKey)('GET', `/agents/${bot.id}`)).agent.status;
  const ada = await journey.person('Ada');
  const { page } = ada;
  const press = (key) => page.keyboard.press(key);

  /** The focused element, as a screen reader would read it; and whether its focus is visible. */
  const focused = () =>
    page.evaluate(() => {
      const one = document.activeElement;
      const label = one.getAttribute('aria-label') ?? one.labels?.[0]?.innerText ?? one.innerText ?? '';
      const { outlineStyle, boxShadow } = getComputedStyle(one);
      return { label: label.trim(), seen: outlineStyle !== 'none' || boxShadow !== 'none' };
    });

  /** Presses Tab until the focus is on what is called so. */
  const tabTo = async (wanted) => {
    const met = [];
    for (let stops = 0; stops < STOPS_MAX; stops += 1) {
      await press('Tab');
      const { label, seen } = await focused();
      if (wanted.test(label)) return assert.ok(seen, `the focus on ${label} cannot be seen`);
      met.push(label);
    }
    throw new Error(`Tab never came to ${wanted}, but to ${met.join(' | ')}`);
  };

  await journey.step('signs in', async () => {
    await ada.open('/agents');
    await tabTo(/^Email$/);
    await page.keyboard.type(acme.users.owner.email);
    await tabTo(/^Password$/);
    await page.keyboard.type(acme.users.owner.password);
    await press('Enter');
    await ada.heading('Agents');
  });

  await journey.step('skips the navigation and opens the agent', async () => {
    await page.reload();
    await ada.heading('Agents');
    await tabTo(/^Skip to content$/);
    await press('Enter');
    await tabTo(/^Invoice reader/);
    await press('Enter');
    await ada.heading(/Invoice reader/);
    assert.match((await focused()).label, /Invoice reader/, 'the focus is on the heading of the new page');
  });

  await journey.step('Escape leaves the question, and the focus where it was', async () => {
    await tabTo(/^Freeze$/);
    await press('Enter');
    await ada.dialog().waitFor();
    await press('Escape');
    await ada.dialog().waitFor({ state: 'hidden' });
    assert.equal((await focused()).label, 'Freeze');
    assert.equal(await status(), 'active');
  });

  await journey.step('Enter freezes it', async () => {
    await press('Enter');
    await ada.dialog().waitFor();
    await tabTo(/^Freeze agent$/);
    await press('Enter');
    await ada.sees(page.getByRole('button', { name: 'Unfreeze' }));
    assert.equal(await status(), 'frozen');
  });
});
