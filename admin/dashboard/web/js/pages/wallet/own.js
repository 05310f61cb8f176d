/**
 * The account's own wallets by name: for naming a wallet by its number, and for choosing one.
 */
import { html, useState } from '../../html.js';
import { MOST } from '../../agents.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { usd } from '../../money.js';
import { href } from '../../router.js';
import { SelectField, TextField } from '../../ui/form.js';
import { Name } from '../../ui/show.js';

/** Wallets that are offered and named are as many as agents; the others are typed by number, and shown by it. */
const OTHER = 'other';
export const ACCOUNT_WALLET = 'Account wallet';

/** @returns {{list: object[]|null, error: Error|null, reload: () => void, byNumber: (number: number) => object|undefined}} */
export function useWallets() {
  const load = useLoad(async (signal) => {
    const [wallets, { agents }] = await Promise.all([
      get('/wallet', { limit: MOST }, { signal }), get('/agents', { limit: MOST }, { signal }),
    ]);
    const names = new Map(agents.map((agent) => [agent.id, agent.name]));
    return [wallets.user_wallet, ...wallets.agent_wallets].map((wallet) => ({ ...wallet, label: labelOf(wallet, names) }));
  }, []);
  return { list: load.data, error: load.error, reload: load.reload, byNumber: (number) => load.data?.find((wallet) => wallet.walletId === number) };
}

function labelOf(wallet, names) {
  return wallet.agentId === null ? ACCOUNT_WALLET : (names.get(wallet.agentId) ?? wallet.agentId);
}

/** A wallet by its number: a link with its name when it is one of the account's, else the number. */
export function WalletLink({ number, wallets }) {
  const own = wallets.byNumber(number);
  if (!own) return html`<span class="nowrap">Wallet ${number}</span>`;
  return html`<span class="agent-name"><a href=${href('/wallets', number)}><${Name} of=${own.label} /></a><span class="cell-sub">wallet ${number}</span></span>`;
}

/**
 * The choice of a wallet: one of the account's, or with `others` (or where there are more than fit a list) any one by number,
 * id or agent. Its value is read with `walletOf`.
 */
export function WalletField({ name, label, wallets, value, others = false, hint, own = true }) {
  const [chosen, setChosen] = useState(value === undefined ? (own ? String(wallets[0].walletId) : '') : String(value));
  const listed = value === undefined || wallets.some((wallet) => wallet.walletId === value);
  const options = [
    ...(own ? [] : [['', 'Choose…']]),
    ...(listed ? [] : [[String(value), `Wallet ${value}`]]),
    ...wallets.map((wallet) => [String(wallet.walletId), `${wallet.label} · ${wallet.walletId} · ${usd(wallet.usdc)}${wallet.status === 'frozen' ? ' · frozen' : ''}`]),
    ...(others || wallets.length > MOST ? [[OTHER, 'Another wallet…']] : []),
  ];
  return html`<div class="form">
    <${SelectField} name=${name} label=${label} required hint=${hint} options=${options} value=${chosen} onChange=${(event) => setChosen(event.target.value)} />
    ${chosen === OTHER && html`<${TextField} name=${`${name}Other`} label=${`${label}: number, id or agent`} required autocomplete="off"
      hint="A wallet of another account by its number (17) or id (wal_…); one of yours also by the agent’s id." />`}
  </div>`;
}

/** What the API calls the wallet that was chosen or typed. */
export function walletOf(values, name) {
  const typed = (values[name] === OTHER ? values[`${name}Other`] : values[name]).trim();
  return /^[1-9]\d{0,14}$/.test(typed) ? Number(typed) : typed;
}

/** How the chosen wallet is called in a sentence. Agents can have equal names, also that of the account wallet: the number tells them apart. */
export function walletWords(chosen, wallets) {
  const own = wallets.find((wallet) => wallet.walletId === chosen);
  if (own) return own.agentId === null ? 'the account wallet' : `${own.label} (wallet ${chosen})`;
  return typeof chosen === 'number' ? `wallet ${chosen}` : chosen;
}
