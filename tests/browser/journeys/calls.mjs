// Calls that people can see: which model, run and key cost what; filters that stand in the address, a file, a list that
// is followed; usage over time; and who comes close to a limit, before a call is denied.

import assert from 'node:assert/strict';
import { api, chat, embed, respond } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { DESK, PHONE } from '../kit/look.mjs';
import { account } from '../kit/stage.mjs';
import { deposit, provider, worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['viewer']);
  const call = api(acme.liveKey);
  const vera = await journey.person('Vera, viewer');
  const rows = () => vera.page.getByRole('table', { name: 'Calls' }).getByRole('row').count();
  let reader;
  let cost = '';

  await journey.step('an account without a call sees how to make one', async () => {
    await vera.enter(acme.users.viewer, '/calls');
    await vera.sees('No agent has called yet.');
    await vera.look('none');
    await vera.menu('Usage');
    await vera.sees('No call in this time.');
  });

  await journey.step('every call stands in the list, with its agent, key, run, model, tokens, cost and outcome', async () => {
    reader = await worker(acme, 'Invoice reader');
    const travel = await worker(acme, 'Travel desk', { policy: { maxSpendPerDay: 0.000001 }, key: 'Server' });
    for (const run of ['run-1', 'run-1', 'run-2']) cost = (await chat(reader.key, { run })).headers.get('x-service-actual-usd');
    assert.equal((await chat(travel.key)).status, 402);
    await vera.menu('Calls');
    await vera.again('all four calls', async () => {
      await vera.rest();
      return (await rows()) === 5;
    });
    const first = vera.row('run-2');
    for (const text of ['Invoice reader', 'Laptop', 'gpt-4o-mini', 'settled', '9 / 12']) await vera.sees(first.getByText(text, { exact: true }));
    await vera.sees(vera.row('Travel desk').getByText('Daily cap'));
    // Short in the table, exact on hover.
    const exact = await first.getByTitle(/^Exactly \$/).first().getAttribute('title');
    assert.equal(exact, `Exactly $${cost}`);
    await vera.look('list');
  });

  await journey.step('filters narrow it, and stand in the address', async () => {
    await vera.fill({ Outcome: 'Denied' });
    await vera.misses('run-2', vera.page.getByRole('table'));
    await vera.rest();
    assert.equal(await rows(), 2, 'a head and one call');
    await vera.page.reload();
    await vera.rest();
    assert.equal(await rows(), 2, 'also after a reload');
    await vera.press('Clear filters');
    await vera.follow('run-1');
    await vera.misses('run-2', vera.page.getByRole('table'));
    await vera.rest();
    assert.equal(await rows(), 3, 'a head and the two calls of the run');
    assert.match(vera.page.url(), /runId=run-1/);
    await vera.press('Clear filters');
    await vera.page.getByText('More filters').click();
    await vera.fill({ 'Cost from, in USD': '1,5' });
    await vera.sees(/^Not filtered by cost/);
    await vera.fill({ 'Cost from, in USD': '100' });
    await vera.sees('No call matches.');
    await vera.fill({ 'Latency from, in ms': 'slow', 'Cost from, in USD': '' });
    await vera.sees(/^Not filtered by latency/);
    await vera.sees('run-2', vera.page.getByRole('table'));
    await vera.fill({ 'Latency from, in ms': '3600000' });
    await vera.sees('No call matches.');
    await vera.press('Show all');
    await vera.sees('run-2', vera.page.getByRole('table'));
  });

  await journey.step('the same calls as a file, with exact amounts', async () => {
    await vera.open('/calls?outcome=settled');
    const { name, text } = await vera.download(() => vera.press('Download CSV'));
    assert.match(name, /^calls_.*\.csv$/);
    const [head, ...lines] = text.trim().split(/\r?\n/);
    assert.match(head, /^id,at,/);
    assert.equal(lines.length, 3);
    assert.ok(lines.every((line) => line.includes(`,${cost},`)), text);
  });

  await journey.step('a list that is followed shows the next call by itself', async () => {
    await vera.open('/calls');
    await vera.press('Follow the calls');
    await chat(reader.key, { run: 'run-3' });
    await vera.sees(vera.row('run-3'));
    await vera.press('Follow the calls');
  });

  await journey.step('a call opens its decision', async () => {
    await vera.row('Travel desk').getByRole('link', { name: /a call of Travel desk/ }).click();
    await vera.heading(/Denied call/);
    await vera.sees('Server', vera.section('The call'));
    await vera.sees('Travel desk', vera.section('The call'));
  });

  await journey.step('and leads back to where one came from, with the filters; without that, to the agent', async () => {
    await vera.open('/calls?outcome=denied');
    await vera.row('Travel desk').getByRole('link', { name: /a call of Travel desk/ }).click();
    await vera.heading(/Denied call/);
    const decision = new URL(vera.page.url()).hash.slice(1);
    await vera.page.reload();
    await vera.follow('← Calls');
    await vera.heading('Calls');
    assert.match(vera.page.url(), /outcome=denied/);
    await vera.page.goto('about:blank');
    await vera.open(decision);
    await vera.follow('← Decisions of the agent');
    await vera.heading('Travel desk');
  });

  await journey.step('usage by model, agent, key and run, as chart, table and file', async () => {
    await vera.menu('Usage');
    await vera.sees(/ in 4 calls over 30 days$/);
    await vera.look('usage');
    await vera.press('Agent');
    await vera.sees(vera.row('Invoice reader', vera.section('By agent')));
    await vera.press('Virtual key');
    await vera.sees(vera.row('Laptop', vera.section('By virtual key')));
    await vera.press('Run');
    await vera.sees(vera.row('run-1', vera.section('By run')).getByText('2', { exact: true }));
    await vera.press('24 hours');
    await vera.sees('Cost by hour');
    await vera.look('usage-hours');
    const { text } = await vera.download(() => vera.press('Download CSV'));
    assert.match(text, /^at,group,name,calls,denied,/);
    await vera.follow('2, the calls of run-1');
    await vera.heading('Calls');
    await vera.rest();
    assert.equal(await rows(), 3, 'a head and the calls behind the number');
    // Over whole days, by the day that they are charged to, as they are counted.
    await vera.menu('Usage');
    await vera.press('Run');
    await vera.follow('2, the calls of run-1');
    await vera.heading('Calls');
    await vera.rest();
    assert.match(vera.page.url(), /[?&]chargedFrom=\d{4}-\d\d-\d\d/);
    assert.equal(await rows(), 3, 'the same calls');
  });

  await journey.step('who comes close to a cap is named before a call is denied', async () => {
    await vera.menu('Overview');
    await vera.misses('Close to a cap');
    await deposit(acme, reader.walletId, 10);
    await call('POST', '/spend', { agent: reader.id, amount: 4.8 });
    await vera.press('Refresh');
    const item = vera.section('Needs attention').getByRole('link', { name: /^Close to a cap/ });
    await vera.sees(item);
    assert.match(await item.innerText(), /Invoice reader/);
    await vera.sees(/^Daily cap, 96(\.\d)? %$/, vera.section('Closest to a limit'));
    await vera.look('attention');
  });

  await journey.step('a decision says what determined the charge, where the call is not an ordinary one', async () => {
    await provider(200, '', {
      prompt_tokens: 1900, completion_tokens: 120,
      prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 400, cache_write_tokens_details: { ttl_12h_tokens: 300 } },
      completion_tokens_details: { reasoning_tokens: 80 },
    });
    const { headers } = await chat(reader.key, { run: 'run-4', tier: 'flex' });
    await provider(200);
    await vera.menu('Calls');
    await vera.sees(vera.row('run-4').getByText('tier flex', { exact: true }));
    await vera.open(`/decisions/${headers.get('x-service-allow-id')}`);
    await vera.sees('1,900, of which 100 cached, 400 written to the cache (300 for 12 hours)', vera.section('The call'));
    await vera.sees('120, of which 80 reasoning', vera.section('The call'));
    await vera.sees('flex requested, none reported', vera.section('The money'));
    await vera.look('decision');
  });

  await journey.step('streams show their first byte and their end, other endpoints their name', async () => {
    const teller = await worker(acme, 'Story teller', { policy: { maxSpendPerDay: 0.001 } });
    const streamed = await chat(reader.key, { run: 'run-stream', stream: true });
    assert.match(streamed.text, /\[DONE\]\s*$/);
    const story = await chat(teller.key, { run: 'run-story', text: 'Tell a long story', stream: true });
    assert.match(story.text, /hold_exhausted/);
    assert.equal((await respond(reader.key, { run: 'run-response' })).status, 200);
    assert.match((await respond(reader.key, { run: 'run-response-stream', stream: true })).text, /response\.completed/);
    assert.equal((await embed(reader.key, { run: 'run-embedding' })).status, 200);
    await vera.open('/calls');
    await vera.again('all calls', async () => {
      await vera.rest();
      return (await rows()) === 12;
    });
    for (const [run, texts] of [
      ['run-stream', ['settled', 'streamed', '9 / 12', /^first \d+ ms$/]],
      ['run-story', ['estimated', 'Hold exhausted', 'streamed', /^first \d+ ms$/]],
      ['run-response', ['settled', 'Responses', '9 / 12']],
      ['run-response-stream', ['settled', 'Responses, streamed', '9 / 12', /^first \d+ ms$/]],
      ['run-embedding', ['settled', 'Embeddings', 'text-embedding-3-small', '9 / 0']],
    ]) {
      const line = vera.page.getByRole('row').filter({ has: vera.page.getByRole('link', { name: run, exact: true }) });
      for (const text of texts) await vera.sees(line.getByText(text, { exact: true }).filter({ visible: true }).first());
    }
    await vera.look('streams');
    // At phone width the details of a call are below its agent.
    await vera.page.setViewportSize(PHONE);
    const narrow = vera.page.getByRole('row').filter({ has: vera.page.getByRole('link', { name: 'run-response-stream', exact: true }) });
    await vera.sees(narrow.getByText('Responses, streamed', { exact: true }).filter({ visible: true }));
    await vera.page.setViewportSize(DESK);
    await vera.page.getByText('More filters').click();
    await vera.fill({ 'First byte from, in ms': '100' });
    await vera.misses('run-embedding', vera.page.getByRole('table'));
    await vera.rest();
    assert.match(vera.page.url(), /minFirstByteMs=100/);
    assert.equal(await rows(), 4, 'a head and the three streams');
    await vera.fill({ 'First byte from, in ms': '3600000' });
    await vera.sees('No call matches.');
    await vera.press('Show all');
    await vera.open(`/decisions/${story.headers.get('x-service-allow-id')}`);
    await vera.heading(/call/);
    await vera.look('decision-stream');
  });
});
