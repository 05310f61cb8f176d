/**
 * Filters of the list of calls that lead from a number of the usage to the calls it counts.
 */

/** A moment in UTC in the API's format: its day, and what else it has but for midnight. */
const MOMENT = /^(\d{4}-\d\d-\d\d)T(?:00:00(?::00(?:\.0+)?)?|(.+))Z$/;

/**
 * Filter for the approved calls of a time range. `chargedFrom` leaves out the denied ones, which are charged to no day.
 * Whole days are matched by the day charged alone, as the usage counts them; the hours of others by when a call ended.
 * @param {{from: string, to: string|undefined}} range
 */
export function approvedIn({ from, to }) {
  const [first, end] = [from, to].map((moment) => MOMENT.exec(moment ?? ''));
  const isWhole = first && !first[2] && (!to || (end && !end[2]));
  return isWhole ? { chargedFrom: first[1], chargedTo: end?.[1] } : { from, to, chargedFrom: first?.[1] };
}
