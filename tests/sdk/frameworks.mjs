// The Vercel AI SDK: chat completions, responses and embeddings, streamed and not.

import { createRequire } from 'node:module';
import { run } from './plan.mjs';

// The packages stand where the test has installed them, not beside this file.
const required = createRequire(process.argv[2] + '/');
const { embed, generateText, stepCountIs, streamText, tool, jsonSchema } = required('ai');
const { createOpenAI } = required('@ai-sdk/openai');

const weather = tool({
  description: 'Says how the weather is in a city.',
  inputSchema: jsonSchema({
    type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false,
  }),
  execute: async ({ city }) => `rain in ${city}`,
});

const text = (api) => async (baseURL, call, seen) => {
  const openai = createOpenAI({ baseURL, apiKey: call.key });
  const request = {
    model: openai[api](call.model),
    messages: [{ role: 'user', content: call.text }],
  };
  // Else it repeats a call whose estimate stays charged: it does not read `x-should-retry`.
  if (!call.repeats) request.maxRetries = 0;
  if (call.usesTool) Object.assign(request, { tools: { weather_in: weather }, stopWhen: stepCountIs(3) });
  // Else a second turn refers to items that the provider has stored.
  if (api === 'responses' && !call.stores) request.providerOptions = { openai: { store: false } };
  for (let turn = 0; turn < call.turns; turn += 1) {
    const said = await (call.streamed ? streamed : whole)(request, seen);
    request.messages = [...request.messages, ...said, { role: 'user', content: call.text }];
  }
};

// One turn; the messages that it adds.
async function whole(request, seen) {
  const answer = await generateText(request);
  seen.text += answer.text;
  seen.tokens = answer.totalUsage.totalTokens;
  return answer.response.messages;
}

async function streamed(request, seen) {
  const answer = streamText({ ...request, onError() {} });
  for await (const part of answer.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') seen.text += part.text;
    if (part.type === 'finish') seen.tokens = part.totalUsage.totalTokens;
  }
  return (await answer.response).messages;
}

async function embeddings(baseURL, call, seen) {
  const openai = createOpenAI({ baseURL, apiKey: call.key });
  const answer = await embed({ model: openai.textEmbeddingModel('text-embedding-3-small'), value: call.text });
  seen.text = answer.embedding.join(',');
  seen.tokens = answer.usage.tokens;
}

// In the middle of a stream an error may be the provider's object, which is no `Error`.
function describe(error) {
  return {
    class: error?.name ?? typeof error,
    status: error?.statusCode ?? null,
    code: error?.data?.error?.code ?? error?.code ?? null,
    message: String(error?.message ?? error),
  };
}

await run({ 'vercel chat': text('chat'), 'vercel responses': text('responses'), 'vercel embeddings': embeddings }, describe);
