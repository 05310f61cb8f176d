/**
 * The roles of people, strongest first, and what each may do.
 */
export const ROLES = [
  ['owner', 'Everything: also deposits, team, plan'],
  ['admin', 'Agents, policies, keys, wallets, spends, webhooks'],
  ['manager', 'Freeze, approve and deny, release and dispute'],
  ['viewer', 'See everything, change nothing'],
];

/** Pairs for a choice of roles. */
export const ROLE_OPTIONS = ROLES.map(([role, what]) => [role, `${role[0].toUpperCase()}${role.slice(1)}: ${what.toLowerCase()}`]);
