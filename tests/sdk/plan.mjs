// Makes the calls of a plan that it reads as JSON from standard input, and prints what came of each as JSON.

import { readFileSync } from 'node:fs';

// The result of one call of `make`: text, tokens, and the exception that ended it, as `describe` shows it.
async function outcome(make, describe, baseUrl, call) {
  const seen = { text: '', tokens: null, error: null };
  try {
    await make(baseUrl, call, seen);
  } catch (error) {
    seen.error = describe(error);
    if (seen.error === null) throw error;
  }
  return seen;
}

// `clients` has a function for each client and API of the plan.
export async function run(clients, describe) {
  const plan = JSON.parse(readFileSync(0, 'utf8'));
  const outcomes = [];
  for (const call of plan.calls) {
    outcomes.push(await outcome(clients[`${call.client} ${call.api}`], describe, plan.baseUrl, call));
  }
  console.log(JSON.stringify(outcomes));
}
