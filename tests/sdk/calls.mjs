// Makes the calls that it reads as JSON from standard input with the official OpenAI SDK, and prints what came of them.
//
// Nothing of the SDK is configured beyond address, key and headers, unless a call says so: retries are its own.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

// The SDK stands where the test has installed it, not beside this file.
const { default: OpenAI } = createRequire(process.argv[2] + '/')('openai');

async function outcome(plan, call) {
  const options = call.maxRetries === null ? {} : { maxRetries: call.maxRetries };
  const client = new OpenAI({
    baseURL: plan.baseUrl,
    apiKey: call.key,
    defaultHeaders: { 'X-Service-Run-Id': plan.runId },
    ...options,
  });
  try {
    if (call.name === 'models') {
      const models = [];
      for await (const model of client.models.list()) models.push(model.id);
      return { models };
    }
    const request = {
      model: 'nano',
      max_tokens: call.maxTokens,
      stream: call.stream,
      messages: [{ role: 'user', content: call.name }],
    };
    const { data, response } = await client.chat.completions.create(request).withResponse();
    return {
      content: data.choices[0].message.content,
      totalTokens: data.usage.total_tokens,
      allowId: response.headers.get('x-service-allow-id'),
      runId: response.headers.get('x-service-run-id'),
    };
  } catch (error) {
    if (!(error instanceof OpenAI.APIError) || error.status === undefined) throw error;
    return {
      class: error.constructor.name,
      status: error.status,
      code: error.code,
      type: error.type,
      requestId: error.requestID,
    };
  }
}

const plan = JSON.parse(readFileSync(0, 'utf8'));
const outcomes = [];
for (const call of plan.calls) outcomes.push(await outcome(plan, call));
console.log(JSON.stringify(outcomes));
