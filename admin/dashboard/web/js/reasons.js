/**
 * Labels for reasons and checks. Written by tests/dashboard/words.rs from shared/domain/src/reason.rs.
 */

/** Labels of the reasons for denials. */
export const REASONS = {
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
  approval_denied: 'Approval denied',
  escrow_released: 'Escrow released',
  escrow_disputed: 'Escrow disputed',
  escrow_refunded: 'Escrow refunded',
  escrow_not_funded: 'Escrow not funded',
  escrow_not_pending: 'Escrow not pending',
  wallet_closed: 'Wallet closed',
};

/** Labels of the checks that differ from the label of their denial. */
export const CHECKS = {
  rate_limited: 'Requests of the key’s minute',
  no_provider_key: 'Provider key stored',
  injection_detected: 'Text without instructions',
  frozen: 'Not frozen',
  cap_disabled: 'Cap enabled',
  approval_required: 'Approval threshold',
};

/** The reasons that apply to calls. The others apply to spends and escrows. */
export const CALL_REASONS = [
  'service_unavailable',
  'plan_key_limit',
  'rate_limited',
  'no_provider_key',
  'frozen',
  'cap_disabled',
  'per_run_limit',
  'daily_limit',
  'monthly_limit',
  'plan_agent_limit',
  'plan_limit',
];
