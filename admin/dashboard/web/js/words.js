/**
 * Labels for the API's identifiers.
 */

import { CHECKS, REASONS } from './reasons.js';

/** Outcomes of a call. */
const OUTCOMES = {
  denied: 'Denied: nothing was forwarded',
  open: 'Under way: the estimate is held',
  settled: 'Settled to the real cost',
  released: 'Released: nothing is charged',
  estimated: 'The cost is not known: the estimate is charged',
  kept: 'Never settled: the estimate stays charged',
  corrected: 'Corrected to the real cost',
  voided: 'Voided: nothing was forwarded',
  unsent: 'Denied: it could not be sent',
};

/** Makes an identifier without a label readable: `escrow_fund` becomes `Escrow fund`. */
export const plainWord = (word) => {
  const text = String(word).replaceAll('_', ' ').replaceAll('.', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
};

export const reasonWord = (word) => REASONS[word] ?? plainWord(word);
export const checkWord = (word) => CHECKS[word] ?? reasonWord(word);
/** Why the request in an entry of the audit trail was refused; empty if it was not. */
export const refusalWord = ({ outcome, reason } = {}) => {
  if (!reason || reason === 'approved') return '';
  return outcome === 'blocked' ? `Blocked: ${reasonWord(reason)}` : reasonWord(reason);
};
export const outcomeWord = (word) => OUTCOMES[word] ?? plainWord(word);

/** Whether the client named the run. Otherwise the run's id is the id of the request. */
export const isNamedRun = (run) => Boolean(run) && !/^req_[0-9A-Z]{26}$/.test(run);

/** `1 call`, `2 calls`, `1,204 calls` */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
