// The owner's money: a deposit, a transfer that the balance does not cover and one that it does, a spend that waits for
// a person; and an API key, which works until it is revoked.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account, plan } from '../kit/stage.mjs';
import { balancesOf, worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner', 'manager']);
  const bot = await worker(acme, 'Buyer', { policy: { approvalThreshold: 1 } });
  const call = api(acme.liveKey);
  const balances = () => balancesOf(acme);
  const ada = await journey.person('Ada');
  await ada.enter(acme.users.owner, '/wallets');

  await journey.step('a deposit is asked about, and counts once', async () => {
    for (const wanted of [100, 100]) {
      await ada.press('Deposit');
      const form = ada.dialog('Deposit');
      await ada.fill({ Into: /^Account wallet/, Amount: '100', Reference: 'bank-1' }, form);
      await ada.press('Deposit…', form);
      await ada.press('Deposit', ada.dialog('Deposit $100.00?'));
      await form.waitFor({ state: 'hidden' });
      assert.deepEqual(await balances(), [wanted, 0]);
    }
    await ada.sees('$100.00', ada.section('Account wallet'));
  });

  await journey.step('a transfer over the balance is refused in the form; one within it moves the money', async () => {
    await ada.press('Transfer');
    const form = ada.dialog('Transfer');
    await ada.fill({ From: /^Account wallet/, To: /^Buyer/, Amount: '1e3', Memo: 'November' }, form);
    await ada.press('Transfer…', form);
    await ada.sees(/^Give an amount in USD/, form);
    await ada.fill({ Amount: '100.000000001' }, form);
    await ada.press('Transfer…', form);
    ada.expect(400, '/api/v1/wallet/transfer');
    await ada.press('Transfer $100.000000001', ada.dialog('Transfer $100.000000001?'));
    await ada.sees(form.getByRole('alert'));
    await ada.look('not-covered');
    await ada.fill({ Amount: '12.5' }, form);
    await ada.press('Transfer…', form);
    await ada.press('Transfer $12.50', ada.dialog('Transfer $12.50?'));
    await form.waitFor({ state: 'hidden' });
    assert.deepEqual(await balances(), [87.5, 12.5]);
  });

  await journey.step('a question whose page is left by the browser’s Back is answered with no', async () => {
    const before = await balances();
    await ada.menu('Intents');
    await ada.menu('Wallets');
    await ada.press('Deposit');
    await ada.fill({ Into: /^Account wallet/, Amount: '3', Reference: 'bank-2' }, ada.dialog('Deposit'));
    await ada.press('Deposit…', ada.dialog('Deposit'));
    await ada.dialog('Deposit $3.00?').waitFor();
    await ada.page.goBack();
    await ada.heading('Intents');
    await ada.misses(ada.dialog());
    assert.deepEqual(await balances(), before);
  });

  await journey.step('a spend above the threshold waits until a manager approves it', async () => {
    const { intent_id: id } = await call('POST', '/spend', { agent: bot.id, amount: 2.25, description: 'A book' });
    const max = await journey.person('Max, manager');
    await max.enter(acme.users.manager);
    await max.follow(/^Waits for approval/);
    await max.heading(/^Spend of \$2\.25/);
    await max.sees('A book');
    await max.press('Approve');
    await max.look('approve');
    await max.fill({ Reason: 'It is a good one' }, max.dialog());
    await max.press('Approve $2.25', max.dialog());
    await max.sees('settled', max.page.getByRole('main'));
    assert.equal((await call('GET', `/intents/${id}`)).intent.state, 'settled');
    assert.deepEqual(await balances(), [87.5, 10.25]);
    // The hashed text has the id; people read who it was.
    await max.sees(max.section('Timeline').getByTitle(acme.users.manager.id));
  });

  await journey.step('the statement of a wallet is a file', async () => {
    const { walletId } = await call('GET', `/agents/${bot.id}/wallet`);
    await ada.open(`/wallets/${walletId}`);
    const { name, text } = await ada.download(() => ada.press('Download CSV'));
    assert.match(name, /^transactions_.*\.csv$/);
    const [head, ...lines] = text.trim().split(/\r?\n/);
    assert.match(head, /^id,createdAt,walletId,type,direction,amount,/);
    assert.deepEqual(lines.map((line) => line.split(',').slice(3, 6).join(' ')), ['spend out 2.25', 'transfer_in in 12.5']);
  });

  await journey.step('intents are narrowed by state and kind together', async () => {
    await ada.menu('Intents');
    const filter = (name) => ada.page.getByRole('combobox', { name });
    await filter('State').selectOption('settled');
    await filter('Kind').selectOption('spend');
    await ada.sees('A book', ada.page.getByRole('main'));
    await filter('Kind').selectOption('escrow_fund');
    await ada.sees('No intent matches.');
    await ada.press('Show all');
    await ada.sees('A book', ada.page.getByRole('main'));
  });

  await journey.step('a refused spend leads from Overview to itself, and not to the calls', async () => {
    await assert.rejects(call('POST', '/spend', { agent: bot.id, amount: 50, description: 'A library' }));
    await ada.menu('Overview');
    const denials = ada.section('Denials by reason');
    await ada.sees('Daily cap', denials);
    const counted = denials.getByRole('link', { name: 'Daily cap' });
    assert.match(await counted.getAttribute('href'), /from=\d{4}-\d\d-\d\dT00/, 'the calls of the days that are counted');
    await counted.click();
    await ada.sees('No call matches.');
    await ada.follow('intents');
    await ada.sees('A library', ada.page.getByRole('main'));
    await ada.menu('Overview');
    await ada.follow('See the blocked spends');
    await ada.sees('A library', ada.page.getByRole('main'));
  });

  await journey.step('an API key is shown once, works, and ends with its revocation', async () => {
    await ada.menu('API keys');
    await ada.press('Create API key');
    await ada.fill({ Name: 'Nightly' }, ada.dialog());
    await ada.press('Create key', ada.dialog());
    const key = await ada.dialog().getByText(/^svc_live_[0-9a-f]{64}$/).innerText();
    await ada.press('I have stored it', ada.dialog());
    const status = async () => (await fetch(`${plan.base}/api/v1/agents`, { headers: { 'x-api-key': key } })).status;
    assert.equal(await status(), 200);
    await ada.press('Revoke the API key Nightly');
    await ada.press('Revoke key', ada.dialog());
    await ada.sees('revoked', ada.row('Nightly'));
    assert.equal(await status(), 401);
  });
});
