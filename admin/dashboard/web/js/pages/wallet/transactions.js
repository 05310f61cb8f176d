/**
 * The transactions of a wallet, newest first.
 */
import { html } from '../../html.js';
import { seg } from '../../api.js';
import { download } from '../../download.js';
import { href, setQuery, usePlace } from '../../router.js';
import { Time } from '../../time.js';
import { plainWord } from '../../words.js';
import { ActionButton, Button } from '../../ui/button.js';
import { Filters, SelectFilter, TimeFilter } from '../../ui/filters.js';
import { say } from '../../ui/live.js';
import { Amount, Name, Section } from '../../ui/show.js';
import { Empty } from '../../ui/state.js';
import { ListTable } from '../../ui/table.js';
import { WalletLink } from './own.js';

const TYPES = ['deposit', 'transfer_in', 'transfer_out', 'spend', 'escrow_fund', 'escrow_release', 'escrow_refund'];
/** Types that debit the wallet; the API's amounts have no sign. */
const OUT = ['transfer_out', 'spend', 'escrow_fund'];
const OPTIONS = [['', 'All'], ...TYPES.map((type) => [type, plainWord(type)])];

/** @param {{number: number, wallets: object, turn: number}} props a new value of `turn` reloads the list */
export function Transactions({ number, wallets, turn }) {
  const { query } = usePlace();
  const { type, from, to } = query;
  const columns = [
    { label: 'When, UTC', wide: true, cell: (row) => html`<${Time} at=${row.createdAt} short />` },
    { label: 'What', head: true, cell: (row) => html`<${Kind} row=${row} />
      <span class="phone-only"><${Counterparty} row=${row} wallets=${wallets} /><span class="cell-sub"><${Time} at=${row.createdAt} short /></span></span>` },
    { label: 'With', wide: true, cell: (row) => html`<${Counterparty} row=${row} wallets=${wallets} />` },
    { label: 'Amount', num: true, cell: (row) => html`<${Moved} row=${row} />` },
    { label: 'Balance after', num: true, wide: true, cell: (row) => html`<${Amount} of=${row.balanceAfter} />` },
  ];
  const empty = type || from || to
    ? html`<${Empty} title="No transaction matches."><${Button} onClick=${() => setQuery({ type: null, from: null, to: null })}>Show all<//><//>`
    : html`<${Empty} title="Nothing has moved this wallet yet."><p>Deposits, transfers, spends and escrows are listed here with the balance after each.</p><//>`;
  const path = `/wallets/${seg(number)}/transactions`;
  const csv = html`<${ActionButton} small run=${() => keep(path, { type, from, to })}>Download CSV<//>`;
  return html`<${Section} title="Transactions" flush actions=${csv}>
    <div class="in-card"><${Filters} label="Transactions">
      <${SelectFilter} name="type" label="What" options=${OPTIONS} />
      <${TimeFilter} name="from" label="From" /><${TimeFilter} name="to" label="Before" />
    <//></div>
    <div class="transactions"><${ListTable} path=${path} plural="transactions" query=${{ type, from, to }} refresh=${turn} caption="Transactions"
      columns=${columns} keyOf=${(row) => row.id} empty=${empty} /></div>
  <//>`;
}

/** Export of the filtered transactions. */
async function keep(path, query) {
  await download(path, { query: { ...query, format: 'csv' }, name: 'transactions.csv' });
  say('Saved the transactions as CSV.');
}

/** Type of a transaction. Spends and escrow calls link to their intent. */
function Kind({ row }) {
  const word = html`<span class="nowrap">${plainWord(row.type)}</span>`;
  const leads = row.intentId && (row.type === 'spend' || row.type.startsWith('escrow'));
  return leads ? html`<a href=${href('/intents', row.intentId)}>${word}</a>` : word;
}

function Moved({ row }) {
  const out = OUT.includes(row.type);
  return html`<span class=${out ? 'num nowrap' : 'num nowrap money-in'}>${out ? '−' : '+'}<${Amount} of=${row.amount} /></span>`;
}

/** The other wallet, the escrow, the recipient or the payment's reference, with the memo below it. */
function Counterparty({ row, wallets }) {
  const { counterparty, type, memo } = row;
  const escrow = /^escrow:(\d+)$/.exec(counterparty ?? '')?.[1];
  const who = () => {
    if (type.startsWith('escrow') && escrow) return html`<a class="nowrap" href=${href('/escrow', escrow)}>Escrow ${escrow}</a>`;
    if (type.startsWith('transfer') && /^\d+$/.test(counterparty ?? '')) return html`<${WalletLink} number=${Number(counterparty)} wallets=${wallets} />`;
    return html`<${Name} of=${counterparty} />`;
  };
  if (!counterparty && memo) return html`<${Name} of=${memo} />`;
  return html`${who()}${memo && html`<span class="cell-sub"><${Name} of=${memo} /></span>`}`;
}
