/**
 * Approving or denying a pending spend. An approval runs the checks again, so they can still refuse the spend.
 */
import { html } from '../../html.js';
import { post, seg } from '../../api.js';
import { usd } from '../../money.js';
import { Dialog } from '../../ui/dialog.js';
import { AreaField, Form } from '../../ui/form.js';
import { say } from '../../ui/live.js';

/** @param {{intent: object, approve: boolean, onClose: () => void, onDone: () => void}} props */
export function Decide({ intent, approve, onClose, onDone }) {
  const amount = usd(intent.amount);
  const submit = async ({ reason }) => {
    try {
      await post(`/intents/${seg(intent.intent_id)}/${approve ? 'approve' : 'deny'}`, { reason: reason || null });
      say(approve ? `Approved: ${amount} is spent.` : `Denied: ${amount} stays where it is.`);
    } catch (error) {
      // The checks refused it, or someone else decided meanwhile. Either is final, and the page shows it.
      if (!error.body?.intent_id && error.code !== 'INTENT_NOT_PENDING') throw error;
      say(error.message, 'error');
    }
    onClose();
    onDone();
  };
  const title = approve ? `Approve ${amount}?` : `Deny ${amount}?`;
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${approve
    ? `All caps are checked again. When they allow it, ${amount} is spent at once and cannot be taken back.`
    : 'The spend is denied finally. The agent has to request a new one.'}</p>
    <${Form} label=${title} action=${approve ? `Approve ${amount}` : 'Deny'} kind=${approve ? 'primary' : 'danger'} onSubmit=${submit} onCancel=${onClose}>
      <${AreaField} name="reason" label="Reason" optional autofocus maxlength="500" hint="Kept in the audit trail." />
    <//>
  <//>`;
}
