// Removing a person: the dialog names the API keys that the person made and that still work, and no others; they are
// revoked with the removal, or kept where the owner says so; who made none is removed without a question about keys.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account, ask, plan } from '../kit/stage.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const join = (name, role) => ask('user', { account: acme.id, email: `${name}@acmerobotics.example`, role });
  const users = { nora: await join('nora', 'admin'), max: await join('max', 'admin'), vera: await join('vera', 'viewer') };
  const status = async (key) => (await fetch(`${plan.base}/api/v1/agents`, { headers: { 'x-api-key': key } })).status;

  /** Makes an API key on the page for it, and gives its secret. */
  async function makeKey(person, name) {
    await person.press('Create API key');
    await person.fill({ Name: name }, person.dialog());
    await person.press('Create key', person.dialog());
    const key = await person.dialog().getByText(/^svc_live_[0-9a-f]{64}$/).innerText();
    await person.press('I have stored it', person.dialog());
    return key;
  }

  const ada = await journey.person('Ada, owner');
  await ada.enter(acme.users.owner, '/team');

  /** The names of the keys in the open dialog. */
  const listed = async () => (await ada.dialog().locator('li .name').allInnerTexts()).sort();
  /** Whether the open dialog asks what becomes of keys. */
  const asks = () => ada.dialog().getByRole('checkbox').count();

  const keys = await journey.step('two admins make API keys, and one of these is revoked', async () => {
    const made = {};
    for (const [name, titles] of [['nora', ['Nightly report', 'Old laptop', 'Billing']], ['max', ['Warehouse']]]) {
      const person = await journey.person(name);
      await person.enter(users[name], '/api-keys');
      for (const title of titles) made[title] = await makeKey(person, title);
      if (name !== 'nora') continue;
      await person.press('Revoke the API key Old laptop');
      await person.press('Revoke key', person.dialog());
      await person.sees('revoked', person.row('Old laptop'));
    }
    return made;
  });
  const statuses = () => Promise.all(['Nightly report', 'Billing', 'Warehouse'].map((title) => status(keys[title])));

  await journey.step('the dialog names the keys of this person that still work; going back changes nothing', async () => {
    await ada.press(`Remove ${users.nora.email}`);
    await ada.sees('API keys that they made, revoked unless you keep them:', ada.dialog());
    assert.deepEqual(await listed(), ['Billing', 'Nightly report']);
    await ada.look('keys');
    await ada.press('Cancel', ada.dialog());
    await ada.misses(ada.dialog());
    assert.deepEqual(await statuses(), [200, 200, 200]);
    await ada.sees(ada.row(users.nora.email));
  });

  await journey.step('removing the person revokes them, and nobody else’s', async () => {
    await ada.press(`Remove ${users.nora.email}`);
    await ada.press('Remove person', ada.dialog());
    await ada.misses(ada.row(users.nora.email));
    assert.deepEqual(await statuses(), [401, 401, 200]);
  });

  await journey.step('keys that are to be kept go on without the person', async () => {
    await ada.press(`Remove ${users.max.email}`);
    await ada.fill({ 'Keep these keys': true }, ada.dialog());
    await ada.look('kept');
    await ada.press('Remove person', ada.dialog());
    await ada.misses(ada.row(users.max.email));
    assert.deepEqual(await statuses(), [401, 401, 200]);
    await ada.menu('API keys');
    await ada.sees('active', ada.row('Warehouse'));
    await ada.sees('revoked', ada.row('Nightly report'));
    await ada.sees('revoked', ada.row('Billing'));
  });

  await journey.step('who made no key is removed without a word about keys', async () => {
    await ada.menu('Team');
    await ada.press(`Remove ${users.vera.email}`);
    await ada.sees(ada.dialog().getByRole('button', { name: 'Remove person' }));
    assert.deepEqual([await listed(), await asks()], [[], 0]);
    await ada.press('Remove person', ada.dialog());
    await ada.misses(ada.row(users.vera.email));
  });
});
