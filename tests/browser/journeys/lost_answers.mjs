// Answers that are lost, and requests that are sent again: money moves once, a form keeps what was typed, and the
// receiver of a webhook keeps a secret that it knows.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { DESK, PHONE } from '../kit/look.mjs';
import { holdAnswer, loseAnswer, refuse, replaceAnswer } from '../kit/lost.mjs';
import { eventually } from '../kit/person.mjs';
import { account } from '../kit/stage.mjs';
import { balancesOf, deposit, receiver, worker } from '../kit/fixture.mjs';

const NOT_CONFIRMED = { error: 'The store did not confirm in time.', code: 'NOT_CONFIRMED' };
const LIMITED = { error: 'All requests that are allowed in this window are used up.', code: 'API_KEY_RATE_LIMITED' };
const TRANSFER = '/api/v1/wallet/transfer';
const OLD_SECRET = 'the secret that the receiver has';

/** The bodies of the requests that the person's page sends from now on with this method to this path. */
function bodiesSent(person, method, path) {
  const bodies = [];
  person.page.on('request', (request) => {
    if (request.method() === method && new URL(request.url()).pathname === path) bodies.push(request.postDataJSON());
  });
  return bodies;
}

/** Returns whether one of the delivery's signatures is made with the bytes of this key (Standard Webhooks). */
function isSignedWith(key, { headers, body }) {
  const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const signature = `v1,${createHmac('sha256', key).update(text).digest('base64')}`;
  return headers['webhook-signature'].split(' ').includes(signature);
}

/** Returns whether the middle of an element can be seen: it is on the screen, and nothing lies over it. */
const isInView = (locator) => locator.evaluate((element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
});

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const bot = await worker(acme, 'Buyer');
  await deposit(acme, 'user', 100);
  const call = api(acme.liveKey);
  const balances = () => balancesOf(acme);
  const ada = await journey.person('Ada');
  await ada.enter(acme.users.owner, '/wallets');
  const transfer = ada.dialog('Transfer');
  const send = async (amount) => {
    await ada.fill({ Amount: String(amount) }, transfer);
    await ada.press('Transfer…', transfer);
    await ada.press(`Transfer $${amount}.00`, ada.dialog(`Transfer $${amount}.00?`));
  };

  await journey.step('a transfer whose answer is lost happens once, also when it is refused in between', async () => {
    await ada.press('Transfer');
    await ada.fill({ From: /^Account wallet/, To: /^Buyer/ }, transfer);
    await loseAnswer(ada, TRANSFER);
    await send(10);
    await ada.sees(/safe to send again/, transfer);
    assert.deepEqual(await balances(), [90, 10]);
    await refuse(ada, TRANSFER, 429, LIMITED);
    await send(10);
    await ada.sees(/used up\..*not known.*safe to send again/, transfer);
    await ada.look('refused-in-between');
    await send(10);
    await transfer.waitFor({ state: 'hidden' });
    await ada.sees(/An earlier request had done it; nothing was repeated\./);
    assert.deepEqual(await balances(), [90, 10]);
  });

  await journey.step('with other values it says that the earlier request arrived, and then sends these', async () => {
    await ada.press('Transfer');
    await ada.fill({ From: /^Account wallet/, To: /^Buyer/ }, transfer);
    await loseAnswer(ada, TRANSFER);
    await send(5);
    await ada.sees(/safe to send again/, transfer);
    ada.expect(422, TRANSFER);
    await send(6);
    await ada.sees(/^Your earlier request, with other values, arrived/, transfer);
    assert.deepEqual(await balances(), [85, 15]);
    await send(6);
    await transfer.waitFor({ state: 'hidden' });
    assert.deepEqual(await balances(), [79, 21]);
  });

  await journey.step('a spend that is not confirmed in time keeps its form, and happens once', async () => {
    await ada.menu('Intents');
    await ada.press('Spend');
    const form = ada.dialog('Spend');
    const send = async () => {
      await ada.press('Spend…', form);
      await ada.press('Spend $2.00', ada.dialog('Spend $2.00?'));
    };
    const typed = { Agent: bot.id, Amount: '2', Recipient: 'Books Ltd', Description: 'A book' };
    await ada.fill(typed, form);
    await replaceAnswer(ada, '/api/v1/spend', 503, { ...NOT_CONFIRMED, intent_id: 'int_0' });
    await send();
    await ada.sees(/safe to send again/, form);
    assert.equal(await form.getByLabel(/^Description/).inputValue(), 'A book');
    await ada.look('spend-not-confirmed');
    await send();
    await ada.heading(/^Spend of \$2\.00/);
    await ada.sees(/An earlier request had done it; nothing was repeated\./);
    assert.deepEqual(await balances(), [79, 19]);
  });

  await journey.step('a spend with a field that is not valid keeps its form, and the error stands at the field', async () => {
    await ada.menu('Intents');
    await ada.press('Spend');
    const form = ada.dialog('Spend');
    await ada.fill({ Agent: 'nobody', Amount: '1', Description: 'A pen' }, form);
    ada.expect(404, '/api/v1/spend');
    await ada.press('Spend…', form);
    await ada.press('Spend $1.00', ada.dialog('Spend $1.00?'));
    await ada.sees(/^There is no agent `nobody`/, form);
    assert.equal(await form.getByLabel('Agent').getAttribute('aria-invalid'), 'true');
    assert.equal(await form.getByLabel(/^Description/).inputValue(), 'A pen');
    await ada.fill({ Agent: bot.id }, form);
    await ada.press('Spend…', form);
    await ada.press('Spend $1.00', ada.dialog('Spend $1.00?'));
    await ada.heading(/^Spend of \$1\.00/);
    assert.deepEqual(await balances(), [79, 18]);
  });

  await journey.step('a spend that is refused leads to its intent', async () => {
    await ada.menu('Intents');
    await ada.press('Spend');
    await ada.fill({ Agent: bot.id, Amount: '7', Description: 'A library' }, ada.dialog('Spend'));
    await ada.press('Spend…', ada.dialog('Spend'));
    ada.expect(402, '/api/v1/spend');
    await ada.press('Spend $7.00', ada.dialog('Spend $7.00?'));
    await ada.heading(/^Spend of \$7\.00/);
    await ada.sees('blocked', ada.page.getByRole('main'));
  });

  await journey.step('a secret whose answer is lost is sent again as it was, and the receiver keeps the one it has', async () => {
    const hook = await receiver(200);
    const { webhook } = await call('POST', '/webhooks', { url: hook.url, events: ['agent.frozen'], secret: OLD_SECRET });
    await ada.open(`/webhooks/${webhook.id}`);
    await ada.press('Rotate secret');
    const form = ada.dialog('Rotate the secret?');
    const path = `/api/v1/webhooks/${webhook.id}`;
    const bodies = bodiesSent(ada, 'PATCH', path);
    await loseAnswer(ada, path);
    await ada.press('Rotate secret', form);
    await ada.sees(/not known.*Send it again/, form);
    await ada.look('secret-not-known');
    await ada.press('Rotate secret', form);
    const shown = await ada.dialog().getByText(/^whsec_/).innerText();
    await ada.press('I have stored it', ada.dialog());
    assert.deepEqual(bodies, [{ secret: shown }, { secret: shown }]);
    await ada.press('Send test');
    await eventually('the test', () => hook.got.length > 0);
    assert.ok(isSignedWith(Buffer.from(shown.replace('whsec_', ''), 'base64'), hook.got[0]), 'by the new secret');
    assert.ok(isSignedWith(OLD_SECRET, hook.got[0]), 'by the one that the receiver has');
  });

  await journey.step('a webhook whose answer is lost may exist: the form says so, and a second one has the same secret', async () => {
    const hook = await receiver(200);
    await ada.menu('Webhooks');
    await ada.press('Create webhook');
    const form = ada.dialog('Create webhook');
    await ada.fill({ URL: hook.url, Description: 'Pager' }, form);
    await form.getByLabel(/agent\.frozen/).check();
    const bodies = bodiesSent(ada, 'POST', '/api/v1/webhooks');
    await loseAnswer(ada, '/api/v1/webhooks');
    // The form is longer than a phone.
    await ada.page.setViewportSize(PHONE);
    await ada.press('Create webhook', form);
    await ada.sees(/not known.*second webhook/, form);
    await ada.rest();
    assert.ok(await isInView(form.getByRole('alert')), 'the message is in view');
    await ada.page.setViewportSize(DESK);
    await ada.look('webhook-not-known');
    await ada.press('Create webhook', form);
    const shown = await ada.dialog().getByText(/^whsec_/).innerText();
    await ada.press('I have stored it', ada.dialog());
    assert.deepEqual(bodies.map(({ secret }) => secret), [shown, shown]);
  });

  await journey.step('a form cannot be closed while its request is under way, and shows the outcome', async () => {
    await ada.menu('Wallets');
    await ada.press('Transfer');
    await ada.fill({ From: /^Account wallet/, To: /^Buyer/ }, transfer);
    const before = await balances();
    const answer = await holdAnswer(ada, TRANSFER, 503, NOT_CONFIRMED);
    await send(1);
    await eventually('the transfer', async () => (await balances())[0] === before[0] - 1);
    // Without `force`, a press would wait until the button is enabled.
    for (const name of ['Close', 'Cancel']) await transfer.getByRole('button', { name }).click({ force: true });
    for (const key of ['Escape', 'Escape']) await ada.page.keyboard.press(key);
    assert.ok(await transfer.isVisible(), 'the form is open');
    answer();
    await ada.sees(/safe to send again/, transfer);
    await send(1);
    await transfer.waitFor({ state: 'hidden' });
    assert.equal((await balances())[0], before[0] - 1);
  });

  await journey.step('an outcome that is not known reaches the person also on another page', async () => {
    await ada.menu('Intents');
    await ada.menu('Wallets');
    await ada.press('Transfer');
    await ada.fill({ From: /^Account wallet/, To: /^Buyer/ }, transfer);
    const [before] = await balances();
    const answer = await holdAnswer(ada, TRANSFER, 503, NOT_CONFIRMED);
    await send(1);
    await eventually('the transfer', async () => (await balances())[0] === before - 1);
    await ada.page.goBack();
    await ada.heading('Intents');
    answer();
    await ada.sees(/did not confirm/, ada.page.getByRole('status', { name: 'Results' }));
  });
});
