// Agreements between two accounts: one is made, funded and released, each by who may; one is disputed by the other
// side. The proofs of both are downloaded and checked.

import assert from 'node:assert/strict';
import { api } from '../kit/calls.mjs';
import { play } from '../kit/journey.mjs';
import { checkTimeline, csvRow } from '../kit/proof.mjs';
import { account } from '../kit/stage.mjs';
import { deposit, worker } from '../kit/fixture.mjs';

const balance = async (who, agent) => (await api(who.liveKey)('GET', `/agents/${agent.id}/wallet`)).usdc.toFixed(2);

await play(async (journey) => {
  const acme = await account('Acme Robotics', 'builder', ['admin', 'manager', 'viewer']);
  const beta = await account('Beta Supplies', 'builder', ['owner']);
  const [payer, payee] = [await worker(acme, 'Buyer'), await worker(beta, 'Supplier')];
  await deposit(acme, payer.id, 100);
  const ada = await journey.person('Ada, admin');
  const max = await journey.person('Max, manager');
  const bea = await journey.person('Bea, of the other account');
  await ada.enter(acme.users.admin, '/escrow');
  await max.enter(acme.users.manager, '/escrow');
  await bea.enter(beta.users.owner, '/escrow');
  const at = (id) => `/escrow/${id}`;

  /** Ada makes an escrow; its number. */
  const agree = async (amount, note) => {
    await ada.open('/escrow');
    await ada.press('Create escrow');
    const form = ada.dialog('Create escrow');
    await form.getByLabel('Payer').selectOption({ label: `Buyer · ${payer.walletId} · $${await balance(acme, payer)}` });
    await ada.fill({ Payee: 'Another wallet…', Amount: amount, Conditions: JSON.stringify({ note }) }, form);
    await ada.fill({ 'Payee: number, id or agent': String(payee.walletId) }, form);
    await ada.press('Create escrow…', form);
    await ada.press('Create escrow', ada.dialog('Create this escrow?'));
    await ada.heading(/^Escrow \d+/);
    return ada.page.url().match(/escrow\/(\d+)/)[1];
  };
  const fund = async () => {
    await ada.press(/^Fund/);
    await ada.press(/^Fund/, ada.dialog());
    await ada.sees('The money is held.');
  };

  let first = '';
  await journey.step('an admin makes one and funds it; a manager is not offered either', async () => {
    await max.isNotOffered('button', 'Create escrow');
    first = await agree('2.50', 'Paid when the parcel is there');
    await max.open(at(first));
    await max.sees('Funding it takes the role admin or above.');
    await max.isNotOffered('button', /^Fund/);
    await fund();
    assert.equal(await balance(acme, payer), '97.50');
  });

  await journey.step('the other account sees it', async () => {
    await bea.page.reload();
    await bea.sees(bea.row(first));
    await bea.open(at(first));
    await bea.sees('Paid when the parcel is there');
  });

  await journey.step('the manager releases it, after being asked, and the money is there', async () => {
    await max.page.reload();
    await max.press(/^Release/);
    await max.look('release-asked');
    await max.press('Cancel', max.dialog());
    assert.equal(await balance(beta, payee), '0.00');
    await max.press(/^Release/);
    await max.press(/^Release/, max.dialog());
    await max.sees('Done: the money went to the payee.');
    await max.isNotOffered('button', /^Release/);
    await max.isNotOffered('button', 'Dispute');
    assert.equal(await balance(beta, payee), '2.50');
    await bea.page.reload();
    await bea.sees('Done: the money went to the payee.');
  });

  let second = '';
  await journey.step('the other account disputes a second one; both see the reason, and nothing can be done any more', async () => {
    second = await agree('3', 'All twelve boxes');
    await fund();
    await bea.open(at(second));
    await bea.press('Dispute');
    await bea.fill({ Reason: 'Nobody answers' }, bea.dialog());
    await bea.press(/^Dispute/, bea.dialog());
    await bea.sees(/^Disputed: the money stays held/);
    await ada.page.reload();
    await ada.sees('Nobody answers');
    await ada.isNotOffered('button', /^Release/);
    await ada.look('disputed');
    assert.equal(await balance(acme, payer), '94.50');
    await ada.open(`/wallets/${payer.walletId}`);
    await ada.sees(ada.section('Balance').getByText(/^\$3\.00 more is in escrow$/));
    await ada.open(at(second));
  });

  await journey.step('a viewer sees all of it and is offered nothing', async () => {
    const vera = await journey.person('Vera, viewer');
    await vera.enter(acme.users.viewer, at(second));
    await vera.sees('Nobody answers');
    for (const name of [/^Fund/, /^Release/, /^Dispute/]) await vera.isNotOffered('button', name);
  });

  await journey.step('the proof of a release says how it came to be, as JSON and as CSV', async () => {
    await max.menu('Intents');
    await max.fill({ Kind: 'Escrow release' });
    await max.follow('Escrow release', max.page.getByRole('table'));
    await max.heading(/^Escrow release of \$2\.50/);
    await max.sees('Excluded by each other');
    await max.look('intent');
    const json = await max.download(() => max.press('Export JSON'));
    const proof = JSON.parse(json.text);
    assert.match(json.name, /^int_.*\.json$/);
    assert.deepEqual([proof.kind, proof.state, proof.amount, proof.xor_group], ['escrow_release', 'settled', 2.5, `escrow:${first}`]);
    checkTimeline(proof.timeline);
    const csv = await max.download(() => max.press('Export CSV'));
    assert.match(csv.name, /^int_.*\.csv$/);
    const row = csvRow(csv.text);
    assert.deepEqual([row.intent_id, row.kind, row.state], [proof.intent_id, 'escrow_release', 'settled']);
  });

  await journey.step('a second release is refused, and no list shows it as one', async () => {
    await assert.rejects(api(acme.liveKey)('POST', '/escrow/release', { escrowId: Number(first) }), /escrow_released/);
    await max.open('/intents?kind=escrow_release');
    await max.sees('asked by');
    await max.sees('released by');
    await max.open('/audit?type=escrow.release');
    await max.sees('Blocked: Escrow released');
  });
});
