// Permissions of roles: the dashboard offers each role its operations and no others, the server refuses the rest, and a
// change of a role or of the team applies to the next click.

import assert from 'node:assert/strict';
import { play } from '../kit/journey.mjs';
import { account } from '../kit/stage.mjs';
import { worker } from '../kit/fixture.mjs';

const ROLES = ['owner', 'admin', 'manager', 'viewer'];
/** Pages, a button on each, and the least role that it is offered to. `AGENT` stands for the agent's page. */
const OFFERS = [
  ['/agents', 'Create agent', 'admin'],
  ['AGENT', 'Freeze', 'manager'],
  ['AGENT', 'Edit policy', 'admin'],
  ['AGENT?tab=keys', 'Create virtual key', 'admin'],
  ['/connect', 'Create a virtual key', 'admin'],
  ['/wallets', 'Transfer', 'admin'],
  ['/wallets', 'Deposit', 'owner'],
  ['/escrow', 'Create escrow', 'admin'],
  ['/webhooks', 'Create webhook', 'admin'],
  ['/team', 'Invite person', 'owner'],
  ['/api-keys', 'Create API key', 'admin'],
];
const mayDo = (role, needed) => ROLES.indexOf(role) <= ROLES.indexOf(needed);

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'startup', ROLES);
  const bot = await worker(acme, 'Invoice reader');
  const people = {};
  const agentPage = `/agents/${bot.id}`;

  for (const role of ROLES) {
    await journey.step(`${role}: is offered what the role may do`, async () => {
      const who = await journey.person(role);
      people[role] = who;
      await who.enter(acme.users[role]);
      for (const [path, button, needed] of OFFERS) {
        await who.open(path.replace('AGENT', agentPage));
        await who.rest();
        const offered = await who.page.getByRole('button', { name: button, exact: true }).count();
        assert.equal(offered > 0, mayDo(role, needed), `${role} at ${path}: ${button}`);
      }
      const link = who.page.getByRole('link', { name: 'API keys', exact: true });
      assert.equal(await link.count(), mayDo(role, 'admin') ? 1 : 0);
    });
  }

  await journey.step('what a page does not offer, the server refuses', async () => {
    const { viewer } = people;
    const path = `/api/v1/agents/${bot.id}/freeze`;
    viewer.expect(403, path);
    const code = await viewer.page.evaluate(async (address) => {
      const { csrfToken } = await (await fetch('/api/user/me')).json();
      const answer = await fetch(address, { method: 'POST', headers: { 'X-CSRF-Token': csrfToken } });
      return (await answer.json()).code;
    }, path);
    assert.equal(code, 'INSUFFICIENT_ROLE');
  });

  await journey.step('an invitation by link brings in a colleague with the role it names', async () => {
    const { owner } = people;
    await owner.open('/team');
    await owner.press('Invite person');
    await owner.fill({ Email: 'nora@acmerobotics.example' }, owner.dialog());
    await owner.dialog().getByRole('combobox', { name: 'Role' }).selectOption('manager');
    await owner.look('invite');
    await owner.press('Make link', owner.dialog());
    const link = await owner.dialog().getByText(/#\/join\//).innerText();
    await owner.press('I have stored it', owner.dialog());
    const nora = await journey.person('Nora, invited');
    await nora.page.goto(link);
    await nora.sees('Acme Robotics');
    await nora.look('join');
    const words = 'a new and long password';
    await nora.fill({ Password: words, 'Password again': `${words}!` });
    await nora.press('Join');
    await nora.sees('The two passwords differ.');
    await nora.fill({ 'Password again': words });
    await nora.press('Join');
    await nora.heading('Overview');
    await nora.sees('nora@acmerobotics.example');
    const late = await journey.person('Somebody with a used link');
    late.expect(404, '/api/user/invitations/look');
    await late.page.goto(link);
    await late.heading('This invitation cannot be used');
    // A dead link says so before anybody thinks of a password.
    late.expect(404, '/api/user/password/reset/look');
    await late.page.goto(new URL(`/#/reset/${'0a'.repeat(32)}`, link).href);
    await late.heading('This link cannot be used');
    await late.misses(late.page.getByLabel('New password'));
    people.nora = nora;
  });

  await journey.step('a role that was lowered elsewhere binds the next click', async () => {
    const { owner, nora } = people;
    await nora.open(agentPage);
    await owner.page.reload();
    await owner.press(/^Change role of nora@/);
    await owner.dialog().getByRole('combobox', { name: 'Role' }).selectOption('viewer');
    await owner.press('Change role', owner.dialog());
    await owner.sees('viewer', owner.row('nora@'));
    nora.expect(403, `/api/v1/agents/${bot.id}/freeze`);
    await nora.press('Freeze');
    await nora.press('Freeze agent', nora.dialog());
    await nora.sees(/role/i, nora.page.getByRole('status', { name: 'Results' }));
  });

  await journey.step('somebody who was removed is signed out by the next click', async () => {
    const { owner, nora } = people;
    await owner.press(/^Remove nora@/);
    await owner.press('Remove person', owner.dialog());
    await owner.misses(owner.row('nora@'));
    nora.expect(401, /^\/api\//);
    await nora.toward('Wallets');
    await nora.heading('Sign in');
  });
});
