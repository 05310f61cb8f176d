// Two people edit the policy of one agent at the same time: the later one is warned and shown both, nothing is lost
// without a person's word.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner', 'admin']);
  const bot = await worker(acme, 'Invoice reader');
  const limits = async () => {
    const { policies } = await api(acme.liveKey)('GET', `/policies?agentId=${bot.id}`);
    return [policies[0].maxSpendPerDay, policies[0].maxSpendPerMonth];
  };
  const [ada, max] = [await journey.person('Ada'), await journey.person('Max')];
  await ada.enter(acme.users.owner, `/agents/${bot.id}`);
  await max.enter(acme.users.admin, `/agents/${bot.id}`);

  await journey.step('both open the form, and the first one saves', async () => {
    for (const who of [ada, max]) await who.press('Edit policy');
    await ada.fill({ 'Per day': '7' }, ada.dialog());
    await max.fill({ 'Per month': '99' }, max.dialog());
    await ada.press('Save policy', ada.dialog());
    await ada.dialog().waitFor({ state: 'hidden' });
    assert.deepEqual(await limits(), [7, 50]);
  });

  await journey.step('the second one is warned, sees both, and has changed nothing', async () => {
    max.expect(412, `/api/v1/policies/${bot.id}`);
    await max.press('Save policy', max.dialog());
    await max.sees('Changed meanwhile.', max.dialog());
    await max.sees(max.row('$7.00', max.dialog()).getByText('$5.00'));
    await max.sees(max.row('$50.00', max.dialog()).getByText('$99.00'));
    await max.look('warned');
    assert.deepEqual(await limits(), [7, 50]);
  });

  await journey.step('with what stands now, the second one changes only what was meant', async () => {
    await max.press('Take theirs', max.dialog());
    await max.fill({ 'Per month': '99' }, max.dialog());
    await max.press('Save policy', max.dialog());
    await max.dialog().waitFor({ state: 'hidden' });
    assert.deepEqual(await limits(), [7, 99]);
  });

  await journey.step('and can put theirs aside, knowingly', async () => {
    for (const who of [ada, max]) {
      await who.page.reload();
      await who.press('Edit policy');
    }
    await max.fill({ 'Per day': '8' }, max.dialog());
    await max.press('Save policy', max.dialog());
    await max.dialog().waitFor({ state: 'hidden' });
    ada.expect(412, `/api/v1/policies/${bot.id}`);
    await ada.fill({ 'Per day': '9' }, ada.dialog());
    await ada.press('Save policy', ada.dialog());
    await ada.press('Save mine over theirs', ada.dialog());
    await ada.dialog().waitFor({ state: 'hidden' });
    assert.deepEqual(await limits(), [9, 99]);
  });
});
