// From an agent to its first call: the page names missing parts before the call, makes a key for the snippets and keeps
// it nowhere, and shows the program's call without a reload.

import assert from 'node:assert/strict';
import { api, chat } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account, plan } from '../kit/stage.mjs';

/** Agents that a list offers, the newest. */
const LISTED = 200;
const CLIENTS = ['curl', 'Python', 'Node.js', 'LangChain', 'LiteLLM', 'Codex'];

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner', 'viewer']);
  const call = api(acme.liveKey);
  const ada = await journey.person('Ada');
  let agent;
  let key = '';

  await journey.step('without an agent it says what comes first', async () => {
    await ada.enter(acme.users.owner, '/connect');
    await ada.sees('There is no agent yet.');
  });

  await journey.step('obstacles of a call are shown before it is made', async () => {
    ({ agent } = await call('POST', '/agents', { name: 'Invoice reader' }));
    await ada.page.reload();
    await ada.sees('No provider key.');
    await ada.sees(ada.page.getByRole('link', { name: 'Store the provider’s key' }));
    await call('POST', `/agents/${agent.id}/provider-keys`, { provider: 'openai', apiKey: 'sk-test-provider-key' });
    await ada.press('Ask again');
    await ada.sees('No cap in force.');
    await call('POST', `/policies/${agent.id}`, { name: 'Careful', maxSpendPerDay: 5 });
    await ada.press('Ask again');
    await ada.misses('No cap in force.');
    await ada.sees('No active virtual key.');
    await ada.misses(/^A call would be approved/);
    await ada.look('no-key');
    await ada.press('Make one in step 1');
    await ada.page.waitForFunction(() => document.activeElement.textContent.trim() === 'Create a virtual key');
  });

  await journey.step('a key is made for the snippets, and each client has its own', async () => {
    await ada.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = () => ada.page.evaluate(() => navigator.clipboard.readText());
    await ada.press('Create a virtual key');
    await ada.sees(/stands below until you leave this page/);
    await ada.sees('A call would be approved now. Nothing was charged for asking.');
    await ada.press('Copy the line for the key');
    [, key] = /^export TOLLGATE_KEY=(vk_live_[0-9a-f]{64})$/.exec(await copied());
    await ada.press('Copy the base URL');
    assert.equal(await copied(), `${plan.edge}/v1`);
    await ada.look('key');
    for (const client of CLIENTS) {
      await ada.tab(client);
      const panel = ada.page.getByRole('tabpanel', { name: client });
      const texts = await panel.locator('pre').allInnerTexts();
      const snippet = texts.find((text) => text.includes(`${plan.edge}/v1`));
      assert.ok(snippet?.includes('TOLLGATE_KEY') && !texts.join().includes(key), `${client}: ${texts}`);
      await panel.getByRole('button', { name: /^Copy the snippet/ }).first().click();
      assert.equal((await copied()).trim(), texts[0].trim());
    }
    await ada.look('codex');
    await ada.fill({ Model: 'a"b' });
    await ada.page.keyboard.press('Tab');
    await ada.sees(/^The snippets keep gpt-4o-mini/);
    await ada.fill({ Model: 'gpt-4o' });
    await ada.page.keyboard.press('Tab');
    await ada.sees(/^model = "gpt-4o"/);
  });

  await journey.step('the call of the program appears, approved or denied', async () => {
    await ada.sees(/^Waiting for a call of/);
    // A first attempt to load its decision fails: the call still appears.
    const decision = /\/decisions\/(?!dry-run)/;
    const problem = { error: 'Later.', code: 'SERVICE_UNAVAILABLE' };
    ada.expect(503, decision);
    await ada.page.route(decision, (route) => route.fulfill({ status: 503, json: problem }), { times: 1 });
    assert.equal((await chat(key)).status, 200);
    const arrived = ada.section('The call that arrived');
    await ada.sees(/^Approved\. It was estimated at/, arrived);
    await ada.sees('9 in, 12 out', arrived);
    await ada.look('arrived');
    await call('POST', `/agents/${agent.id}/freeze`);
    assert.equal((await chat(key)).status, 403);
    await ada.sees('This agent is frozen.', arrived);
    await ada.sees('Agent frozen', arrived);
    await ada.follow('Open the decision', arrived);
    await ada.heading(/Denied call/);
  });

  await journey.step('the key stands nowhere when the page was left', async () => {
    await ada.menu('Connect');
    await ada.sees('export TOLLGATE_KEY=<your virtual key>');
    const kept = await ada.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.documentElement.outerHTML]));
    assert.ok(!kept.includes(key));
  });

  await journey.step('the agent is the one that the address names, however many are newer; never another one', async () => {
    for (let made = 0; made <= LISTED; made += 1) await call('POST', '/agents', { name: `Newer ${made}` });
    const isChosen = (name) => ada.page.getByRole('combobox', { name: 'Agent', exact: true })
      .and(ada.page.locator(`:has(option:checked:text-is("${name}"))`)).waitFor();
    await ada.open(`/connect?agent=${agent.id}`);
    await ada.page.reload();
    await ada.sees('Waiting for a call of Invoice reader.');
    await isChosen('Invoice reader');
    await ada.fill({ 'Find an agent': 'Newer 0' });
    await ada.page.getByRole('option', { name: 'Newer 0', exact: true }).waitFor({ state: 'attached' });
    await ada.fill({ Agent: 'Newer 0' });
    await ada.sees('Waiting for a call of Newer 0.');
    await ada.look('found');
    ada.expect(404, '/api/v1/agents/agent-of-nobody');
    await ada.open('/connect?agent=agent-of-nobody');
    await ada.sees('There is no such agent.');
    await ada.isNotOffered('button', 'Create a virtual key');
    await ada.look('nobody');
  });

  await journey.step('a viewer finds the snippets and makes no key', async () => {
    const vera = await journey.person('Vera, viewer');
    await vera.enter(acme.users.viewer, '/connect');
    await vera.sees('Virtual keys are made by an admin or owner of the account.');
    await vera.isNotOffered('button', 'Create a virtual key');
    await vera.page.getByRole('group', { name: 'Mode' }).getByRole('button', { name: 'Test' }).click();
    await vera.sees('Calls and their keys exist in live mode only.');
  });
});
