// Messages of a browser while a person uses it. A message that the journey does not expect is a fault.

/** Longest text that is kept of one message. */
const MESSAGE_MAX = 600;
/** Chromium's own line for an answer that is no success; the answer itself is judged instead. */
const LOAD = /^Failed to load resource: /;
/** A request that the page itself gave up, by leaving or by asking anew. It says nothing in the console. */
const GIVEN_UP = 'net::ERR_ABORTED';

const cut = (text) => (text.length > MESSAGE_MAX ? text.slice(0, MESSAGE_MAX) + '…' : text);

/** Notes everything that one browser context says. */
export class Watch {
  constructor(base) {
    this.base = base;
    this.faults = [];
    this.log = [];
    this.expected = [];
  }

  /** From now on, an answer with `status` (or a network error such as `net::ERR_CONNECTION_REFUSED`) is no fault where
   * the path matches `path`, a text or a regular expression. It has to come at least once. */
  expect(status, path) {
    this.expected.push({ status, path, seen: 0, must: true });
  }

  /** The same for what may come or not, as when nobody can say which of several requests is the first. */
  allow(status, path) {
    this.expected.push({ status, path, seen: 0, must: false });
  }

  isExpected(status, url) {
    const path = new URL(url).pathname;
    const fits = ({ status: one, path: where }) =>
      one === status && (typeof where === 'string' ? path === where : where.test(path));
    const found = this.expected.filter(fits);
    for (const one of found) one.seen += 1;
    return found.length > 0;
  }

  fault(text) {
    this.faults.push(cut(text));
    this.log.push(`FAULT ${cut(text)}`);
  }

  /** Attaches to every page that the context has or opens. */
  attach(context) {
    context.on('page', (page) => this.attachPage(page));
    context.on('console', (message) => this.heard(message));
    context.on('request', (request) => this.asked(request.url()));
    context.on('response', (response) => this.answered(response));
    context.on('requestfailed', (request) => this.failed(request));
  }

  attachPage(page) {
    page.on('pageerror', (error) => this.fault(`an exception nobody caught: ${error.stack ?? error}`));
    page.on('crash', () => this.fault(`the page crashed: ${page.url()}`));
    page.on('websocket', (socket) => this.fault(`a WebSocket to ${socket.url()}`));
    // The page asks with dialogs of its own. One of the browser's here is an injected alert().
    page.on('dialog', async (dialog) => {
      this.fault(`a dialog of the browser: ${dialog.type()} ${dialog.message()}`);
      await dialog.dismiss();
    });
    page.on('framenavigated', (frame) => {
      if (frame !== page.mainFrame()) this.fault(`a frame: ${frame.url()}`);
    });
  }

  heard(message) {
    const { url } = message.location();
    this.log.push(`${message.type()}: ${cut(message.text())} (${url})`);
    if (!['error', 'warning', 'assert'].includes(message.type())) return;
    // Its answer or failure is judged by `answered` and `failed`.
    if (LOAD.test(message.text()) && url.startsWith(this.base)) return;
    this.fault(`console ${message.type()}: ${message.text()} (${url})`);
  }

  asked(url) {
    if (/^(data|blob|about):/.test(url) || url.startsWith(this.base + '/')) return;
    this.fault(`a request to another host: ${url}`);
  }

  answered(response) {
    const [status, url] = [response.status(), response.url()];
    if (status < 400 || this.isExpected(status, url)) return;
    this.fault(`${response.request().method()} ${url} was answered ${status}`);
  }

  failed(request) {
    const why = request.failure()?.errorText ?? 'for no reason';
    if (why === GIVEN_UP || this.isExpected(why, request.url())) return;
    this.fault(`${request.method()} ${request.url()} failed: ${why}`);
  }

  /** Every fault, with what was expected and never came. */
  verdict() {
    const missing = this.expected.filter(({ must, seen }) => must && seen === 0);
    return [...this.faults, ...missing.map(({ status, path }) => `expected and never came: ${status} on ${path}`)];
  }
}
