// The owner's first hour: signs in, makes an agent that may call, sees what it spends, caps it, reads why it was
// denied, freezes it and lets it go on.

import assert from 'node:assert/strict';
import { chat } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['owner']);
  const ada = await journey.person('Ada');
  let key = '';
  let spent = '';

  await journey.step('a wrong password is reported in the form', async () => {
    ada.expect(401, '/api/user/login');
    await ada.open('/');
    await ada.heading('Sign in');
    await ada.signIn(acme.users.owner, 'not my password');
    await ada.sees('Email or password is not right.', ada.page.getByRole('form', { name: 'Sign in' }));
    await ada.look('wrong-password');
    await ada.signIn(acme.users.owner);
    await ada.heading('Overview');
    await ada.sees('First steps');
    await ada.look('empty-overview');
  });

  await journey.step('an agent is made; a form without a name says so beside it', async () => {
    await ada.menu('Agents');
    await ada.sees('There is no agent yet.');
    await ada.look('no-agents');
    await ada.press('Create agent');
    await ada.press('Create agent', ada.dialog());
    await ada.sees('Name is needed.', ada.dialog());
    await ada.look('create-agent');
    await ada.fill({ Name: 'Invoice reader', Description: 'Reads invoices' }, ada.dialog());
    await ada.press('Create agent', ada.dialog());
    await ada.heading(/Invoice reader/);
    await ada.sees('No policy holds for this agent.');
  });

  await journey.step('a policy without limits lets it call', async () => {
    await ada.press('Set a policy');
    await ada.fill({ Name: 'Trial' }, ada.dialog());
    await ada.look('policy');
    await ada.press('Save policy', ada.dialog());
    await ada.sees('Trial', ada.section('Policy'));
  });

  await journey.step('its provider key is stored', async () => {
    await ada.tab('Keys');
    await ada.press('Store provider key');
    await ada.fill({ 'Provider’s API key': 'sk-test-provider-key' }, ada.dialog());
    await ada.press('Store key', ada.dialog());
    await ada.sees(ada.row('openai').getByText('…-key'));
    assert.ok(!(await ada.page.content()).includes('sk-test-provider-key'), 'the provider key is shown nowhere');
  });

  await journey.step('a virtual key is shown once, with lines to copy', async () => {
    await ada.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await ada.press('Create virtual key');
    await ada.fill({ Name: 'Laptop' }, ada.dialog());
    await ada.press('Create key', ada.dialog());
    const shown = ada.dialog().getByText(/^vk_live_[0-9a-f]{64}$/);
    key = await shown.innerText();
    await ada.look('virtual-key');
    await ada.press('Copy the virtual key', ada.dialog());
    const copied = () => ada.page.evaluate(() => navigator.clipboard.readText());
    assert.equal(await copied(), key);
    await ada.press('Copy both lines', ada.dialog());
    assert.match(await copied(), new RegExp(`OPENAI_BASE_URL=http://127.0.0.1:\\d+/v1\\n.*OPENAI_API_KEY=${key}$`));
    await ada.press('I have stored it', ada.dialog());
    await ada.misses(shown);
    assert.ok(!(await ada.page.content()).includes(key), 'the key stands nowhere any more');
    await ada.sees(ada.row('Laptop'));
  });

  await journey.step('a call passes, and what it cost is on Overview and on the agent', async () => {
    const answer = await chat(key, { run: 'first-run' });
    assert.equal(answer.status, 200);
    spent = `$${answer.headers.get('x-service-actual-usd')}`;
    await ada.menu('Overview');
    for (const tile of ['Spend today', 'Spend this month']) await ada.sees(ada.section(tile).getByTitle(`Exactly ${spent}`));
    const chart = ada.page.getByRole('img', { name: `${spent} over 30 days, in calls and spends` });
    await ada.again('the call in the chart', async () => (await chart.count()) > 0);
    await ada.follow('Invoice reader');
    await ada.sees(spent, ada.section('Spend against caps'));
    await ada.tab('Runs');
    await ada.sees(ada.row('first-run'));
  });

  await journey.step('a daily cap denies the next call, and the dashboard says which check it was', async () => {
    await ada.tab('Caps and spend');
    await ada.press('Edit policy');
    await ada.fill({ 'Per day': '0.0001' }, ada.dialog());
    await ada.press('Save policy', ada.dialog());
    await ada.sees('of $0.0001');
    const answer = await chat(key);
    assert.deepEqual([answer.status, answer.json.reason], [402, 'daily_limit']);
    await ada.tab('Decisions');
    await ada.again('the denial', async () => (await ada.page.getByText('Daily cap').count()) > 0);
    await ada.look('decisions');
    await ada.row('Daily cap').getByRole('link').click();
    await ada.heading(/Denied call/);
    await ada.sees(answer.json.id);
    await ada.sees('✕ denies', ada.row('Daily cap'));
    await ada.sees('$0.0001', ada.row('Daily cap'));
  });

  await journey.step('a frozen agent is refused, and an unfrozen one calls again', async () => {
    await ada.menu('Agents');
    await ada.follow('Invoice reader');
    await ada.press('Edit policy');
    await ada.fill({ 'Per day': '' }, ada.dialog());
    await ada.press('Save policy', ada.dialog());
    await ada.dialog().waitFor({ state: 'hidden' });
    await ada.press('Freeze');
    await ada.look('freeze-asked');
    await ada.press('Cancel', ada.dialog());
    assert.equal((await chat(key)).status, 200, 'a question alone freezes nothing');
    await ada.press('Freeze');
    await ada.press('Freeze agent', ada.dialog());
    await ada.sees(/This agent is frozen/);
    const refused = await chat(key);
    assert.deepEqual([refused.status, refused.json.reason], [403, 'frozen']);
    await ada.press('Unfreeze');
    await ada.press('Unfreeze agent', ada.dialog());
    await ada.misses(/This agent is frozen/);
    assert.equal((await chat(key)).status, 200);
  });
});
