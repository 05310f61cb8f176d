/**
 * The account's own wallets: finding the name for a wallet's number, and a select box.
 */
import { html, useState } from '../../html.js';
import { MOST } from '../../agents.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { usd } from '../../money.js';
import { href } from '../../router.js';
import { SelectField, TextField } from '../../ui/form.js';
import { Name } from '../../ui/show.js';

/** Limit of the list, equal to that of agents. Users type the number of other wallets, which are shown by number. */
const OTHER = 'other';
export const ACCOUNT_WALLET = 'Account wallet';

/**
 * @returns {{list: object[]|null, error: Error|null, reload: () => void, byNumber: (number: number) =>
 *   object|undefined}}
 */
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

/** A wallet by number: a link with its name if the account owns it, otherwise the number. */
export function WalletLink({ number, wallets }) {
  const own = wallets.byNumber(number);
  if (!own) return html`<span class="nowrap">Wallet ${number}</span>`;
  return html`<span class="agent-name"><a href=${href('/wallets', number)}><${Name} of=${own.label} /></a><span class="cell-sub">wallet ${number}</span></span>`;
}

/**
 * Form field for a wallet of the account. With `others`, or if the account has more wallets than the list holds, it
 * accepts any wallet by number, id or agent. `walletOf` reads its value.
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

/** The API's name of the chosen or typed wallet. */
export function walletOf(values, name) {
  const typed = (values[name] === OTHER ? values[`${name}Other`] : values[name]).trim();
  return /^[1-9]\d{0,14}$/.test(typed) ? Number(typed) : typed;
}

/** The chosen wallet's name in a sentence, with its number: agents can have equal names, or be called "account". */
export function walletWords(chosen, wallets) {
  const own = wallets.find((wallet) => wallet.walletId === chosen);
  if (own) return own.agentId === null ? 'the account wallet' : `${own.label} (wallet ${chosen})`;
  return typeof chosen === 'number' ? `wallet ${chosen}` : chosen;
}
