// A new password by a link of the operator: without a second factor it is enough, with one the page asks for a code of
// the authenticator app or a recovery code. The link and the new password stay until then.

import assert from 'node:assert/strict';
import { PERIOD_MS, codeAt, turnOnFactor } from '../kit/authenticator.mjs';
import { play } from '../kit/journey.mjs';
import { account, operate } from '../kit/stage.mjs';

const PATH = '/api/user/password/reset';
const TITLE = 'Choose a new password';

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const { owner } = acme.users;

  /** A person who opened a new link of the operator. */
  async function withLink(name) {
    const { link } = await operate('user', 'reset-password', '--email', owner.email);
    const person = await journey.person(name);
    await person.page.goto(link);
    await person.heading(TITLE);
    return person;
  }

  /** Chooses a password on the page of the link. */
  async function choose(person, password) {
    await person.fill({ 'New password': password, 'New password again': password });
    await person.press('Save and sign in');
  }

  await journey.step('without a second factor the link is enough', async () => {
    const ada = await withLink('Ada, who forgot her password');
    await choose(ada, 'the first new password');
    await ada.heading('Overview');
  });

  const factor = await journey.step('Ada turns the second factor on', async () => {
    const ada = await journey.person('Ada at her desk');
    await ada.enter({ ...owner, password: 'the first new password' });
    await ada.menu('Account settings');
    return turnOnFactor(ada, { password: 'the first new password' });
  });

  await journey.step('with one, the page asks for its code; a wrong one is reported at its field', async () => {
    const ada = await withLink('Ada, who forgot it again');
    ada.expect(401, PATH);
    await choose(ada, 'the second new password');
    await ada.heading('Second factor');
    await ada.look('factor');
    await ada.fill({ Code: '000 000' });
    await ada.press('Save and sign in');
    await ada.sees('This code is not right. Codes change every 30 seconds.');
    assert.equal(await ada.page.getByLabel('Code').getAttribute('aria-invalid'), 'true');
    await ada.look('wrong-code');
    // The code of now was used up by turning it on.
    const code = codeAt(factor.secret, Date.now() + PERIOD_MS);
    await ada.fill({ Code: `${code.slice(0, 3)} ${code.slice(3)}` });
    await ada.press('Save and sign in');
    await ada.heading('Overview');
    await ada.sees(owner.email);
  });

  await journey.step('a recovery code takes the place of a code; starting again leads back to the password', async () => {
    const ada = await withLink('Ada without her phone');
    ada.expect(401, PATH);
    await choose(ada, 'mistyped in both fields');
    await ada.heading('Second factor');
    await ada.press('Start again');
    await ada.heading(TITLE);
    await choose(ada, 'the third new password');
    await ada.heading('Second factor');
    await ada.press('Use a recovery code');
    await ada.look('recovery');
    await ada.fill({ 'Recovery code': factor.recoveryCodes[0] });
    await ada.press('Save and sign in');
    await ada.heading('Overview');
    await ada.page.reload();
    await ada.heading('Overview');
  });

  await journey.step('the new password counts, still with the second factor', async () => {
    const ada = await journey.person('Ada on the next day');
    ada.expect(401, '/api/user/login');
    await ada.open('/');
    await ada.signIn(owner, 'the third new password');
    await ada.heading('Second factor');
    await ada.press('Use a recovery code');
    await ada.fill({ 'Recovery code': factor.recoveryCodes[1] });
    await ada.press('Sign in');
    await ada.heading('Overview');
  });
});
