/**
 * Labels of the events that a webhook can subscribe to.
 */
export const EVENTS = [
  ['agent.run.completed', 'a run ended well'],
  ['agent.run.failed', 'a run failed'],
  ['agent.frozen', 'an agent was frozen'],
  ['agent.approval_required', 'a spend waits for approval'],
  ['wallet.deposit', 'a deposit was confirmed'],
  ['wallet.low_balance', 'a wallet fell below its threshold'],
  ['policy.violation', 'a call or spend was denied by a cap'],
  ['audit.injection_detected', 'a spend tried to instruct the agent'],
];
