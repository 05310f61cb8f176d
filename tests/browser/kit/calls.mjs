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

/** A call of the edge with a virtual key: `{status, headers, json}`. */
export function chat(key, { run, text = 'hello', tier } = {}) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  if (run) headers['x-service-run-id'] = run;
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], service_tier: tier });
  return fetch(`${plan.edge}/v1/chat/completions`, { method: 'POST', headers, body }).then(async (response) => ({
    status: response.status,
    headers: response.headers,
    json: await response.json(),
  }));
}
