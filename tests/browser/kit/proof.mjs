// Checks the downloads of the dashboard: the proof documents of intents, as JSON and as CSV.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

/** RFC 8785, for the values that a timeline has: texts, whole and short decimal numbers, null. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

const sha256 = (text) => createHash('sha256').update(text).digest('hex');

/** Follows the chain of a timeline from `genesis` to its end. */
export function checkTimeline(timeline) {
  let previous = 'genesis';
  assert.ok(timeline.length > 0, 'a timeline has entries');
  for (const { entry_hash: hash, ...entry } of timeline) {
    assert.equal(entry.previous_entry_hash, previous, 'each entry names the one before it');
    assert.equal(sha256(`${previous}\n${canonical(entry)}`), hash, 'its hash is that of what it says');
    previous = hash;
  }
}

const COLUMNS = [
  'intent_id', 'kind', 'state', 'amount', 'currency', 'allowed_by', 'blocked_reason', 'rail_reference', 'created_at',
  'updated_at',
];

/** The one row of an intent's CSV, by column. Its cells hold no quotes here. */
export function csvRow(text) {
  const [head, row, ...rest] = text.trim().split(/\r?\n/);
  assert.equal(head, COLUMNS.join(','));
  assert.deepEqual(rest, []);
  const cells = row.split(',');
  return Object.fromEntries(COLUMNS.map((name, at) => [name, cells[at]]));
}
