// The official OpenAI SDK: chat completions, responses and embeddings, streamed and not.
//
// Nothing of the SDK is configured beyond address and key, and a header where a call asks for the cost of its stream.

import { createRequire } from 'node:module';
import { run } from './plan.mjs';

// The SDK stands where the test has installed it, not beside this file.
const { default: OpenAI } = createRequire(process.argv[2] + '/')('openai');

const sdk = (baseURL, call) => {
  const headers = call.asksCost ? { 'X-Service-Stream-Cost': 'true' } : {};
  return new OpenAI({ baseURL, apiKey: call.key, defaultHeaders: headers });
};

async function chat(baseUrl, call, seen) {
  const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: call.text }] };
  const { completions } = sdk(baseUrl, call).chat;
  if (!call.streamed) {
    const completion = await completions.create(request);
    seen.text = completion.choices[0].message.content;
    seen.tokens = completion.usage.total_tokens;
    return;
  }
  const asked = call.asksUsage ? { stream_options: { include_usage: true } } : {};
  for await (const chunk of await completions.create({ ...request, ...asked, stream: true })) {
    if (chunk.usage) seen.tokens = chunk.usage.total_tokens;
    for (const choice of chunk.choices) seen.text += choice.delta.content ?? '';
    // Leaving the loop closes the stream.
    if (call.leaves && seen.text) return;
  }
}

const WEATHER = {
  type: 'function', name: 'weather_in', strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
};

async function responses(baseUrl, call, seen) {
  const request = { model: call.model, input: call.text };
  const api = sdk(baseUrl, call).responses;
  if (!call.usesTool) {
    await respond(api, call, request, seen);
    return;
  }
  // As OpenAI documents it: the output is sent back as it came, with what the tool said.
  request.tools = [WEATHER];
  const output = await respond(api, call, request, seen);
  const wanted = output.at(-1);
  const result = `rain in ${JSON.parse(wanted.arguments).city}`;
  const answered = { type: 'function_call_output', call_id: wanted.call_id, output: result };
  request.input = [{ role: 'user', content: call.text }, ...output, answered];
  await respond(api, call, request, seen);
}

// One turn; the output of the model.
async function respond(api, call, request, seen) {
  if (!call.streamed) {
    const response = await api.create(request);
    seen.text += response.output_text;
    seen.tokens = response.usage.total_tokens;
    return response.output;
  }
  let output = [];
  for await (const event of await api.create({ ...request, stream: true })) {
    if (event.type === 'response.output_text.delta') seen.text += event.delta;
    if (event.type === 'response.completed') {
      seen.tokens = event.response.usage.total_tokens;
      output = event.response.output;
    }
    if (call.leaves && seen.text) break;
  }
  return output;
}

async function embeddings(baseUrl, call, seen) {
  const answer = await sdk(baseUrl, call).embeddings.create({ model: 'text-embedding-3-small', input: call.text });
  seen.text = answer.data[0].embedding.join(',');
  seen.tokens = answer.usage.total_tokens;
}

function describe(error) {
  if (!(error instanceof OpenAI.APIError)) return null;
  const { status = null, code = null, message } = error;
  return { class: error.constructor.name, status, code, message };
}

await run({ 'openai chat': chat, 'openai responses': responses, 'openai embeddings': embeddings }, describe);
