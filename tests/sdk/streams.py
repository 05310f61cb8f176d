"""The official OpenAI SDK: chat completions, responses and embeddings, streamed and not.

Nothing of the SDK is configured beyond address and key, and a header where a call asks for the cost of its stream.
"""

import json

import openai

import plan


def sdk(base_url, call):
    headers = {"X-Service-Stream-Cost": "true"} if call["asksCost"] else {}
    return openai.OpenAI(base_url=base_url, api_key=call["key"], default_headers=headers)


def chat(base_url, call, seen):
    request = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": call["text"]}]}
    completions = sdk(base_url, call).chat.completions
    if not call["streamed"]:
        completion = completions.create(**request)
        seen["text"] = completion.choices[0].message.content
        seen["tokens"] = completion.usage.total_tokens
        return
    if call["asksUsage"]:
        request["stream_options"] = {"include_usage": True}
    stream = completions.create(stream=True, **request)
    for chunk in stream:
        if chunk.usage:
            seen["tokens"] = chunk.usage.total_tokens
        for choice in chunk.choices:
            seen["text"] += choice.delta.content or ""
        if call["leaves"] and seen["text"]:
            stream.close()
            return


WEATHER = {
    "type": "function",
    "name": "weather_in",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def responses(base_url, call, seen):
    request = {"model": call["model"], "input": call["text"]}
    api = sdk(base_url, call).responses
    if not call["usesTool"]:
        respond(api, call, request, seen)
        return
    # As OpenAI documents it: the output is sent back as it came, with what the tool said.
    request["tools"] = [WEATHER]
    output = respond(api, call, request, seen)
    wanted = output[-1]
    result = f"rain in {json.loads(wanted.arguments)['city']}"
    answered = {"type": "function_call_output", "call_id": wanted.call_id, "output": result}
    request["input"] = [{"role": "user", "content": call["text"]}, *output, answered]
    respond(api, call, request, seen)


def respond(api, call, request, seen):
    """One turn. Returns the output of the model."""
    if not call["streamed"]:
        response = api.create(**request)
        seen["text"] += response.output_text
        seen["tokens"] = response.usage.total_tokens
        return response.output
    output = None
    stream = api.create(stream=True, **request)
    for event in stream:
        if event.type == "response.output_text.delta":
            seen["text"] += event.delta
        if event.type == "response.completed":
            seen["tokens"] = event.response.usage.total_tokens
            output = event.response.output
        if call["leaves"] and seen["text"]:
            stream.close()
            break
    return output


def embeddings(base_url, call, seen):
    answer = sdk(base_url, call).embeddings.create(model="text-embedding-3-small", input=call["text"])
    seen["text"] = ",".join(map(str, answer.data[0].embedding))
    seen["tokens"] = answer.usage.total_tokens


if __name__ == "__main__":
    plan.run(
        {
            ("openai", "chat"): chat,
            ("openai", "responses"): responses,
            ("openai", "embeddings"): embeddings,
        }
    )
