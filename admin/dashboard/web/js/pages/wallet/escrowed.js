/**
 * The sum that a wallet has paid into escrows that are neither released nor refunded.
 */
import { html } from '../../html.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { nanos } from '../../money.js';
import { href } from '../../router.js';
import { Money } from '../../ui/show.js';

/** States in which the escrow holds the money. */
const HOLDING = ['funded', 'disputed'];
/** Most escrows of each state that are added up. The page then says "at least". */
const LIMIT = 200;

async function load(number, signal) {
  const found = await Promise.all(HOLDING.map((status) => get('/escrow', { walletId: number, status, limit: LIMIT }, { signal })));
  const paid = found.flatMap(({ escrows }) => escrows).filter((escrow) => escrow.fromWalletId === number);
  return { sum: paid.reduce((sum, escrow) => sum + (nanos(escrow.amount) ?? 0n), 0n), partial: found.some(({ nextCursor }) => nextCursor) };
}

/** @param {{number: number, turn: number}} props a new value of `turn` reloads the sum */
export function Escrowed({ number, turn }) {
  const { data } = useLoad((signal) => load(number, signal), [number, turn]);
  if (!data || (data.sum === 0n && !data.partial)) return null;
  return html`<p class="hint">${data.partial && 'at least '}<${Money} of=${data.sum} /> more is in <a href=${href('/escrow')}>escrow</a></p>`;
}
