/**
 * Snippets for the supported clients. Each uses the edge's address and the model, and reads the key from the
 * environment, so that no secret is in code. Addresses and models contain no character that ends a string in any of
 * these languages.
 */

/** Environment variable from which the snippets read the key. */
export const KEY_NAME = 'TOLLGATE_KEY';
const SAY = 'Say hello in one word.';

const curl = ({ base, model }) => `curl ${base}/chat/completions \\
  -H "Authorization: Bearer $${KEY_NAME}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "${SAY}"}]}'`;

const python = ({ base, model }) => `import os
from openai import OpenAI

client = OpenAI(base_url="${base}", api_key=os.environ["${KEY_NAME}"])
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "${SAY}"}],
)
print(answer.choices[0].message.content)`;

const node = ({ base, model }) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}", apiKey: process.env.${KEY_NAME} });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "${SAY}" }],
});
console.log(answer.choices[0].message.content);`;

const langchain = ({ base, model }) => `import os
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="${model}",
    base_url="${base}",
    api_key=os.environ["${KEY_NAME}"],
)
print(model.invoke("${SAY}").content)`;

const litellm = ({ base, model }) => `import os
import litellm

answer = litellm.completion(
    model="openai/${model}",
    api_base="${base}",
    api_key=os.environ["${KEY_NAME}"],
    messages=[{"role": "user", "content": "${SAY}"}],
)
print(answer.choices[0].message.content)`;

const codex = ({ base, model }) => `model = "${model}"
model_provider = "tollgate"
web_search = "disabled"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${base}"
env_key = "${KEY_NAME}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0`;

/** `blocks` returns the texts to copy, each with a title; `note` is a remark on the client. */
export const CLIENTS = [
  { id: 'curl', label: 'curl', blocks: (use) => [{ title: 'In a shell', text: curl(use) }] },
  { id: 'python', label: 'Python', blocks: (use) => [{ title: 'Install', text: 'pip install openai' }, { title: 'hello.py', text: python(use) }] },
  { id: 'node', label: 'Node.js', blocks: (use) => [{ title: 'Install', text: 'npm install openai' }, { title: 'hello.mjs', text: node(use) }] },
  { id: 'langchain', label: 'LangChain', blocks: (use) => [{ title: 'Install', text: 'pip install langchain-openai' }, { title: 'hello.py', text: langchain(use) }] },
  { id: 'litellm', label: 'LiteLLM', blocks: (use) => [{ title: 'Install', text: 'pip install litellm' }, { title: 'hello.py', text: litellm(use) }] },
  { id: 'codex', label: 'Codex', blocks: (use) => [{ title: '~/.codex/config.toml', text: codex(use) }, { title: 'Run', text: 'codex exec "Say hello in one word."' }],
    note: 'Codex streams and calls the Responses API. Both are switched on by the operator: proxy.streaming and proxy.responses. Without them its calls are answered with 404 or 400. Web search runs at the provider, so it is refused. Codex repeats a failed call up to 30 times, and each repetition can be charged; the last two lines stop that.' },
];
