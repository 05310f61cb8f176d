// The ids of one account typed into the addresses of another: every page says that there is nothing, and says nothing
// else.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { tour } from '../kit/tour.mjs';
import { PLAIN, populate, worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const payee = await account('Beta Supplies', 'builder', []);
  const made = await populate(acme, await worker(payee, 'Supplier'));
  const stops = await tour(api(acme.liveKey), made);
  const eve = await journey.person('Eve, of a third account');
  await eve.enter((await account('Eve and sons', 'startup', ['owner'])).users.owner);
  const secrets = [...Object.values(PLAIN), 'Acme Robotics', 'owner@acmerobotics.example', made.hook.url];

  const foreign = stops.filter(([, path]) => /(_|\/\d+$)/.test(path));
  assert.ok(foreign.length >= 8, `${foreign}`);
  for (const [name, path] of foreign) {
    await journey.step(`${name} of another account`, async () => {
      eve.allow(404, /^\/api\/v1\//);
      await eve.open(path);
      await eve.sees('Not found');
      const text = await eve.page.evaluate(() => document.body.innerText);
      assert.deepEqual(secrets.filter((secret) => text.includes(secret)), [], text);
    });
  }

  await journey.step('lists have none of it', async () => {
    for (const [, path] of stops.filter(([, one]) => !foreign.some(([, other]) => other === one))) {
      await eve.open(path);
      await eve.rest();
      const text = await eve.page.evaluate(() => document.body.innerText);
      assert.deepEqual(secrets.filter((secret) => text.includes(secret)), [], `${path}: ${text}`);
    }
  });
});
