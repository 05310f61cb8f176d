// One address with the same password in several accounts (decision D74): signing in asks which one, names them apart,
// goes where one was going, asks for the second factor of the chosen one alone; an address with one account is never
// asked.

import assert from 'node:assert/strict';
import { PERIOD_MS, codeAt, turnOnFactor } from '../kit/authenticator.mjs';
import { play } from '../kit/journey.mjs';
import { Person } from '../kit/person.mjs';
import { account, ask } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

const EMAIL = 'ada@consultants.example';

await play(async (journey) => {
  // Two accounts of one name, which only their ids distinguish, and one of another.
  const acme = await account('Acme Robotics', 'startup', ['owner']);
  const twin = await account('Acme Robotics', 'startup', []);
  const bolt = await account('Bolt & Sons', 'free', []);
  const bot = await worker(twin, 'Invoice reader');
  const ada = await ask('user', { account: acme.id, email: EMAIL, role: 'admin' });
  await ask('user', { account: twin.id, email: EMAIL, role: 'owner' });
  await ask('user', { account: bolt.id, email: EMAIL, role: 'viewer' });
  const named = (one) => `${one.name} (${one.id.slice(-6)})`;

  /** Somebody who has signed in as far as the question which account. */
  async function arrive(name, path = '/') {
    const person = await journey.person(name);
    person.expect(400, '/api/user/login');
    await person.open(path);
    await person.signIn(ada);
    await person.heading('Which account?');
    return person;
  }

  /** Answers it. */
  async function choose(person, one) {
    // The form has the same name as its field.
    await person.page.getByRole('combobox', { name: 'Account' }).selectOption({ label: named(one) });
    await person.press('Sign in');
  }

  await journey.step('the question names each account, apart from another of its name', async () => {
    const desk = await arrive('Ada at her desk', `/agents/${bot.id}`);
    const offered = await desk.page.getByRole('option').allInnerTexts();
    assert.deepEqual(offered.sort(), [acme, twin, bolt].map(named).sort());
    await desk.look('choice');
    await choose(desk, twin);
    await desk.heading(/Invoice reader/);
    await desk.menu('Team');
    await desk.sees('owner', desk.row(EMAIL));
  });

  await journey.step('another choice is another account, with another role', async () => {
    const phone = await arrive('Ada on her phone');
    await choose(phone, bolt);
    await phone.heading('Overview');
    await phone.sees(bolt.name);
    await phone.menu('Team');
    await phone.sees('viewer', phone.row(EMAIL));
    await phone.isNotOffered('button', 'Invite person');
  });

  await journey.step('starting again leads back, and a wrong password names no account', async () => {
    const again = await arrive('Ada, who changes her mind');
    await again.press('Start again');
    await again.heading('Sign in');
    again.expect(401, '/api/user/login');
    await again.signIn(ada, 'not the password');
    await again.sees('Email or password is not right.');
    await again.misses('Acme Robotics');
  });

  await journey.step('the second factor of an account is asked for after it was chosen, and in no other', async () => {
    const desk = await arrive('Ada, who turns the second factor on');
    await choose(desk, acme);
    await desk.heading('Overview');
    await desk.menu('Account settings');
    const { secret } = await turnOnFactor(desk, ada);

    const phone = await arrive('Ada with her authenticator');
    phone.expect(401, '/api/user/login');
    await choose(phone, acme);
    await phone.heading('Second factor');
    await phone.look('factor');
    // The code of now was used up by turning it on.
    await phone.fill({ Code: codeAt(secret, Date.now() + PERIOD_MS) });
    await phone.press('Sign in');
    await phone.heading('Overview');
    await phone.menu('Team');
    await phone.sees('admin', phone.row(EMAIL));

    const other = await arrive('Ada without it');
    await choose(other, twin);
    await other.heading('Overview');
  });

  await journey.step('a question of one account is answered with no when another one signs in', async () => {
    const desk = await arrive('Ada with an open question', '/intents');
    await choose(desk, twin);
    await desk.press('Spend');
    await desk.fill({ Agent: bot.id, Amount: '7' }, desk.dialog('Spend'));
    await desk.press('Spend…', desk.dialog('Spend'));
    await desk.dialog('Spend $7.00?').waitFor();
    await desk.page.evaluate(async (body) => {
      await fetch('/api/user/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
      document.dispatchEvent(new Event('visibilitychange'));
    }, JSON.stringify({ email: acme.users.owner.email, password: acme.users.owner.password }));
    await desk.sees(acme.users.owner.email);
    await desk.misses(desk.dialog());
  });

  await journey.step('who signs out in one window is signed out in the other, before that shows anything more', async () => {
    const desk = await arrive('Ada with two windows', '/wallets');
    await choose(desk, twin);
    await desk.heading('Wallets');
    const other = new Person('the other window', desk.context, await desk.context.newPage(), desk.watch, journey);
    await other.open('/');
    await other.heading('Overview');
    desk.expect(401, '/api/user/me');
    await other.press('Sign out');
    await other.heading('Sign in');
    await desk.heading('Sign in');
    await desk.signIn(acme.users.owner);
    await desk.heading('Wallets');
    await desk.sees(acme.users.owner.email);
  });

  await journey.step('an address with one account is asked nothing more', async () => {
    const owner = await journey.person('The owner of one account');
    await owner.enter(acme.users.owner);
    await owner.heading('Overview');
  });
});
