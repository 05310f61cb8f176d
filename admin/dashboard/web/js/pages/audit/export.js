/**
 * Export of the whole trail as a file, if it fits into the browser's memory. A larger trail needs the command line.
 */
import { html, useEffect, useRef, useState } from '../../html.js';
import { curl } from '../../curl.js';
import { download } from '../../download.js';
import { currentMode } from '../../router.js';
import { session } from '../../session.js';
import { count } from '../../words.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { say } from '../../ui/live.js';
import { CodeLine } from '../../ui/secret.js';
import { Progress } from '../../ui/show.js';

/** Most entries that the browser keeps in memory until the file is complete: some 200 MB. */
const ENTRIES_MAX = 400_000;
const LINE_FEED = 10;

class TooLong extends Error {}

/** The export button, with a dialog that shows the progress. */
export function Export() {
  const [state, setState] = useState(null);
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const close = () => {
    abort.current?.abort();
    setState(null);
  };
  const run = async () => {
    const control = new AbortController();
    abort.current = control;
    setState({ phase: 'running', done: 0, total: 0 });
    try {
      const total = await keep(control.signal, (done, all) => setState({ phase: 'running', done, total: all }));
      setState(null);
      say(`Saved ${count(total, 'entry', 'entries')}.`);
    } catch (error) {
      if (control.signal.aborted) return;
      if (error instanceof TooLong) setState({ phase: 'long', total: Number(error.message) });
      else {
        setState(null);
        say(`The export broke off, and nothing was saved: ${error.message}`, 'error');
      }
    }
  };
  return html`<${Button} onClick=${run}>Download export<//>
    ${state?.phase === 'running' && html`<${Dialog} title="Exporting the trail" onClose=${close}>
      <${Progress} label="Entries" value=${state.done} max=${state.total} />
      <div class="actions"><${Button} onClick=${close}>Cancel<//></div>
    <//>`}
    ${state?.phase === 'long' && html`<${Long} total=${state.total} onClose=${close} />`}`;
}

async function keep(signal, onProgress) {
  let [done, total] = [0, 0];
  await download('/audit/export', {
    signal, name: 'audit.jsonl',
    begin: (headers) => {
      total = Number(headers.get('x-service-audit-size'));
      if (total > ENTRIES_MAX) throw new TooLong(String(total));
      onProgress(0, total);
    },
    onChunk: (chunk) => {
      done += chunk.reduce((lines, byte) => lines + (byte === LINE_FEED ? 1 : 0), 0);
      onProgress(done, total);
    },
  });
  return done;
}

function Long({ total, onClose }) {
  const { account } = session.get();
  const mode = currentMode();
  const cli = `tollgate-admin audit export --account ${account.id}${mode === 'test' ? ' --mode test' : ''} --out audit.jsonl`;
  const api = curl('/audit/export', { options: '-OJ' });
  return html`<${Dialog} title="Too long for a browser" onClose=${onClose} wide>
    <p>The trail has ${count(total, 'entry', 'entries')}, more than a browser should hold in memory. These write it to a file as it comes:</p>
    <${CodeLine} label="With an API key of this mode" text=${api} what="the command" />
    <${CodeLine} label="For the operator" text=${cli} what="the operator’s command" />
    <div class="actions"><${Button} kind="primary" onClick=${onClose}>Close<//></div>
  <//>`;
}
