/**
 * The route table. Each page has a path, a module (loaded when first shown), a title, a navigation entry, and the
 * lowest role that may open it. A page module's default export is a component that gets {params, query}. `open` pages
 * are for people who are not signed in.
 */
export const ROUTES = [
  { path: '/', title: 'Overview', nav: 'overview', load: () => import('./pages/overview.js') },
  { path: '/agents', title: 'Agents', nav: 'agents', load: () => import('./pages/agents.js') },
  { path: '/agents/:id', title: 'Agent', nav: 'agents', load: () => import('./pages/agent.js') },
  { path: '/calls', title: 'Calls', nav: 'calls', load: () => import('./pages/calls.js') },
  { path: '/usage', title: 'Usage', nav: 'usage', load: () => import('./pages/usage.js') },
  { path: '/connect', title: 'Connect', nav: 'connect', load: () => import('./pages/connect.js') },
  { path: '/decisions/:id', title: 'Decision', nav: 'calls', load: () => import('./pages/decision.js') },
  { path: '/wallets', title: 'Wallets', nav: 'wallets', load: () => import('./pages/wallets.js') },
  { path: '/wallets/:id', title: 'Wallet', nav: 'wallets', load: () => import('./pages/wallet.js') },
  { path: '/escrow', title: 'Escrow', nav: 'escrow', load: () => import('./pages/escrows.js') },
  { path: '/escrow/:id', title: 'Escrow', nav: 'escrow', load: () => import('./pages/escrow.js') },
  { path: '/intents', title: 'Intents', nav: 'intents', load: () => import('./pages/intents.js') },
  { path: '/intents/:id', title: 'Intent', nav: 'intents', load: () => import('./pages/intent.js') },
  { path: '/audit', title: 'Audit', nav: 'audit', load: () => import('./pages/audit.js') },
  { path: '/webhooks', title: 'Webhooks', nav: 'webhooks', load: () => import('./pages/webhooks.js') },
  { path: '/webhooks/:id', title: 'Webhook', nav: 'webhooks', load: () => import('./pages/webhook.js') },
  { path: '/team', title: 'Team', nav: 'team', load: () => import('./pages/team.js') },
  { path: '/api-keys', title: 'API keys', nav: 'api-keys', role: 'admin', load: () => import('./pages/api-keys.js') },
  { path: '/plan', title: 'Plan and usage', nav: 'plan', load: () => import('./pages/plan.js') },
  { path: '/settings', title: 'Account settings', nav: 'settings', load: () => import('./pages/settings.js') },
  { path: '/login', title: 'Sign in', open: true, load: () => import('./pages/login.js') },
  { path: '/join/:token', title: 'Join', open: true, load: () => import('./pages/join.js') },
  { path: '/reset/:token', title: 'Reset password', open: true, load: () => import('./pages/reset.js') },
];

/** The navigation, in groups. */
export const NAV = [
  { name: null, items: [
    { nav: 'overview', path: '/', label: 'Overview' },
    { nav: 'agents', path: '/agents', label: 'Agents' },
    { nav: 'calls', path: '/calls', label: 'Calls' },
    { nav: 'usage', path: '/usage', label: 'Usage' },
    { nav: 'connect', path: '/connect', label: 'Connect' },
  ] },
  { name: 'Money', items: [
    { nav: 'wallets', path: '/wallets', label: 'Wallets' },
    { nav: 'escrow', path: '/escrow', label: 'Escrow' },
    { nav: 'intents', path: '/intents', label: 'Intents' },
  ] },
  { name: 'Record', items: [
    { nav: 'audit', path: '/audit', label: 'Audit' },
    { nav: 'webhooks', path: '/webhooks', label: 'Webhooks' },
  ] },
  { name: 'Account', items: [
    { nav: 'team', path: '/team', label: 'Team' },
    { nav: 'api-keys', path: '/api-keys', label: 'API keys', role: 'admin' },
    { nav: 'plan', path: '/plan', label: 'Plan and usage' },
    { nav: 'settings', path: '/settings', label: 'Account settings' },
  ] },
];
