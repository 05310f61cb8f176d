/**
 * The escrows in which this account pays or is paid.
 */
import { html, useState } from '../html.js';
import { curl } from '../curl.js';
import { go, href } from '../router.js';
import { may } from '../session.js';
import { Time } from '../time.js';
import { Button } from '../ui/button.js';
import { CodeLine } from '../ui/secret.js';
import { Amount, Badge, PageHead } from '../ui/show.js';
import { Empty } from '../ui/state.js';
import { ListTable } from '../ui/table.js';
import { CreateEscrow } from './escrow/create.js';
import { WalletLink, useWallets } from './wallet/own.js';

export default function Escrows() {
  const [creating, setCreating] = useState(false);
  const wallets = useWallets();
  const create = may('admin') && wallets.list && html`<${Button} kind="primary" onClick=${() => setCreating(true)}>Create escrow<//>`;
  return html`<div>
    <${PageHead} title="Escrow" actions=${create}>Money held between two wallets until one side releases it. The wallets may belong to two accounts.<//>
    <div class="card card-flush"><div class="card-body">
      <${ListTable} path="/escrow" plural="escrows" caption="Escrows" columns=${columns(wallets)} keyOf=${(escrow) => escrow.id} empty=${html`<${None} create=${create} />`} />
    </div></div>
    ${creating && html`<${CreateEscrow} wallets=${wallets.list} onClose=${() => setCreating(false)} onDone=${(id) => go(href('/escrow', id))} />`}
  </div>`;
}

function columns(wallets) {
  return [
    { label: 'Escrow', head: true, cell: (escrow) => html`<a href=${href('/escrow', escrow.id)}>${escrow.id}</a>` },
    { label: 'Status', cell: (escrow) => html`<${Badge} of=${escrow.status} />` },
    { label: 'Payer', wide: true, cell: (escrow) => html`<${WalletLink} number=${escrow.fromWalletId} wallets=${wallets} />` },
    { label: 'Payee', wide: true, cell: (escrow) => html`<${WalletLink} number=${escrow.toWalletId} wallets=${wallets} />` },
    { label: 'Last change', roomy: true, cell: (escrow) => html`<${Time} at=${escrow.updatedAt} />` },
    { label: 'Amount', num: true, cell: (escrow) => html`<${Amount} of=${escrow.amount} />` },
  ];
}

function None({ create }) {
  const line = curl('/escrow/create', { body: '{"fromWalletId":"user","toWalletId":29325641145957,"amount":25}' });
  return html`<${Empty} title="There is no escrow yet.">
    <p>The payer funds it, and the money is out of reach of both. When the work is done it is released to the payee; when it is not, either side disputes it.</p>
    ${create && html`<p>${create}</p>`}
    <div class="empty-code"><${CodeLine} label="Or from a program" text=${line} what="the command" /></div>
  <//>`;
}
