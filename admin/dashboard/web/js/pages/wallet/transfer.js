/**
 * A transfer between two wallets. The user confirms it; repeated requests carry it out once.
 */
import { html } from '../../html.js';
import { replayed, useOnce } from '../../once.js';
import { usd } from '../../money.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { FieldError, Form, MoneyField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { WalletField, walletOf, walletWords } from './own.js';

/**
 * @param {{wallets: object[], from?: number, onClose: () => void, onDone: () => void}} props `from` is the preselected
 *   wallet
 */
export function Transfer({ wallets, from: first, onClose, onDone }) {
  const send = useOnce();
  const submit = async (values) => {
    const [from, to] = [walletOf(values, 'from'), walletOf(values, 'to')];
    if (from === to) throw new FieldError('to', 'Choose another wallet than the one that pays.');
    const [payer, payee] = [walletWords(from, wallets), walletWords(to, wallets)];
    const amount = usd(values.amount.text);
    const sure = await confirm({
      title: `Transfer ${amount}?`, text: `${amount} moves from ${payer} to ${payee}. It cannot be taken back.`, action: `Transfer ${amount}`, danger: false,
    });
    if (!sure) return;
    const answer = await send('/wallet/transfer', { from, to, amount: values.amount, memo: values.memo || null });
    say(replayed(answer, `Moved ${amount} to ${payee}; ${usd(answer.balance)} is left in ${payer}.`));
    onDone();
  };
  return html`<${Dialog} title="Transfer" onClose=${onClose}>
    <${Form} label="Transfer" action="Transfer…" onSubmit=${submit} onCancel=${onClose}>
      <${WalletField} name="from" label="From" wallets=${wallets} value=${first} />
      <${WalletField} name="to" label="To" wallets=${wallets} own=${false} others />
      <${MoneyField} name="amount" label="Amount" required />
      <${TextField} name="memo" label="Memo" optional maxlength="500" hint="Shown to both sides." />
    <//>
  <//>`;
}
