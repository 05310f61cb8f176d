// Answers that are lost, and requests that are sent again: money moves once, and a form keeps what was typed.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { loseAnswer, refuse, replaceAnswer } from '../kit/lost.mjs';
import { account } from '../kit/stage.mjs';
import { deposit, worker } from '../kit/fixture.mjs';

const NOT_CONFIRMED = { error: 'The store did not confirm in time.', code: 'NOT_CONFIRMED' };
const LIMITED = { error: 'All requests that are allowed in this window are used up.', code: 'API_KEY_RATE_LIMITED' };
const TRANSFER = '/api/v1/wallet/transfer';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const bot = await worker(acme, 'Buyer');
  await deposit(acme, 'user', 100);
  const call = api(acme.liveKey);
  const balances = async () => {
    const { user_wallet: own, agent_wallets: agents } = await call('GET', '/wallet');
    return [own.usdc, agents[0].usdc];
  };
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
});
