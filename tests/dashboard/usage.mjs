// The page Usage shows the rows of the API. Ends with "checked".
import assert from 'node:assert/strict';
import { cursors, pages } from './api.js';
import { parseExact } from './exact.js';
import { nanos } from './money.js';
import { approvedIn } from './pages/usage/links.js';
import { read, series, summed } from './pages/usage/sums.js';

const row = (at, group, costUsd, calls = 1) => `{"at":"${at}","group":${JSON.stringify(group)},"name":null,"calls":${calls},"denied":1,
  "inputTokens":10,"cachedTokens":2,"outputTokens":3,"unmeasured":0,"costUsd":${costUsd}}`;
const page = (rows, nextCursor, coveredFrom) => parseExact(`{"from":"2026-11-23T00:00:00.000Z","to":"2026-11-26T00:00:00.000Z",
  "coveredFrom":"${coveredFrom}","nextCursor":${JSON.stringify(nextCursor)},"usage":[${rows.join(',')}]}`);
const wanted = { groupBy: 'model', interval: 'day' };
const [first, second, third] = ['2026-11-23', '2026-11-24', '2026-11-25'].map((day) => `${day}T00:00:00.000Z`);

// Rows of the same interval and group on two pages are added; amounts are exact beyond a browser's numbers.
pages.push(page([row(third, 'a', '0.1'), row(third, 'b', '0.000000001')], 'more', third), page([row(third, 'a', '0.2'), row(first, 'a', '8999999.123456789', 5)], null, first));
const data = await read(wanted);
assert.deepEqual(cursors, [undefined, 'more']);
assert.equal(data.cursor, null);
assert.equal(data.coveredFrom, first);
const groups = summed(data.rows);
assert.deepEqual(groups.map(({ group, cost, calls, denied, inputTokens }) => [group, cost, calls, denied, inputTokens]),
  [['a', nanos('8999999.423456789'), 7, 3, 30], ['b', 1n, 1, 1, 10]]);

// The edge makes a run for each call that names none: together they are those without a run.
const [one, other] = ['A', 'B'].map((end) => `req_01KAH3V9J80123456789ABCDE${end}`);
pages.push(page([row(first, one, '0.1'), row(first, other, '0.2'), row(first, 'req_mine', '0.3')], null, first));
cursors.length = 0;
const runs = await read({ groupBy: 'run', interval: 'day' });
assert.deepEqual(summed(runs.rows).map(({ group, calls }) => [group, calls]), [[null, 2], ['req_mine', 1]]);

// Every interval stands in the chart, also one without a call.
const drawn = series(data, groups, wanted, ({ group }) => group);
assert.deepEqual(drawn.steps.map(({ day, total, calls }) => [day, total, calls]),
  [[first.slice(0, 10), nanos('8999999.123456789'), 5], [second.slice(0, 10), 0n, 0], [third.slice(0, 10), nanos('0.300000001'), 3]]);
assert.deepEqual(drawn.steps[2].parts, [nanos('0.3'), 1n]);
assert.deepEqual(drawn.names.map(({ name }) => name), ['a', 'b']);

// Beyond seven groups the others are one; what cost nothing has no colour, and is counted.
const many = summed(parseExact(`[${Array.from({ length: 10 }, (_, index) => row(first, `m${index}`, `0.0${10 - index}`)).join(',')},${row(first, null, '0')}]`));
const all = series({ ...data, rows: many.map((group) => ({ ...group, at: first, costUsd: group.cost.toString().padStart(10, '0').replace(/(.{9})$/, '.$1') })) }, many, wanted, ({ group }) => group ?? 'none');
assert.equal(all.names.length, 8);
assert.equal(all.names.at(-1).name, 'Others');
assert.equal(all.steps[0].parts.reduce((sum, part) => sum + part, 0n), all.steps[0].total);
assert.equal(all.steps[0].calls, 11);
assert.equal(all.steps[0].total, many.reduce((sum, { cost }) => sum + cost, 0n));

// Reading stops after a few pages until a person asks for more, and goes on where it stopped.
cursors.length = 0;
for (let count = 1; count <= 7; count += 1) pages.push(page([row(first, 'a', '1')], count === 7 ? null : `c${count}`, first));
const some = await read(wanted);
assert.deepEqual([some.rows.length, some.cursor], [5, 'c5']);
const rest = await read(wanted, undefined, some);
assert.deepEqual([rest.rows.length, rest.cursor], [7, null]);
assert.equal(cursors.at(5), 'c5');

// The number of approved calls leads to no denied ones: those are charged to no day.
const days = { from: '2026-12-30T00:00:00Z', to: '2027-01-02T00:00:00Z' };
for (const interval of ['day', 'hour']) {
  assert.deepEqual(approvedIn({ interval, ...days }), { chargedFrom: '2026-12-30', chargedTo: '2027-01-02' });
}
assert.deepEqual(approvedIn({ interval: 'day', from: '2026-12-30T00:00:00.000Z' }), { chargedFrom: '2026-12-30', chargedTo: undefined });
for (const hours of [{ from: '2026-12-30T21:00:00.000Z', to: undefined }, { from: '2026-12-30T00:00:00Z', to: '2026-12-30T07:00:00Z' }]) {
  assert.deepEqual(approvedIn({ interval: 'hour', ...hours }), { ...hours, chargedFrom: '2026-12-30' });
}

console.log('checked');
