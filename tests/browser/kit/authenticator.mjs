// An authenticator app.

import { createHmac } from 'node:crypto';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
/** Lifetime of a code of an authenticator app. */
export const PERIOD_MS = 30_000;

/** The code that an authenticator app shows at a time (RFC 6238 with SHA-1, six digits). */
export function codeAt(secret, ms) {
  const bits = [...secret.replace(/[\s=]/g, '')].map((sign) => BASE32.indexOf(sign).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(ms / PERIOD_MS)));
  const digest = createHmac('sha1', key).update(counter).digest();
  const at = digest[digest.length - 1] & 15;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** Turns the second factor on, on the page of account settings: `{secret, recoveryCodes}`. The code of now is used up
 * by that. */
export async function turnOnFactor(person, { password }) {
  await person.press('Turn on', person.section('Second factor'));
  await person.fill({ Password: password }, person.dialog());
  await person.press('Continue', person.dialog());
  const secret = await person.dialog().getByText(/^[A-Z2-7]{16,}$/).first().innerText();
  await person.fill({ 'Code that the app shows': codeAt(secret, Date.now()) }, person.dialog());
  await person.press('Turn on', person.dialog());
  const shown = await person.dialog('Recovery codes').locator('code').innerText();
  await person.press('I have stored it', person.dialog('Recovery codes'));
  return { secret, recoveryCodes: shown.trim().split(/\s+/) };
}
