/**
 * Placeholder for the webhooks if the plan does not include them in the dashboard.
 */
import { html } from '../../html.js';
import { ApiError, get } from '../../api.js';
import { href } from '../../router.js';
import { may } from '../../session.js';
import { plainWord } from '../../words.js';
import { LinkButton } from '../../ui/button.js';
import { Section } from '../../ui/show.js';
import { Empty } from '../../ui/state.js';

/** Whether an error is the refusal for lack of such a plan. */
export const isGated = (error) => error?.code === 'PLAN_FEATURE';

/**
 * Calls `load` if the plan includes webhooks in the dashboard. Otherwise the account says so, and no request is sent
 * that the server would refuse.
 */
export async function whereAllowed(load, signal) {
  const answer = await get('/account', {}, { signal });
  if (answer.features.webhooksInDashboard) return load();
  const message = `The plan ${plainWord(answer.account.plan)} has no webhooks in the dashboard.`;
  throw new ApiError(403, 'PLAN_FEATURE', message, wayUp(answer));
}

/** The next larger plan that includes them. The account's own upgrade address is used only if that is the next plan. */
function wayUp({ plans, upgradeTo, upgradeUrl }) {
  const above = plans.slice(plans.findIndex((plan) => plan.current) + 1);
  const to = above.find((plan) => plan.features.webhooksInDashboard)?.name ?? null;
  return { upgradeTo: to, upgradeUrl: to === upgradeTo ? upgradeUrl : to && href('/plan', { to }) };
}

/** Upgrade link: an http(s) address, an address of this site, or else the page of plans. */
function upgradeAddress(given) {
  try {
    const address = new URL(given ?? href('/plan'), location.href);
    return ['http:', 'https:'].includes(address.protocol) ? address.href : href('/plan');
  } catch {
    return href('/plan');
  }
}

/** @param {{error: {message: string, body: {upgradeTo?: string, upgradeUrl?: string}}}} props */
export function Gate({ error }) {
  const { upgradeTo, upgradeUrl } = error.body;
  return html`<${Section} title="Not part of this plan">
    <${Empty} title=${error.message}>
      <p>Webhooks notify your systems at once when an agent is frozen, a spend waits, a cap denies or a balance is low.
        ${upgradeTo ? html` They come with the plan <strong>${plainWord(upgradeTo)}</strong>.` : ''} Programs with an API key can use them on any plan.</p>
      <p>${may('owner')
    ? html`<${LinkButton} kind="primary" to=${upgradeAddress(upgradeUrl)}>${upgradeTo ? `Upgrade to ${plainWord(upgradeTo)}` : 'See the plans'}<//>`
    : html`<${LinkButton} to=${href('/plan')}>See the plans<//>`}</p>
      ${!may('owner') && html`<p class="hint">An owner can change the plan.</p>`}
    <//>
  <//>`;
}
