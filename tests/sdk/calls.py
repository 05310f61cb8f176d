"""Makes the calls that it reads as JSON from standard input with the official OpenAI SDK, and prints what came of them.

Nothing of the SDK is configured beyond address, key and headers, unless a call says so: retries are its own.
"""

import json
import sys

import openai


def outcome(plan, call):
    options = {} if call["maxRetries"] is None else {"max_retries": call["maxRetries"]}
    client = openai.OpenAI(
        base_url=plan["baseUrl"],
        api_key=call["key"],
        default_headers={"X-Service-Run-Id": plan["runId"]},
        **options,
    )
    try:
        if call["name"] == "models":
            return {"models": [model.id for model in client.models.list()]}
        raw = client.chat.completions.with_raw_response.create(
            model="nano",
            max_tokens=call["maxTokens"],
            stream=call["stream"],
            messages=[{"role": "user", "content": call["name"]}],
        )
        completion = raw.parse()
        return {
            "content": completion.choices[0].message.content,
            "totalTokens": completion.usage.total_tokens,
            "allowId": raw.headers["x-service-allow-id"],
            "runId": raw.headers["x-service-run-id"],
        }
    except openai.APIStatusError as error:
        return {
            "class": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "type": error.type,
            "requestId": error.request_id,
        }


def main():
    plan = json.load(sys.stdin)
    print(json.dumps([outcome(plan, call) for call in plan["calls"]]))


main()
