// An account with something of everything in it, made by its API key: so that pages have something to show.

import { createServer } from 'node:http';
import { once } from 'node:events';
import { api, chat, embed, respond } from './calls.mjs';
import { ask, operate, redis } from './stage.mjs';

/** Every event that a webhook can be sent. */
const EVENTS = [
  'agent.run.completed', 'agent.run.failed', 'agent.frozen', 'agent.approval_required', 'wallet.deposit',
  'wallet.low_balance', 'policy.violation', 'audit.injection_detected',
];

/** Names that people and agents use, unless a story says otherwise. */
export const PLAIN = {
  agent: 'Invoice reader',
  other: 'Travel desk',
  teller: 'Story teller',
  description: 'Reads invoices and pays the small ones',
  policy: 'Careful',
  memo: 'Budget for November',
  spend: 'Translation of a contract',
  recipient: 'Example Translations Ltd',
  dispute: 'The goods arrived broken',
  conditions: 'Paid when the parcel is there',
  webhook: 'Pager of the on-call team',
  key: 'Laptop',
  answer: 'the receiver is out of order',
  run: 'run-2026-11-21',
};

/** A receiver of webhooks on this machine: `status` is what it answers, `got` what it was sent. */
export async function receiver(status, body = '') {
  const state = { status, got: [] };
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      state.got.push({ headers: request.headers, body: Buffer.concat(parts).toString() });
      response.writeHead(state.status, { 'content-type': 'text/html' }).end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  state.url = `http://127.0.0.1:${server.address().port}/hook`;
  return state;
}

/** Money for a wallet, by the operator. */
export const deposit = (account, wallet, amount) =>
  operate('deposit', '--account', account.id, '--wallet', String(wallet), '--amount', String(amount),
    '--reference', `ref-${account.id}-${wallet}-${amount}`);

/** USDC in the account's wallet and in that of its first agent. */
export async function balancesOf(account) {
  const { user_wallet: own, agent_wallets: agents } = await api(account.liveKey)('GET', '/wallet');
  return [own.usdc, agents[0].usdc];
}

/** An agent with a policy, a provider key and a virtual key: `{id, walletId, key}`. */
export async function worker(account, name, { description, policy = {}, key = 'Laptop' } = {}) {
  const call = api(account.liveKey);
  const { agent } = await call('POST', '/agents', { name, description });
  await call('POST', `/policies/${agent.id}`, { name: 'Careful', maxSpendPerDay: 5, maxSpendPerMonth: 50, ...policy });
  await call('POST', `/agents/${agent.id}/provider-keys`, { provider: 'openai', apiKey: 'sk-test-provider-key' });
  const { secret } = await call('POST', `/agents/${agent.id}/virtual-keys`, { name: key });
  return { ...agent, key: secret };
}

/** Fills an account; `texts` in place of [`PLAIN`]. What was made, by name. */
export async function populate(account, payee, texts = {}) {
  const say = { ...PLAIN, ...texts };
  const call = api(account.liveKey);
  const hook = await receiver(500, say.answer);
  const { webhook } = await call('POST', '/webhooks', {
    url: hook.url, events: EVENTS, secret: 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw==', description: say.webhook,
  });
  const policy = { name: say.policy, maxSpendPerDay: 20, approvalThreshold: 4, lowBalanceThreshold: 90, maxSpendPerTransaction: 40 };
  const reader = await worker(account, say.agent, { description: say.description, key: say.key, policy });
  const travel = await worker(account, say.other, { policy: { name: say.policy, maxSpendPerDay: 0.000001 } });
  await deposit(account, reader.walletId, 100);
  await deposit(account, 'user', 1234.5);
  await call('POST', '/wallet/transfer', { from: 'user', to: travel.id, amount: 20, memo: say.memo });
  for (let count = 0; count < 3; count += 1) await chat(reader.key, { run: say.run, text: 'Read this invoice' });
  await chat(reader.key, { run: say.run, text: 'Read this invoice aloud', stream: true });
  await respond(reader.key, { run: say.run, text: 'Read this invoice', stream: true });
  await embed(reader.key, { run: say.run, text: 'An invoice' });
  const story = await worker(account, say.teller, { policy: { name: say.policy, maxSpendPerDay: 0.001 } });
  const exhausted = (await chat(story.key, { text: 'Tell a long story', stream: true })).headers.get('x-service-allow-id');
  const denied = (await chat(travel.key, { text: 'Book a flight' })).json.id;
  const spend = { agent: reader.id, description: say.spend, recipient: say.recipient, runId: say.run };
  await call('POST', '/spend', { ...spend, amount: 1.25 });
  const waiting = await call('POST', '/spend', { ...spend, amount: 4.5 });
  await call('POST', `/agents/${reader.id}/runs/${say.run}`, { status: 'completed' });
  const escrows = await agreements(call, reader, payee, say);
  await call('POST', `/agents/${travel.id}/freeze`);
  return { reader, travel, hook, webhook, denied, exhausted, waiting: waiting.intent_id, escrows };
}

/** Four escrows, one in each state. */
async function agreements(call, from, to, say) {
  const made = {};
  for (const state of ['pending', 'funded', 'released', 'disputed']) {
    const body = { fromWalletId: from.walletId, toWalletId: to.walletId, amount: 2.5, conditions: { note: say.conditions } };
    const { escrow } = await call('POST', '/escrow/create', body);
    made[state] = escrow.id;
    if (state === 'pending') continue;
    await call('POST', '/escrow/fund', { escrowId: escrow.id });
    if (state === 'released') await call('POST', '/escrow/release', { escrowId: escrow.id });
    if (state === 'disputed') await call('POST', '/escrow/dispute', { escrowId: escrow.id, reason: say.dispute });
  }
  return made;
}

/** The answer of the provider from now on; of a success with this usage. */
export const provider = (status, message = '', usage = null) => ask('provider', { status, message, usage });

/** Past days with spending by some agents and a few refusals, as the sealer keeps them: a chart needs more than today.
    */
export async function history(account, agents, days) {
  const [key] = await redis('KEYS', `*/${account.id}/live/audit`);
  const today = Math.floor(Date.now() / 86_400_000);
  for (let ago = 1; ago < days; ago += 1) {
    const amounts = agents.map((_, index) => Math.round((3 + Math.sin(ago / 3 + index * 2)) * 400_000_000) * (index + 1));
    const fields = agents.flatMap(({ id }, index) => [`a:${id}`, amounts[index]]);
    const calls = 40 + ((ago * 7) % 23);
    await redis('HSET', `${key}/day/${today - ago}`, 'calls', calls, 'spent', amounts.reduce((all, one) => all + one), ...fields, 'n:daily_limit', ago % 4, 'n:frozen', ago % 2);
  }
}
