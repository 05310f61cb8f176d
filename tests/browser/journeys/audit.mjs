// The audit trail in the browser: filters, a verification with its progress and its good result, the signed end to
// keep; and an entry that somebody changed in the store, which the verification names.

import assert from 'node:assert/strict';
import { api, chat } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account, redis } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['viewer']);
  const [reader, other] = [await worker(acme, 'Invoice reader'), await worker(acme, 'Travel desk')];
  const call = api(acme.liveKey);
  for (const way of ['freeze', 'unfreeze', 'freeze']) await call('POST', `/agents/${reader.id}/${way}`);
  await call('POST', `/agents/${other.id}/freeze`);
  const { total } = await call('GET', '/audit?limit=1');
  const vera = await journey.person('Vera, viewer');
  await vera.enter(acme.users.viewer, '/audit');
  const rows = () => vera.page.getByRole('table', { name: 'Entries' }).getByRole('row').count();

  await journey.step('the trail by type and by agent, under an address that can be passed on', async () => {
    await vera.sees('account.created', vera.page.getByRole('table'));
    await vera.fill({ What: 'agent.frozen' });
    await vera.misses('account.created', vera.page.getByRole('table'));
    await vera.rest();
    assert.equal(await rows(), 4, 'a head and three entries');
    await vera.fill({ Agent: 'Invoice reader' });
    await vera.misses('Travel desk', vera.page.getByRole('table'));
    await vera.page.reload();
    await vera.rest();
    assert.equal(await rows(), 3, 'a head and two entries');
  });

  await journey.step('who did it has a name, with the id beside it', async () => {
    await vera.open('/audit?type=user.login');
    const login = vera.row('user.login');
    await vera.sees(login.getByText(acme.users.viewer.email));
    await vera.sees(login.getByText(acme.users.viewer.id));
    assert.equal((await chat(reader.key)).status, 403);
    await vera.open('/audit?type=decision.denied');
    await vera.again('the denied call', async () => {
      await vera.rest();
      return (await vera.row('decision.denied').count()) > 0;
    });
    await vera.sees(vera.row('decision.denied').getByText('Laptop', { exact: true }));
    await vera.sees(vera.row('decision.denied').getByText('Invoice reader'));
    await vera.sees(vera.row('decision.denied').getByText('Agent frozen', { exact: true }));
  });

  await journey.step('a changed or deleted limit has the values that it had before', async () => {
    // The rows of the newest entry of a type, once it is sealed and listed.
    const changes = async (type, caption, last) => {
      const entries = vera.page.getByRole('table', { name: 'Entries' });
      const table = vera.dialog().getByRole('table', { name: caption });
      return vera.again(`${caption}: ${last}`, async () => {
        await vera.open(`/audit?type=${type}`);
        await vera.rest();
        const newest = entries.getByRole('row').nth(1).getByRole('link');
        if ((await newest.count()) === 0) return false;
        await newest.first().click();
        await vera.rest();
        const rows = await table.getByRole('row').allInnerTexts();
        return rows.some((row) => row.includes(last)) && rows.map((row) => row.split(/\s*\t\s*/).join(' | ')).sort();
      });
    };
    await call('POST', `/policies/${reader.id}`, { maxSpendPerDay: 12.5 });
    await call('POST', `/policies/${reader.id}`, { maxSpendPerDay: 7, capEnabled: false });
    const set = await changes('policy.set', 'What was changed', '$7.00');
    assert.deepEqual(set, ['Cap | on | off', 'Field | Before | After', 'Per day | $12.50 | $7.00'].sort());
    await vera.look('changed');
    await vera.press('Close', vera.dialog());

    await call('PATCH', `/agents/${other.id}`, { spendLimit: 4, type: 'travel' });
    const updated = await changes('agent.updated', 'What was changed', '$4.00');
    const fields = ['Field | Before | After', 'Type | custom | travel', 'Wallet’s daily limit | not set | $4.00'];
    assert.deepEqual(updated, fields);
    await vera.press('Close', vera.dialog());

    const { policy } = await call('POST', `/policies/${other.id}`, { name: 'Wide', maxSpendPerDay: 9 });
    await call('DELETE', `/policies/${policy.id}`);
    const deleted = await changes('policy.deleted', 'What was deleted', '$9.00');
    assert.ok(['Cap | on', 'Field | Before', 'Name | Wide', 'Per day | $9.00'].every((row) => deleted.includes(row)), deleted);
    await vera.look('deleted');
    await vera.press('Close', vera.dialog());
  });

  await journey.step('page by page, while entries are written', async () => {
    for (let turn = 0; turn < 15; turn += 1) for (const way of ['unfreeze', 'freeze']) await call('POST', `/agents/${other.id}/${way}`);
    await vera.open('/audit');
    const texts = () => vera.page.getByRole('table', { name: 'Entries' }).getByRole('row').allInnerTexts();
    await vera.sees(/^1–25 of \d+$/);
    const first = await texts();
    await call('POST', `/agents/${other.id}/unfreeze`);
    await vera.press('Next');
    await vera.sees(/^26–\d+ of \d+$/);
    const second = await texts();
    assert.ok(second.slice(1).every((row) => !first.slice(1).includes(row)), 'no entry is shown twice');
    await vera.press('Previous');
    await vera.sees(/^1–25 of \d+$/);
    await vera.open('/audit?entry=1');
    await vera.dialog('Entry 1').waitFor();
  });

  await journey.step('the signed end of the chain can be kept', async () => {
    await vera.open('/audit');
    const { name, text } = await vera.download(() => vera.press('Download checkpoint'));
    const [, size] = text.split('\n');
    assert.ok(Number(size) >= total, text);
    assert.ok(name.endsWith(`_${size}.txt`), name);
    assert.match(text, /\n\n— \S+ \S+\n$/);
  });

  await journey.step('so can all of it', async () => {
    const { text } = await vera.download(() => vera.press('Download export'));
    const entries = text.trim().split('\n').map((line) => JSON.parse(line));
    assert.ok(entries.length >= total);
    assert.deepEqual(entries.map(({ seq }) => seq), entries.map((_, at) => at + 1));
    await vera.dialog().waitFor({ state: 'hidden' });
  });

  await journey.step('verify now says that the chain is intact', async () => {
    await vera.press('Verify now');
    await vera.sees(/\d+ entries verified\./);
    await vera.sees(/The chain is (intact|in order)/);
    await vera.look('verified');
  });

  await journey.step('an entry that was changed in the store is named', async () => {
    const [key] = await redis('KEYS', `*/${acme.id}/live/audit`);
    const lines = await redis('LRANGE', key, 0, -1);
    const at = lines.findIndex((line) => line.includes('Invoice reader'));
    await redis('LSET', key, at, lines[at].replace('Invoice reader', 'Invoice writer'));
    await vera.press('Verify again');
    await vera.sees(`The chain is broken at entry ${at + 1}.`);
    await vera.sees(vera.page.getByRole('link', { name: `Look at entry ${at + 1}` }));
    await vera.look('broken');
  });
});
