/**
 * The roles of users, strongest first, with their permissions in words.
 */
export const ROLES = [
  ['owner', 'Everything: what an admin may, and deposits, team, plan'],
  ['admin', 'What a manager may, and agents, policies, keys, wallets, escrows, spends, webhooks'],
  ['manager', 'What a viewer may, and freeze, approve and deny, release and dispute'],
  ['viewer', 'See everything, change nothing'],
];

/** Options of a select box of roles. */
export const ROLE_OPTIONS = ROLES.map(([role, what]) => [role, `${role[0].toUpperCase()}${role.slice(1)}: ${what.toLowerCase()}`]);
