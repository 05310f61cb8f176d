// Changes that must happen once: the cases in which a form keeps its idempotency key, and its messages. Ends with
// "checked".
import assert from 'node:assert/strict';
import { answers, sent } from './api.js';
import { underWay, useOnce } from './once.js';
import { user } from './session.js';
import { duration, relative, shortHour } from './time.js';

const send = useOnce();
const failing = async (error) => {
  answers.push(() => { throw Object.assign(new Error(error.message ?? 'the server’s'), error); });
  return send('/wallet/transfer', {}).then(() => assert.fail('it failed'), (cause) => cause.message);
};

/** Answer of the server to a repeated request. */
const REPLAY = () => ({ replayed: true });
const succeed = async (answer = () => ({ replayed: false })) => {
  answers.push(answer);
  await send('/wallet/transfer', {});
};
/** Returns whether the two newest requests had one key. */
const kept = () => sent.at(-1) === sent.at(-2);

// While it is not known whether it was done the key stays.
assert.match(await failing({ status: 0 }), /safe to send again/);
assert.match(await failing({ status: 503 }), /safe to send again/);
assert.ok(kept());
assert.match(await failing({ status: 408 }), /safe to send again/);
// The answer broke off, which is no error of the API.
assert.match(await failing({ status: undefined }), /safe to send again/);
assert.ok(kept());
// A refusal that the server does not record says nothing about the earlier request, even if it has the intent's id.
for (const status of [400, 401, 403, 404, 409, 413, 422, 429]) {
  const message = await failing({ status, message: 'memo is too long.', body: { intent_id: 'int_1' } });
  assert.match(message, /^memo is too long\..*not known.*safe to send again/);
  assert.ok(kept(), `${status}`);
}
// A deposit's reference that another deposit has is refused with the code of a key.
const taken = { status: 422, code: 'IDEMPOTENCY_KEY_REUSED', field: 'reference', message: 'reference: this deposit is pending' };
assert.match(await failing(taken), /^reference: this deposit is pending/);
assert.ok(kept());
// Other values under that key: the first ones arrived. The message says that, not the server's sentence about keys.
assert.match(await failing({ status: 422, code: 'IDEMPOTENCY_KEY_REUSED' }), /earlier request, with other values, arrived/);
assert.ok(kept());
// Each of these answers decides the request, so the next one has a new key.
for (const decide of [
  () => failing({ status: 422, code: 'IDEMPOTENCY_KEY_REUSED' }),
  () => failing({ status: 402, message: 'refused', body: { state: 'blocked' } }),
  () => failing({ status: 403, message: 'refused', body: { replayed: true } }),
  () => succeed(REPLAY),
  () => succeed(),
]) {
  await succeed();
  assert.ok(!kept());
  await failing({ status: 0 });
  assert.ok(!kept());
  await decide();
  assert.ok(kept());
}
// Without an earlier request that may have been done, any refusal is definite.
await succeed();
for (const status of [400, 402, 403, 409, 422, 429]) {
  assert.equal(await failing({ status, message: 'too little' }), 'too little');
  assert.ok(!kept(), `${status}`);
}
assert.equal(await failing(taken), taken.message);
await succeed();
assert.ok(!kept());

// Nothing is sent for another user than the one of the form.
const before = sent.length;
user.id = 'usr_2';
await assert.rejects(send('/wallet/transfer', {}), /Another user has signed in in this browser: nothing was sent/);
assert.equal(sent.length, before);
user.id = 'usr_1';
await succeed();
// While a request has no answer it counts as under way; afterwards it does not, whatever the answer was.
answers.push(() => assert.equal(underWay.get().count, 1));
await send('/wallet/transfer', {});
assert.equal(underWay.get().count, 0);

// A day ago is not yesterday: that may be two days of the calendar.
const now = Date.parse('2026-11-21T08:00:00Z');
assert.equal(relative('2026-11-19T09:00:00Z', now), '1 day ago');
assert.equal(relative('2026-11-21T07:58:00Z', now), '2 minutes ago');
assert.equal(relative('2026-11-21T09:00:00Z', now), 'in 1 hour');
assert.equal(relative('2026-11-21T07:59:58Z', now), 'just now');
assert.equal(relative('nonsense', now), '');

assert.deepEqual([0, 812, 2100, 65_000, null].map(duration), ['0 ms', '812 ms', '2.1 s', '1 min 5 s', null]);
assert.equal(shortHour('2026-11-25T08:00:00.000Z'), '25 Nov 08:00');

console.log('checked');
