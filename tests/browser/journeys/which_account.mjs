// One address with the same password in several accounts (decision D74): signing in asks which one, names them apart, goes where
// one was going, asks for the second factor of the chosen one alone; an address with one account is never asked.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { play } from '../kit/journey.mjs';
import { account, ask } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

const EMAIL = 'ada@consultants.example';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
/** How long a code of an authenticator app is good for. */
const PERIOD_MS = 30_000;

/** The code that an authenticator app shows at a time (RFC 6238 with SHA-1, six digits). */
function codeAt(secret, ms) {
  const bits = [...secret.replace(/[\s=]/g, '')].map((sign) => BASE32.indexOf(sign).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(ms / PERIOD_MS)));
  const digest = createHmac('sha1', key).update(counter).digest();
  const at = digest[digest.length - 1] & 15;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

await play(async (journey) => {
  // Two accounts of one name, which only their ids tell apart, and one of another.
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
    await desk.press('Turn on', desk.section('Second factor'));
    await desk.fill({ Password: ada.password }, desk.dialog());
    await desk.press('Continue', desk.dialog());
    const secret = await desk.dialog().getByText(/^[A-Z2-7]{16,}$/).first().innerText();
    await desk.fill({ 'Code that the app shows': codeAt(secret, Date.now()) }, desk.dialog());
    await desk.press('Turn on', desk.dialog());
    await desk.press('I have stored it', desk.dialog('Recovery codes'));

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

  await journey.step('an address with one account is asked nothing more', async () => {
    const owner = await journey.person('The owner of one account');
    await owner.enter(acme.users.owner);
    await owner.heading('Overview');
  });
});
