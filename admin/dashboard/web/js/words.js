/**
 * The API's words as people read them.
 */

/** Why something was denied. */
const REASONS = {
  service_unavailable: 'Store not reachable',
  plan_key_limit: 'Plan: active keys',
  rate_limited: 'Too many requests',
  no_provider_key: 'No provider key',
  injection_detected: 'Prompt injection',
  frozen: 'Agent frozen',
  cap_disabled: 'No cap in force',
  per_transaction_limit: 'Per-transaction cap',
  per_run_limit: 'Per-run cap',
  daily_limit: 'Daily cap',
  monthly_limit: 'Monthly cap',
  plan_agent_limit: 'Plan: agents',
  plan_limit: 'Plan: tracked spend',
  spend_limit: 'Wallet’s daily limit',
  insufficient_balance: 'Wallet balance',
  approval_required: 'Needs approval',
};

/** The checks, where they have to be called otherwise than the denial by them. */
const CHECKS = {
  rate_limited: 'Requests of the key’s minute',
  no_provider_key: 'Provider key stored',
  injection_detected: 'Text without instructions',
  frozen: 'Not frozen',
  cap_disabled: 'Cap enabled',
  approval_required: 'Approval threshold',
};

/** What became of a call. */
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

/** An unknown word of the API, made readable. */
export const plainWord = (word) => {
  const text = String(word).replaceAll('_', ' ').replaceAll('.', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
};

export const reasonWord = (word) => REASONS[word] ?? plainWord(word);
export const checkWord = (word) => CHECKS[word] ?? reasonWord(word);
export const outcomeWord = (word) => OUTCOMES[word] ?? plainWord(word);

/** `1 call`, `2 calls`, `1,204 calls` */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
