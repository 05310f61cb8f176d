/**
 * One wallet: its balance, its transactions, deposits and transfers.
 */
import { html, useState } from '../html.js';
import { get, seg } from '../api.js';
import { useLoad } from '../load.js';
import { nanos } from '../money.js';
import { href } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { Button } from '../ui/button.js';
import { CopyableId } from '../ui/hash.js';
import { Badge, Facts, Money, PageHead, Section } from '../ui/show.js';
import { Failed, Skeleton, Stale } from '../ui/state.js';
import { AgentLink } from '../ui/who.js';
import { ConfirmDeposit, Deposit } from './wallet/deposit.js';
import { Escrowed } from './wallet/escrowed.js';
import { ACCOUNT_WALLET, useWallets } from './wallet/own.js';
import { Transactions } from './wallet/transactions.js';
import { Transfer } from './wallet/transfer.js';

const back = () => ({ to: href('/wallets'), label: 'Wallets' });

/** The record has the balance to the cent, the snapshot with all digits. A closed wallet has no snapshot. */
export default function Wallet({ params }) {
  const { id } = params;
  const load = useLoad(async (signal) => {
    const { wallet } = await get(`/wallets/${seg(id)}`, {}, { signal });
    return { wallet, snapshot: await snapshotOf(wallet, signal) };
  }, [id]);
  if (load.error && !load.data) return html`<div><${PageHead} title="Wallet" back=${back()} /><${Failed} error=${load.error} retry=${load.reload} /></div>`;
  if (!load.data) return html`<div><${PageHead} title="Wallet" back=${back()} /><${Skeleton} label="Loading the wallet" /></div>`;
  return html`<${Loaded} ...${load.data} load=${load} />`;
}

async function snapshotOf(wallet, signal) {
  if (wallet.status === 'closed') return null;
  if (wallet.botId === null) return (await get('/wallet', { limit: 1 }, { signal })).user_wallet;
  return get(`/agents/${seg(wallet.botId)}/wallet`, {}, { signal });
}

function Loaded({ wallet, snapshot, load }) {
  const [turn, setTurn] = useState(0);
  const [dialog, setDialog] = useState(null);
  const wallets = useWallets();
  const close = () => setDialog(null);
  const done = () => {
    close();
    load.reload();
    wallets.reload();
    setTurn(turn + 1);
  };
  const open = wallet.status !== 'closed' && wallets.list;
  const pending = nanos(snapshot?.usdcPending) ?? 0n;
  const actions = open && [
    may('admin') && html`<${Button} key="transfer" onClick=${() => setDialog('transfer')}>Transfer<//>`,
    may('owner') && pending > 0n && html`<${Button} key="confirm" onClick=${() => setDialog('confirm')}>Confirm deposit<//>`,
    may('owner') && html`<${Button} key="deposit" kind="primary" onClick=${() => setDialog('deposit')}>Deposit<//>`,
  ];
  return html`<div class="stack">
    <${PageHead} title=${wallet.botId === null ? ACCOUNT_WALLET : wallet.name} back=${back()} badge=${html`<${Badge} of=${wallet.status} />`} actions=${actions}><${CopyableId} of=${wallet.id} what="the wallet’s id" /><//>
    <${Stale} load=${load} />
    <${Alerts} wallet=${wallet} />
    <div class="grid grid-even">
      <${Section} title="Balance"><p class="tile-value num"><${Money} of=${snapshot?.usdc ?? wallet.balance} /></p>
        <p class="hint">${pending > 0n ? html`<${Money} of=${pending} /> more is announced and not confirmed yet` : 'nothing is pending'}</p>
        <${Escrowed} number=${wallet.walletId} turn=${turn} /><//>
      <${Section} title="About"><${Facts} rows=${[
    ['Number', String(wallet.walletId)],
    ['Owner', wallet.botId === null ? 'the account' : html`<${AgentLink} id=${wallet.botId} name=${wallet.name} />`],
    snapshot && ['Daily limit', html`<${Money} of=${snapshot.spendLimit} none="none of its own" />`],
    ['Created', html`<${Time} at=${wallet.createdAt} full />`],
  ]} /><//>
    </div>
    <${Transactions} number=${wallet.walletId} wallets=${wallets} turn=${turn} />
    ${dialog === 'deposit' && html`<${Deposit} wallets=${wallets.list} value=${wallet.walletId} onClose=${close} onDone=${done} />`}
    ${dialog === 'transfer' && html`<${Transfer} wallets=${wallets.list} from=${wallet.walletId} onClose=${close} onDone=${done} />`}
    ${dialog === 'confirm' && html`<${ConfirmDeposit} onClose=${close} onDone=${done} />`}
  </div>`;
}

function Alerts({ wallet }) {
  if (wallet.status === 'frozen') {
    return html`<p class="alert alert-error">Frozen with its agent: nothing leaves this wallet until the agent is unfrozen. Money can still come in.</p>`;
  }
  if (wallet.status === 'closed') return html`<p class="alert alert-warn">Closed: its agent was deleted. Its transactions stay readable.</p>`;
  return null;
}
