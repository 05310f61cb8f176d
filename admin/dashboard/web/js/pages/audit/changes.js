/**
 * The changed fields of an entry, each with its old and new value, and the fields of what was deleted.
 */
import { html } from '../../html.js';
import { plainWord } from '../../words.js';
import { Money, Name } from '../../ui/show.js';
import { Table } from '../../ui/table.js';
import { LIMITS } from '../agent/policy-facts.js';

const OTHERS = { capEnabled: 'Cap', agentId: 'Agent', spendLimit: 'Wallet’s daily limit' };
/** An entry contains each amount twice: as a number, and exactly under the name with this suffix. */
const EXACT = 'Nanos';

const isAmount = (field) => field === 'spendLimit' || LIMITS.some(([name]) => name === field);
const label = (field) => LIMITS.find(([name]) => name === field)?.[1] ?? OTHERS[field] ?? plainWord(field);

function value(field, of) {
  if (isAmount(field)) return html`<${Money} of=${of} none="not set" />`;
  if (typeof of === 'boolean') return of ? 'on' : 'off';
  return html`<${Name} of=${of} />`;
}

const FIELD = { label: 'Field', head: true, cell: ({ field }) => label(field) };
const BEFORE = { label: 'Before', num: true, cell: ({ field, before }) => value(field, before) };
const AFTER = { label: 'After', num: true, cell: ({ field, after }) => value(field, after) };

/** @param {{type: string, data: object}} props `data.previous` has the old values, where something was changed */
export function Changes({ type, data }) {
  const { previous, fields = data } = data ?? {};
  if (!previous) return null;
  const names = Object.keys(previous).filter((name) => !name.endsWith(EXACT));
  const rows = names.map((field) => ({ field, before: previous[field], after: fields[field] }));
  const [caption, columns] = type.endsWith('.deleted')
    ? ['What was deleted', [FIELD, BEFORE]]
    : ['What was changed', [FIELD, BEFORE, AFTER]];
  return rows.length > 0 && html`<${Table} caption=${caption} columns=${columns} rows=${rows} keyOf=${(row) => row.field} />`;
}
