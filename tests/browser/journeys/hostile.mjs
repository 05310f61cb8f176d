// Names and texts that would do harm, in every place where an account can put one: no page runs them, lets them turn
// the text around them, or grows wider than a phone.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { HOSTILE, IMAGE, LONG, RIGHT_TO_LEFT } from '../kit/hostile.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { tour } from '../kit/tour.mjs';
import { populate, worker } from '../kit/fixture.mjs';

/** Addresses that a hostile link may have. */
const ADDRESSES = [
  `/agents/${encodeURIComponent(IMAGE)}`,
  `/audit?agentId=${encodeURIComponent(IMAGE)}&type=${encodeURIComponent('"><script>')}`,
  `/agents?q=${encodeURIComponent(IMAGE)}`,
  `/escrow/${encodeURIComponent('../../user/team')}`,
  '/agents/%E0%A4%A',
];

await play(async (journey) => {
  const acme = await account(IMAGE, 'startup', ['owner']);
  const other = await account(`${RIGHT_TO_LEFT}${LONG}`.slice(0, 100), 'builder', ['owner']);
  const made = await populate(acme, await worker(other, LONG), HOSTILE);
  const stops = await tour(api(acme.liveKey), made);
  const ada = await journey.person('Ada');
  await ada.enter(acme.users.owner);

  for (const [name, path] of stops) {
    await journey.step(`hostile texts at ${path}`, async () => {
      await ada.open(path);
      await ada.glance(`hostile-${name}`);
    });
  }
  await journey.step('links lead nowhere but here', async () => {
    for (const path of ['/agents', '/intents', `/intents/${made.waiting}`, '/webhooks']) {
      await ada.open(path);
      await ada.rest();
      const links = await ada.page.evaluate(() => [...document.links].map((link) => link.href));
      assert.deepEqual(links.filter((link) => !link.startsWith(new URL(ada.page.url()).origin)), []);
    }
  });
  await journey.step('what the caller gave with a spend is shown as it is stored', async () => {
    const metadata = { payee: `shop\u202e${RIGHT_TO_LEFT}`, rate: 0.5, order: '0.5' };
    const { intent_id: id } = await api(acme.liveKey)('POST', '/spend', { agent: made.reader.id, amount: 4.5, metadata });
    await ada.open(`/intents/${id}`);
    await ada.sees('"rate": 0.5');
    await ada.sees('"order": "0.5"');
    await ada.sees(`"payee": "shop\\u202e${RIGHT_TO_LEFT}"`);
  });
  for (const path of ADDRESSES) {
    await journey.step(`a hostile address: ${path}`, async () => {
      for (const status of [400, 404]) ada.allow(status, /^\/api\/v1\//);
      await ada.open(path);
      await ada.rest();
    });
  }
});
