/**
 * One escrow: its two wallets, amount, conditions, timeline and actions.
 */
import { html } from '../html.js';
import { get, seg, sourceOf } from '../api.js';
import { part, pretty } from '../json.js';
import { useLoad } from '../load.js';
import { usd } from '../money.js';
import { href } from '../router.js';
import { Time } from '../time.js';
import { Source } from '../ui/hash.js';
import { Badge, Facts, Money, Name, PageHead, Section } from '../ui/show.js';
import { Failed, Skeleton, Stale } from '../ui/state.js';
import { Actions } from './escrow/actions.js';
import { Timeline } from './escrow/timeline.js';
import { ACCOUNT_WALLET } from './wallet/own.js';

const back = () => ({ to: href('/escrow'), label: 'Escrow' });

export default function Escrow({ params }) {
  const { id } = params;
  const load = useLoad(async (signal) => {
    const [answer, wallets] = await Promise.all([get(`/escrow/${seg(id)}`, {}, { signal }), get('/wallet', { limit: 200 }, { signal })]);
    const open = [wallets.user_wallet, ...wallets.agent_wallets];
    const { fromWalletId, toWalletId } = answer.escrow;
    const [payer, payee] = await Promise.all([fromWalletId, toWalletId].map((number) => ownWallet(number, open, signal)));
    return { escrow: answer.escrow, conditions: part(sourceOf(answer), ['escrow', 'conditions']), payer, payee };
  }, [id]);
  const title = `Escrow ${id}`;
  if (load.error && !load.data) return html`<div><${PageHead} title=${title} back=${back()} /><${Failed} error=${load.error} retry=${load.reload} /></div>`;
  if (!load.data) return html`<div><${PageHead} title=${title} back=${back()} /><${Skeleton} label="Loading the escrow" /></div>`;
  const { escrow, conditions, payer, payee } = load.data;
  return html`<div class="stack">
    <${PageHead} title=${title} back=${back()} badge=${html`<${Badge} of=${escrow.status} />`} />
    <${Stale} load=${load} />
    <${Flow} escrow=${escrow} payer=${payer} payee=${payee} />
    <${Actions} escrow=${escrow} payer=${payer} payee=${payee} onDone=${load.reload} />
    ${escrow.dispute_reason && html`<${Section} title="Reason of the dispute"><p><bdi class="prewrap">${escrow.dispute_reason}</bdi></p><//>`}
    <div class="grid">
      <${Section} title="About"><${Facts} rows=${[
    ['Amount', html`<${Money} of=${escrow.amount} /> <span class="muted">${escrow.currency}</span>`],
    ['Created', html`<${Time} at=${escrow.createdAt} full />`],
    ['Last change', html`<${Time} at=${escrow.updatedAt} full />`],
  ]} /><//>
      <${Section} title="Conditions">${conditions === '{}'
    ? html`<p class="muted">None were given.</p>` : html`<${Source} label="As JSON" what="the conditions" text=${pretty(conditions)} copy=${conditions} />`}<//>
    </div>
    <${Timeline} escrow=${escrow} />
  </div>`;
}

/**
 * Loads the wallet if it belongs to this account, otherwise returns null. A closed wallet is missing from the list, but
 * has transactions. The wallet of another account is not requested, since the server would refuse it.
 */
async function ownWallet(number, open, signal) {
  const listed = open.some((wallet) => wallet.walletId === number);
  if (!listed && (await get('/transactions', { walletId: number, limit: 1 }, { signal })).total === 0) return null;
  return (await get(`/wallets/${seg(number)}`, {}, { signal })).wallet;
}

/** Payer, amount in escrow, and payee. */
function Flow({ escrow, payer, payee }) {
  const held = ['funded', 'disputed'].includes(escrow.status);
  const words = { pending: 'not funded yet', funded: 'held', disputed: 'held, disputed', released: 'went to the payee', refunded: 'went back to the payer' };
  return html`<div class="flow">
    <${Party} label="Payer" number=${escrow.fromWalletId} wallet=${payer} />
    <div class=${held ? 'flow-between flow-held' : 'flow-between'}>
      <strong class="num">${usd(escrow.amount)}</strong><span class="flow-arrow" aria-hidden="true"></span><span class="muted">${words[escrow.status]}</span>
    </div>
    <${Party} label="Payee" number=${escrow.toWalletId} wallet=${payee} />
  </div>`;
}

function Party({ label, number, wallet }) {
  return html`<section class="tile flow-party" aria-label=${label}><h2>${label}</h2>
    <p class="flow-name">${wallet
    ? html`<a href=${href('/wallets', number)}><${Name} of=${wallet.botId === null ? ACCOUNT_WALLET : wallet.name} /></a>`
    : `Wallet ${number}`}</p>
    <p class="hint">${wallet ? `wallet ${number} of this account` : 'of another account'}</p>
  </section>`;
}
