/**
 * Options of the type filter, in groups. The address may name a type that is not listed.
 */
export const TYPES = [
  ['Calls', ['decision.approved', 'decision.denied', 'decisions.denied', 'decision.voided']],
  ['Agents and policies', ['agent.created', 'agent.updated', 'agent.frozen', 'agent.unfrozen', 'agent.deleted', 'agent.run.completed', 'agent.run.failed',
    'policy.set', 'policy.deleted']],
  ['Money', ['deposit.requested', 'deposit.confirmed', 'deposit.cancelled', 'wallet.opened', 'transfer.requested', 'transfer.received',
    'spend.requested', 'spend.approved', 'spend.denied']],
  ['Escrow', ['escrow.create', 'escrow.fund', 'escrow.release', 'escrow.dispute', 'escrow.resolve', 'escrow.released', 'escrow.disputed', 'escrow.refunded']],
  ['Keys and webhooks', ['virtual_key.created', 'virtual_key.revoked', 'provider_key.stored', 'api_key.created', 'api_key.revoked',
    'webhook.created', 'webhook.updated', 'webhook.deleted', 'webhook.tested', 'webhook.redelivered']],
  ['Account and team', ['account.created', 'account.plan_set', 'user.created', 'user.invited', 'user.invitation_revoked', 'user.joined', 'user.role_changed', 'user.removed']],
  ['Operator', ['keys.rotated', 'store.accepted', 'user.unlocked']],
  ['Sign-in', ['user.login', 'user.login_failed', 'user.logout', 'session.revoked', 'user.password_changed', 'user.password_refused', 'user.reset_issued',
    'user.totp_begun', 'user.totp_refused', 'user.totp_enabled', 'user.totp_disabled']],
];
