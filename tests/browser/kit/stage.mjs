// The test's side of a journey: the plan that it hands over, and the questions that it answers, each a line of JSON.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin });
const waiting = [];
const arrived = [];

lines.on('line', (line) => {
  const value = JSON.parse(line);
  if (waiting.length > 0) waiting.shift()(value);
  else arrived.push(value);
});
// Without the test there is nobody to play for.
lines.on('close', () => process.exit(3));

const next = () =>
  arrived.length > 0 ? Promise.resolve(arrived.shift()) : new Promise((resolve) => waiting.push(resolve));

/** Addresses, programs and bounds: `name, base, edge, packages, chromium, screenshots, picturesOfAll, stepMs`. */
export const plan = await next();

/** Packages stand where the test has installed them, not beside this file. */
export const need = createRequire(plan.packages + '/');

let turn = Promise.resolve();

/** Asks the test; one question at a time. */
export function ask(what, content = null) {
  const answer = turn.then(() => {
    process.stdout.write(JSON.stringify({ ask: what, with: content }) + '\n');
    return next();
  });
  turn = answer;
  return answer;
}

/** An account with a user of each role and an API key of each mode: `{id, name, users: {role: {…}}, liveKey, testKey}`.
    */
export const account = (name, plan, roles) => ask('account', { name, plan, roles });

/** An operator's command, with `--json`; its document. */
export async function operate(...args) {
  const { code, stdout, stderr } = await ask('cli', { args: [...args, '--json'], stdin: '' });
  if (code !== 0) throw new Error(`tollgate-admin ${args.join(' ')}: ${stdout}${stderr}`);
  return JSON.parse(stdout);
}

/** A command of the store. */
export const redis = (...words) => ask('redis', { words: words.map(String) });
