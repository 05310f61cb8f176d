// Runs the snippets of the Connect page exactly as the page shows them, and prints what came of each. Input: `base`,
// `model`, `python` (the interpreter for each client) and `keys` (the virtual key for each client).

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLIENTS, KEY_NAME } from './connect.mjs';

const plan = JSON.parse(readFileSync(0, 'utf8'));
// Below the packages, where Node finds them from a file.
const work = mkdtempSync(join(process.argv[2], 'snippets-'));

// The command that runs the file of a snippet; that of curl is a command itself.
const programOf = (id) => ({ curl: 'sh', node: 'node' })[id] ?? plan.python[id];

function play({ id, blocks }) {
  const texts = blocks({ base: plan.base, model: plan.model });
  const { title, text } = texts.at(-1);
  // A file of the page's name; curl is called from a shell.
  const home = join(work, id);
  mkdirSync(home);
  const file = join(home, title.startsWith('hello.') ? title : 'hello.sh');
  writeFileSync(file, text);
  const ran = spawnSync(programOf(id), [file], {
    cwd: home,
    encoding: 'utf8',
    timeout: 120_000,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      [KEY_NAME]: plan.keys[id],
      // Nothing listens there: what is not for the edge fails at once.
      HTTPS_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1',
    },
  });
  const install = texts.find((block) => block.title === 'Install')?.text ?? null;
  return { id, install, status: ran.status, printed: ran.stdout, failure: ran.error?.message ?? ran.stderr };
}

try {
  // Codex has a test of its own, which also asks for more than one answer.
  console.log(JSON.stringify(CLIENTS.filter(({ id }) => id !== 'codex').map(play)));
} finally {
  rmSync(work, { recursive: true });
}
