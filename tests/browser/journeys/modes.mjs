// Live and test: nobody can take one for the other, and nothing of one is seen in the other.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const bot = await worker(acme, 'The real one');
  const ada = await journey.person('Ada');
  const mode = (name) => ada.page.getByRole('group', { name: 'Mode' }).getByRole('button', { name });
  await ada.enter(acme.users.owner, '/agents');
  const title = () => ada.page.title();

  await journey.step('live mode shows what is live', async () => {
    await ada.sees('The real one');
    assert.doesNotMatch(await title(), /TEST/);
    assert.equal(await mode('Live').getAttribute('aria-pressed'), 'true');
  });

  await journey.step('test mode cannot be missed, and has none of it', async () => {
    await mode('Test').click();
    await ada.sees('Test mode.');
    await ada.sees('There is no agent yet.');
    assert.match(await title(), /^\[TEST\]/);
    await ada.look('test');
    await ada.press('Create agent');
    await ada.fill({ Name: 'A toy' }, ada.dialog());
    await ada.press('Create agent', ada.dialog());
    await ada.heading(/A toy/);
  });

  await journey.step('an address of one mode finds nothing in the other', async () => {
    ada.expect(404, /^\/api\/v1\//);
    await ada.open(`/test/agents/${bot.id}`);
    await ada.sees('Not found');
    await ada.misses('The real one');
  });

  await journey.step('the address says the mode: to a reload, and to another tab', async () => {
    await ada.open('/test/agents');
    await ada.page.reload();
    await ada.sees('Test mode.');
    await ada.sees('A toy');
    for (const [address, shown, banners] of [[ada.page.url(), 'A toy', 1], [ada.page.url().replace('/test', ''), 'The real one', 0]]) {
      const other = await ada.context.newPage();
      await other.goto(address);
      await other.getByText(shown).first().waitFor();
      assert.equal(await other.getByText('Test mode.').count(), banners);
      await other.close();
    }
  });

  await journey.step('a link that is opened in a new tab stays in its mode', async () => {
    const link = ada.page.getByRole('link', { name: 'Wallets' });
    const [other] = await Promise.all([ada.context.waitForEvent('page'), link.click({ modifiers: ['ControlOrMeta'] })]);
    await other.getByText('Test mode.').first().waitFor();
    await other.getByRole('heading', { level: 1, name: 'Wallets' }).waitFor();
    await other.close();
  });

  await journey.step('Back returns to the mode of the page before', async () => {
    await mode('Live').click();
    await ada.sees('The real one');
    await ada.page.goBack();
    await ada.sees('A toy');
    await ada.sees('You are now in test mode.');
  });

  await journey.step('signing in leads to the mode that was asked for', async () => {
    await ada.press('Sign out');
    await ada.heading('Sign in');
    await ada.page.goto('about:blank');
    await ada.open('/test/agents');
    await ada.signIn(acme.users.owner);
    await ada.sees('A toy');
    await ada.sees('Test mode.');
  });

  await journey.step('a detail page gives way to its list when the mode changes', async () => {
    await ada.follow('A toy');
    await ada.heading(/A toy/);
    await mode('Live').click();
    await ada.heading('Agents');
    await ada.sees('The real one');
    await ada.misses('A toy');
    assert.doesNotMatch(await title(), /TEST/);
  });
});
