// Changes that must happen once: the cases in which a form keeps its idempotency key, and its messages. Ends with
// "checked".
import assert from 'node:assert/strict';
import { answers, sent } from './api.js';
import { useOnce } from './once.js';
import { duration, relative, shortHour } from './time.js';

const send = useOnce();
const failing = async (error) => {
  answers.push(() => { throw Object.assign(new Error(error.message ?? 'the server’s'), error); });
  return send('/wallet/transfer', {}).then(() => assert.fail('it failed'), (cause) => cause.message);
};

// While it is not known whether it was done the key stays.
assert.match(await failing({ status: 0 }), /safe to send again/);
assert.match(await failing({ status: 503 }), /safe to send again/);
assert.equal(sent[0], sent[1]);
// Other values under that key: the first ones arrived. The message says that, not the server's sentence about keys.
assert.match(await failing({ status: 422, code: 'IDEMPOTENCY_KEY_REUSED' }), /earlier request, with other values, was carried out/);
assert.equal(sent[1], sent[2]);
// A definite answer ends it.
assert.equal(await failing({ status: 402, message: 'too little' }), 'too little');
answers.push(() => ({ replayed: false }));
await send('/wallet/transfer', {});
answers.push(() => ({ replayed: false }));
await send('/wallet/transfer', {});
assert.equal(new Set(sent).size, 4);

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
