// Calls that a journey makes without the browser: of the management API with a key, and of the edge as an agent.

import { plan } from './stage.mjs';

async function send(base, key, method, path, body) {
  const headers = { authorization: `Bearer ${key}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text || 'null') };
}

/** The management API with a key: `await api(key)('POST', '/agents', {…})` gives the answer's JSON, or throws. */
export function api(key) {
  return async (method, path, body) => {
    const answer = await send(plan.base + '/api/v1', key, method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  };
}

/** A request to the edge with a virtual key: `{status, headers, text, json}`; the text of a stream is not JSON. */
export async function invoke(key, path, body, { run } = {}) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  if (run) headers['x-service-run-id'] = run;
  const response = await fetch(plan.edge + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  return { status: response.status, headers: response.headers, text, json: isStream ? null : JSON.parse(text) };
}

/** A chat completion of the edge. */
export const chat = (key, { run, text = 'hello', tier, stream } = {}) =>
  invoke(key, '/v1/chat/completions',
    { model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], service_tier: tier, stream }, { run });

/** A response of the edge. */
export const respond = (key, { run, text = 'hello', stream } = {}) =>
  invoke(key, '/v1/responses', { model: 'gpt-4o-mini', input: text, stream }, { run });

/** An embedding of the edge. */
export const embed = (key, { run, text = 'hello' } = {}) =>
  invoke(key, '/v1/embeddings', { model: 'text-embedding-3-small', input: text }, { run });
