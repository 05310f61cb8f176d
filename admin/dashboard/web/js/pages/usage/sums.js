/**
 * Loads the rows of the usage page by page and sums them up, with exact amounts in nano-USD.
 */
import { get } from '../../api.js';
import { nanos } from '../../money.js';
import { isNamedRun } from '../../words.js';

/** Pages loaded at once. After that the user decides whether to load more. */
const PAGES = 5;
/** Groups with a colour of their own; the others share the eighth colour. */
const SHOWN = 7;
const COUNTS = ['calls', 'denied', 'inputTokens', 'cachedTokens', 'outputTokens', 'unmeasured'];
const STEP_MS = { hour: 3_600_000, day: 86_400_000 };

/**
 * @param {object} wanted the query
 * @param {AbortSignal} signal
 * @param {object|null} before earlier result, to which the following rows are added
 * @returns {Promise<{rows: object[], from: string, to: string, coveredFrom: string, cursor: string|null}>}
 */
export async function read(wanted, signal, before = null) {
  const rows = [...(before?.rows ?? [])];
  let cursor = before?.cursor ?? undefined;
  for (let page = 1; ; page += 1) {
    const answer = await get('/usage', { ...wanted, cursor }, { signal });
    rows.push(...answer.usage.map(grouped));
    cursor = answer.nextCursor ?? undefined;
    if (!cursor || page === PAGES) return { rows, from: answer.from, to: answer.to, coveredFrom: answer.coveredFrom, cursor: cursor ?? null };
  }
}

/** Puts all calls without a named run into one group. */
function grouped(row) {
  return row.group === null || isNamedRun(row.group) ? row : { ...row, group: null };
}

const empty = () => ({ cost: 0n, ...Object.fromEntries(COUNTS.map((name) => [name, 0])) });

function add(to, row) {
  to.cost += nanos(row.costUsd) ?? 0n;
  for (const name of COUNTS) to[name] += row[name];
}

/** Usage by group, the most expensive first. */
export function summed(rows) {
  const groups = new Map();
  for (const row of rows) {
    if (!groups.has(row.group)) groups.set(row.group, { group: row.group, name: row.name, ...empty() });
    add(groups.get(row.group), row);
  }
  const all = [...groups.values()];
  return all.sort((one, other) => (one.cost === other.cost ? other.calls - one.calls : one.cost < other.cost ? 1 : -1));
}

/**
 * Data of the chart: every interval of the time range, with the most expensive groups and the sum of the others.
 * @returns {{names: Array<{name: string, cost: bigint}>, steps: Array<{day: string, total: bigint, parts: bigint[],
 *   calls: number, denied: number}>}}
 */
export function series(data, groups, wanted, labelOf) {
  const apart = groups.filter(({ cost }) => cost > 0n).slice(0, SHOWN);
  const place = new Map(apart.map(({ group }, index) => [group, index]));
  const rest = groups.filter(({ group }) => !place.has(group)).reduce((all, { cost }) => all + cost, 0n);
  const names = apart.map((group) => ({ name: labelOf(group, wanted.groupBy), cost: group.cost }));
  if (rest > 0n) names.push({ name: 'Others', cost: rest });
  const step = STEP_MS[wanted.interval];
  const steps = new Map();
  for (let at = Date.parse(data.from); at < Date.parse(data.to); at += step) {
    const day = new Date(at).toISOString();
    steps.set(at, { day: wanted.interval === 'day' ? day.slice(0, 10) : day, total: 0n, parts: names.map(() => 0n), calls: 0, denied: 0 });
  }
  for (const row of data.rows) {
    const found = steps.get(Date.parse(row.at));
    if (!found) continue;
    const cost = nanos(row.costUsd) ?? 0n;
    const index = place.get(row.group) ?? names.length - 1;
    if (cost > 0n) found.parts[index] += cost;
    found.total += cost;
    found.calls += row.calls;
    found.denied += row.denied;
  }
  return { names, steps: [...steps.values()] };
}
