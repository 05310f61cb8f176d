/**
 * Client of the management API: sends the session's cookie, its CSRF token and the tab's mode. Failures are `ApiError`.
 */
import { parseExact } from './exact.js';
import { currentMode } from './router.js';
import { ENDED, session, signedIn, signedOut } from './session.js';

/** Prefix of paths that do not start with /api/. */
const BASE = '/api/v1';
/** Error codes of an ended session; the second comes from routes that also accept API keys, when the cookie is gone. */
const SIGNED_OUT = ['SESSION_REQUIRED', 'API_KEY_REQUIRED'];

/** An error answer; `code` and `message` are the server's. */
export class ApiError extends Error {
  /** @param {number} status 0 if no answer arrived */
  constructor(status, code, message, body = {}, headers = new Headers()) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.body = body;
    this.retryAfter = Number(headers.get('retry-after')) || null;
    this.requestId = headers.get('x-request-id');
  }

  /** The invalid field: the message begins with its name. */
  get field() {
    return /^([a-z][A-Za-z0-9_]*)\b/.exec(this.message)?.[1] ?? null;
  }
}

/** The server did not answer. */
export const unreachable = () => new ApiError(0, 'UNREACHABLE', 'The server cannot be reached. Check the connection and try again.');

/** Builds the address of an API path with its query, without parameters that are null, undefined or empty. */
export function url(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const text = new URLSearchParams(given).toString();
  return `${path.startsWith('/api/') ? path : BASE + path}${text ? `?${text}` : ''}`;
}

/** A new idempotency key: the server carries out requests with the same key once. */
export function newIdempotencyKey() {
  return crypto.getRandomValues(new Uint8Array(16)).reduce((text, byte) => text + byte.toString(16).padStart(2, '0'), 'web-');
}

function headersOf({ body, idempotencyKey, ifMatch, ifNoneMatch }, changes) {
  const { csrfToken } = session.get();
  const headers = { 'X-Tollgate-Mode': currentMode(), Accept: 'application/json' };
  if (changes && csrfToken) headers['X-CSRF-Token'] = csrfToken;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (idempotencyKey) headers['Idempotency-Key'] = idempotencyKey;
  if (ifMatch) headers['If-Match'] = `"${ifMatch}"`;
  if (ifNoneMatch) headers['If-None-Match'] = ifNoneMatch;
  return headers;
}

/** The unparsed response, for exports and streams. Throws like `request`. */
export async function fetchRaw(method, path, options = {}) {
  const { query, body, signal } = options;
  let response;
  try {
    response = await fetch(url(path, query), {
      method, signal, credentials: 'same-origin', redirect: 'error', cache: 'no-store',
      headers: headersOf(options, method !== 'GET'),
      body: body === undefined ? undefined : bodyText(body),
    });
  } catch (cause) {
    if (cause.name === 'AbortError') throw cause;
    throw unreachable();
  }
  if (response.ok) return response;
  throw await failure(response);
}

/** Serialises a body. An `Exact` becomes a JSON number with all its digits. */
function bodyText(body) {
  const numbers = [];
  const mark = `exact-${newIdempotencyKey()}-`;
  const text = JSON.stringify(body, (_name, value) => {
    if (!(value instanceof Exact)) return value;
    numbers.push(value.text);
    return `${mark}${numbers.length - 1}`;
  });
  return numbers.reduce((done, number, index) => done.replace(`"${mark}${index}"`, () => number), text);
}

/** A decimal that a body carries as JSON number with every digit. Create it from `typedAmount`. */
export class Exact {
  /** @param {string} text */
  constructor(text) {
    this.text = text.replace(/^0+(?=\d)/, '');
  }
}

async function failure(response) {
  let body = {};
  try {
    body = parseExact(await response.text());
  } catch {
    // The body is not from this server but from a proxy in between: only its status is known.
  }
  const code = body.code ?? 'HTTP';
  if (response.status === 401 && SIGNED_OUT.includes(code) && session.get().status === 'in') {
    signedOut(location.hash, ENDED);
  }
  const message = body.error ?? `The server answered ${response.status}.`;
  return new ApiError(response.status, code, message, body, response.headers);
}

const sources = new WeakMap();

/** The JSON text of an answer, for values that must be shown exactly as the server wrote them. */
export const sourceOf = (answer) => sources.get(answer) ?? '';

async function request(method, path, options) {
  let response;
  try {
    response = await fetchRaw(method, path, options);
  } catch (error) {
    if (!(await mayRepeat(error))) throw error;
    response = await fetchRaw(method, path, options);
  }
  const text = await response.text();
  const answer = parseExact(text);
  sources.set(answer, text);
  return answer;
}

/**
 * Reloads the session after an error that points to an outdated one. A new sign-in in another tab invalidates the CSRF
 * token of this tab: returns true if it is the same user, so the refused request, which changed nothing, can be sent
 * again. After a change of the role the pages offer other actions.
 */
async function mayRepeat({ status, code }) {
  if (status !== 403 || !['CSRF_FAILED', 'INSUFFICIENT_ROLE'].includes(code) || session.get().status !== 'in') return false;
  const before = session.get().user.id;
  return (await askWho()) && code === 'CSRF_FAILED' && session.get().user?.id === before;
}

/** Loads the signed-in user from the server: another person may have signed in in another tab. False on failure. */
export async function askWho() {
  try {
    signedIn(await get('/api/user/me'));
    return true;
  } catch {
    return false;
  }
}

/** @param {string} path @param {object} [query] @param {{signal?: AbortSignal}} [options] */
export const get = (path, query, options = {}) => request('GET', path, { ...options, query });
/** @param {{idempotencyKey?: string, ifMatch?: string|number, ifNoneMatch?: string}} [options] */
export const post = (path, body, options = {}) => request('POST', path, { ...options, body: body ?? {} });
export const patch = (path, body, options = {}) => request('PATCH', path, { ...options, body });
export const del = (path, options = {}) => request('DELETE', path, options);
/** Escapes one segment of a path. */
export const seg = encodeURIComponent;
