/**
 * All wallets of the account with their balances and total; deposits and transfers.
 */
import { html, useState } from '../html.js';
import { curl } from '../curl.js';
import { nanos } from '../money.js';
import { href } from '../router.js';
import { may } from '../session.js';
import { Button, LinkButton } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { Amount, Badge, Money, Name, PageHead, Section } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { count } from '../words.js';
import { ConfirmDeposit, Deposit } from './wallet/deposit.js';
import { useWallets } from './wallet/own.js';
import { Transfer } from './wallet/transfer.js';

export default function Wallets() {
  const [dialog, setDialog] = useState(null);
  const [turn, setTurn] = useState(0);
  const [all, setAll] = useState(null);
  const wallets = useWallets();
  const close = () => setDialog(null);
  const done = () => {
    close();
    wallets.reload();
    setTurn(turn + 1);
  };
  const pending = nanos(all?.totals.usdcPending) ?? 0n;
  const actions = wallets.list && [
    may('admin') && html`<${Button} key="transfer" onClick=${() => setDialog('transfer')}>Transfer<//>`,
    may('owner') && pending > 0n && html`<${Button} key="confirm" onClick=${() => setDialog('confirm')}>Confirm deposit<//>`,
    may('owner') && html`<${Button} key="deposit" kind="primary" onClick=${() => setDialog('deposit')}>Deposit<//>`,
  ];
  return html`<div class="stack">
    <${PageHead} title="Wallets" actions=${actions}>The account has one wallet of its own and one for each agent. Agents spend from theirs; fund them by transfer.<//>
    ${wallets.error && all && html`<div class="alert alert-warn next-step"><p>The wallets could not be loaded for deposits and transfers: <span dir="auto">${wallets.error.message}</span></p>
      <${Button} small onClick=${wallets.reload}>Try again<//></div>`}
    ${all && html`<${Tiles} all=${all} pending=${pending} />`}
    <${Section} title="Agent wallets" flush>
      <${ListTable} path="/wallet" plural="agent_wallets" refresh=${turn} caption="Agent wallets" columns=${columns(wallets)} onData=${setAll}
        keyOf=${(wallet) => wallet.walletId} empty=${html`<${NoAgents} />`} />
    <//>
    ${dialog === 'deposit' && html`<${Deposit} wallets=${wallets.list} onClose=${close} onDone=${done} />`}
    ${dialog === 'transfer' && html`<${Transfer} wallets=${wallets.list} onClose=${close} onDone=${done} />`}
    ${dialog === 'confirm' && html`<${ConfirmDeposit} onClose=${close} onDone=${done} />`}
  </div>`;
}

function columns(wallets) {
  return [
    { label: 'Agent', head: true, cell: (wallet) => html`<span class="agent-name"><a href=${href('/wallets', wallet.walletId)}><${Name} of=${wallets.byNumber(wallet.walletId)?.label ?? wallet.agentId} /></a>
      <span class="cell-sub">wallet ${wallet.walletId}${wallet.status !== 'active' && html` <span class="phone-only"><${Badge} of=${wallet.status} /></span>`}</span></span>` },
    { label: 'Status', wide: true, cell: (wallet) => html`<${Badge} of=${wallet.status} />` },
    { label: 'Daily limit', num: true, wide: true, cell: (wallet) => html`<${Amount} of=${wallet.spendLimit} none="none" />` },
    { label: 'Pending', num: true, wide: true, cell: (wallet) => html`<${Amount} of=${nanos(wallet.usdcPending) === 0n ? null : wallet.usdcPending} />` },
    { label: 'Balance', num: true, cell: (wallet) => html`<${Amount} of=${wallet.usdc} />` },
  ];
}

function Tiles({ all, pending }) {
  const { user_wallet: own, totals } = all;
  return html`<div class="tiles tiles-exact">
    <section class="tile" aria-label="Account wallet"><h2><a href=${href('/wallets', own.walletId)}>Account wallet</a></h2>
      <p class="tile-value num"><${Money} of=${own.usdc} /></p>
      <p class="hint">wallet ${own.walletId}${nanos(own.usdcPending) > 0n && html`, <${Money} of=${own.usdcPending} /> pending`}</p></section>
    <section class="tile" aria-label="All wallets"><h2>All wallets</h2>
      <p class="tile-value num"><${Money} of=${totals.usdc} /></p><p class="hint">in ${count(totals.wallets, 'wallet')}</p></section>
    <section class="tile" aria-label="Pending"><h2>Pending deposits</h2>
      <p class="tile-value num"><${Money} of=${totals.usdcPending} /></p>
      <p class="hint">${pending > 0n ? 'announced, not confirmed yet' : 'none announced'}</p></section>
  </div>`;
}

function NoAgents() {
  const line = curl('/wallets/create', { body: '{"botId":"buyer","name":"Buyer"}' });
  return html`<${Empty} title="No agent has a wallet yet.">
    <p>An agent that is created gets one. An agent can also make calls without: then its spend is tracked and nothing is paid from here.</p>
    ${may('admin') && html`<p><${LinkButton} to=${href('/agents', { new: 1 })} kind="primary">Create agent<//></p>`}
    <div class="empty-code"><${CodeLine} label="Or from a program" text=${line} what="the command" /></div>
  <//>`;
}
