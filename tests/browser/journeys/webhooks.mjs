// A webhook whose receiver fails: its attempts are listed, a test can be sent, and what was lost is sent again when the
// receiver works. On the free plan the page shows the way to a plan that has webhooks.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account, operate } from '../kit/stage.mjs';
import { receiver, worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['admin']);
  const bot = await worker(acme, 'Invoice reader');
  const hook = await receiver(500, 'the receiver is out of order');
  const ada = await journey.person('Ada');
  await ada.enter(acme.users.admin);

  await journey.step('a webhook is made; a fault is reported beside its field', async () => {
    await ada.menu('Webhooks');
    await ada.press('Create webhook');
    await ada.fill({ URL: 'no address', Description: 'Pager', Secret: 'a secret that is long enough' }, ada.dialog());
    await ada.press('Create webhook', ada.dialog());
    await ada.sees('Choose at least one event.', ada.dialog());
    await ada.dialog().getByLabel(/agent\.frozen/).check();
    ada.expect(400, '/api/v1/webhooks');
    await ada.press('Create webhook', ada.dialog());
    await ada.sees(/^url /i, ada.dialog());
    await ada.look('create');
    await ada.fill({ URL: hook.url }, ada.dialog());
    await ada.press('Create webhook', ada.dialog());
    await ada.sees('Nothing was delivered yet.');
  });

  await journey.step('a delivery that fails shows each attempt, and what the receiver said', async () => {
    await api(acme.liveKey)('POST', `/agents/${bot.id}/freeze`);
    await ada.again('a failed delivery', async () => (await ada.row('agent.frozen').getByText('failed').count()) > 0);
    await ada.press(/^Attempts at agent\.frozen/);
    await ada.sees('answered 500', ada.page.getByRole('table', { name: 'Attempts at agent.frozen' }));
    assert.equal(await ada.page.getByRole('table', { name: 'Attempts at agent.frozen' }).getByText('answered 500').count(), 3);
    await ada.sees('the receiver is out of order');
    await ada.look('failing');
    assert.equal(hook.got.length, 3);
  });

  await journey.step('a test is sent, and fails as well', async () => {
    await ada.press('Send test');
    await ada.sees(ada.row('webhook.test'));
    await ada.again('a failed test', async () => (await ada.row('webhook.test').getByText('failed').count()) > 0);
  });

  await journey.step('Overview names the failing webhook, and leads there', async () => {
    await ada.menu('Overview');
    await ada.follow(/^Webhook failing/);
    await ada.sees('Deliveries');
  });

  await journey.step('a delivery is sent again to a receiver that works now', async () => {
    hook.status = 200;
    const before = hook.got.length;
    await ada.press(/^Redeliver agent\.frozen/);
    await ada.press('Redeliver', ada.dialog());
    await ada.sees(ada.row('agent.frozen').getByText('delivered'));
    const again = hook.got.slice(before).filter(({ body }) => body.includes('agent.frozen'));
    assert.equal(again.length, 1);
    assert.equal(again[0].headers['webhook-id'], hook.got[0].headers['webhook-id'], 'the same delivery');
    await ada.look('delivered');
  });

  await journey.step('a plan without webhooks shows the way to one that has them', async () => {
    const small = await account('Small Shop', 'free', ['owner']);
    const sam = await journey.person('Sam, on the free plan');
    await sam.enter(small.users.owner, '/webhooks');
    await sam.sees('They come with the plan Startup.');
    await sam.isNotOffered('button', 'Create webhook');
    await sam.look('plan');
    await sam.follow('Upgrade to Startup');
    await sam.heading('Plan and usage');
    await operate('account', 'set-plan', '--account', small.id, '--plan', 'startup');
    await sam.menu('Webhooks');
    await sam.sees(sam.page.getByRole('button', { name: 'Create webhook' }));
  });
});
