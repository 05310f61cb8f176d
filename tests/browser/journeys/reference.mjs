// The reference of the API, which needs no session: looked at in light, dark and at phone width.

import { play } from '../kit/journey.mjs';
import { plan } from '../kit/stage.mjs';

/** Its some hundred operations and schemas are alike, and axe-core takes a minute for all of them: one of so many
    stands for the rest. */
const EACH = 30;

await play(async (journey) => {
  await journey.step('a few of its operations and schemas', async () => {
    const reader = await journey.person('A reader');
    await reader.page.goto(`${plan.base}/reference`);
    await reader.page.evaluate((each) => {
      for (const kind of ['section.operation', 'section.schema']) {
        for (const [at, one] of document.querySelectorAll(kind).entries()) if (at % each !== 0) one.remove();
      }
    }, EACH);
    await reader.look('reference');
  });
});
