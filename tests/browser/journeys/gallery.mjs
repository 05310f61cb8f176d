// Every page once, with something of everything on it: looked at in light, dark and at phone width.

import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { tour } from '../kit/tour.mjs';
import { history, populate, worker } from '../kit/fixture.mjs';

await play(async (journey) => {
  const [acme, other] = await journey.step('two accounts with something of everything', async () => [
    await account('Acme Robotics', 'startup', ['owner', 'admin', 'manager', 'viewer']),
    await account('Other', 'builder', ['owner']),
  ]);
  const made = await populate(acme, await worker(other, 'Supplier'));
  await history(acme, [made.reader, made.travel], 30);
  const stops = await tour(api(acme.liveKey), made);
  const ada = await journey.person('Ada');
  await journey.step('the page for those who are not signed in', async () => {
    await ada.open('/');
    await ada.look('login');
    await ada.signIn(acme.users.owner);
    await ada.heading('Overview');
  });
  for (const [name, path] of stops) {
    await journey.step(`the page ${path}`, async () => {
      await ada.open(path);
      await ada.look(name);
    });
  }
});
