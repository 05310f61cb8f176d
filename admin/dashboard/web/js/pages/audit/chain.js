/**
 * The state of the chain: its size and head, a verification with progress, and exports to keep elsewhere.
 */
import { html, useEffect, useRef, useState } from '../../html.js';
import { ApiError, fetchRaw, get } from '../../api.js';
import { save } from '../../download.js';
import { useLoad } from '../../load.js';
import { href } from '../../router.js';
import { Time } from '../../time.js';
import { count } from '../../words.js';
import { ActionButton, Button } from '../../ui/button.js';
import { Hash } from '../../ui/hash.js';
import { say } from '../../ui/live.js';
import { Facts, Progress, Section } from '../../ui/show.js';
import { Failed, Loaded } from '../../ui/state.js';
import { Export } from './export.js';
import { jsonLines } from './stream.js';

export function Chain() {
  const end = useLoad((signal) => get('/audit/checkpoint', {}, { signal }), []);
  return html`<${Section} title="Chain" lead="Every entry holds the hash of the one before it. Verifying computes all of them again and compares the end with the last signed checkpoint.">
    <div class="chain">
      ${end.error?.status === 409
    ? html`<p class="alert alert-error" role="alert" dir="auto"><strong>The trail is not what its checkpoint says.</strong> ${end.error.message} Verify to see where it breaks.</p>`
    : html`<${Loaded} load=${end} rows=${2} label="Loading the end of the chain">${(data) => html`<${End} end=${data} />`}<//>`}
      <${Verify} onDone=${end.reload} />
    </div>
  <//>`;
}

function End({ end }) {
  return html`<${Facts} rows=${[
    ['Entries', end.size.toLocaleString('en-US')],
    ['Head', html`<${Hash} of=${end.hash} what="the hash of the head" />`],
    ['As of', html`<${Time} at=${end.at} full />`],
  ]} />`;
}

/** State of the verification: `idle`, `running` with the progress, `done` with the last line, or `failed`. */
function Verify({ onDone }) {
  const [state, setState] = useState({ phase: 'idle' });
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const run = async () => {
    const control = new AbortController();
    abort.current = control;
    setState({ phase: 'running', checked: 0, total: 0 });
    try {
      const result = await verify(control.signal, (line) => setState({ phase: 'running', ...line }));
      setState({ phase: 'done', result });
      onDone();
    } catch (error) {
      if (control.signal.aborted) {
        setState({ phase: 'idle' });
        say('The verification was stopped.', 'info');
      } else setState({ phase: 'failed', error });
    }
  };
  const { phase } = state;
  return html`<div class="chain">
    ${phase === 'running' && html`<${Progress} label="Verifying" value=${state.checked} max=${state.total} />`}
    <div role="status">${phase === 'done' && html`<${Result} result=${state.result} />`}</div>
    ${phase === 'failed' && html`<${Failed} error=${state.error} />`}
    <div class="actions">
      ${phase === 'running' ? html`<${Button} onClick=${() => abort.current.abort()}>Stop<//>` : html`<${Button} kind="primary" onClick=${run}>${phase === 'idle' ? 'Verify now' : 'Verify again'}<//>`}
      <${ActionButton} run=${keepCheckpoint}>Download checkpoint<//>
      <${Export} />
    </div>
  </div>`;
}

async function verify(signal, onProgress) {
  const response = await fetchRaw('GET', '/audit/verify', { signal });
  try {
    for await (const line of jsonLines(response)) {
      if (line.done) return line;
      if (line.error) throw new ApiError(503, line.code, line.error);
      onProgress(line);
    }
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error;
  }
  throw new Error('The connection ended before the result was there. Nothing is known about the chain; verify again.');
}

/** @param {number|null} provenTo how many entries a signed checkpoint covers */
const covered = (provenTo) => (provenTo
  ? `Signed checkpoints cover it up to entry ${provenTo} only.`
  : 'No signed checkpoint covers it yet.');

/** Result of the verification. The first broken entry is a link. */
function Result({ result }) {
  const { ok, entries, firstBroken, endProven, provenTo, message } = result;
  if (!ok) {
    const seq = firstBroken?.seq ?? null;
    return html`<div class="alert alert-error"><p><strong>${seq === null ? 'The chain is broken.' : `The chain is broken at entry ${seq}.`}</strong>
        <span dir="auto"> ${firstBroken?.problem ?? message}</span></p>
      ${seq !== null && html`<p><a href=${href('/audit', { entry: seq })}>Look at entry ${seq}</a></p>`}</div>`;
  }
  if (entries === 0) return html`<div class="alert alert-ok"><p>${message}</p></div>`;
  return html`<div class=${endProven ? 'alert alert-ok' : 'alert alert-warn'}>
    <p><strong>${endProven ? 'The chain is intact.' : 'The chain is in order, but its end is not proven.'}</strong> ${count(entries, 'entry', 'entries')} verified.</p>
    <p dir="auto">${message}</p>
    ${!endProven && html`<p>${covered(provenTo)} Download one and keep it elsewhere.</p>`}</div>`;
}

async function keepCheckpoint() {
  const { note, keyName, size } = await get('/audit/checkpoint');
  const name = `checkpoint_${keyName.split('/').slice(1).join('_')}_${size}.txt`.replace(/[^A-Za-z0-9._-]/g, '_');
  save([note], name, 'text/plain;charset=utf-8');
  say(`Saved the checkpoint of ${count(size, 'entry', 'entries')}. Keep it where nobody who can change the store can change it.`);
}
