// The Codex command line: responses, streamed. Its configuration is the one that the dashboard's Connect page shows, or
// its own provider with the address of the edge.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLIENTS, KEY_NAME } from './connect.mjs';
import { run } from './plan.mjs';

const installed = process.argv[2];

// The text of the configuration file.
function connected(use) {
  return CLIENTS.find(({ id }) => id === 'codex').blocks(use)[0].text;
}

// The exception of a turn that failed.
class Failed extends Error {
  name = 'turn.failed';
}

// The text for the provider that Codex has itself.
function builtin({ base, model }) {
  return [`model = "${model}"`, `openai_base_url = "${base}"`, 'web_search = "disabled"', ''].join('\n');
}

const codex = (model, configuration) => (base, call, seen) => {
  const home = mkdtempSync(join(installed, 'home-'));
  try {
    const work = join(home, 'work');
    mkdirSync(work);
    writeFileSync(join(home, 'config.toml'), configuration({ base, model }));
    for (let turn = 0; turn < call.turns; turn += 1) ask(home, work, call, seen, turn > 0);
  } finally {
    rmSync(home, { recursive: true });
  }
};

// One turn.
function ask(home, work, call, seen, continues) {
  // A sandbox of its own is not to be had in every container, and the command only prints.
  const options = ['exec', '--json', '--skip-git-repo-check', '--sandbox', 'danger-full-access'];
  if (call.offersHostedTool) options.push('-c', 'web_search=live');
  const which = continues ? ['resume', '--last'] : [];
  const ran = spawnSync(join(installed, 'node_modules/.bin/codex'), [...options, ...which, call.text], {
    cwd: work,
    encoding: 'utf8',
    // Some seconds are usual. A command that does not run would be asked for again and again.
    timeout: 120_000,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: home,
      CODEX_HOME: home,
      [KEY_NAME]: call.key,
      CODEX_API_KEY: call.key,
      // Nothing listens there: what is not for the edge fails at once.
      HTTPS_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1',
    },
  });
  if (ran.error) throw ran.error;
  let failure = null;
  for (const line of ran.stdout.split('\n').filter(Boolean)) {
    const event = JSON.parse(line);
    if (event.type === 'item.completed' && event.item.type === 'agent_message') seen.text += event.item.text;
    if (event.type === 'turn.completed') seen.tokens = event.usage.input_tokens + event.usage.output_tokens;
    if (event.type === 'turn.failed') failure = new Failed(event.error.message);
  }
  if (failure) throw failure;
  if (ran.status !== 0) throw new Error(`codex: ${ran.status}: ${ran.stderr}`);
}

// The status stands in the sentence alone.
function describe(error) {
  if (!(error instanceof Failed)) return null;
  const [, status] = /unexpected status (\d{3})/.exec(error.message) ?? [];
  return { class: error.name, status: status ? Number(status) : null, code: null, message: error.message };
}

await run({
  'codex responses': codex('gpt-4o-mini', connected),
  'codex-scripts responses': codex('gpt-6.1-sol', connected),
  'codex-builtin responses': codex('gpt-6.1-sol', builtin),
}, describe);
