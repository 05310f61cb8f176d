"""LlamaIndex: chat completions, responses and embeddings, streamed and not.

It runs on an earlier release of OpenAI's SDK than the other frameworks do, so it has an environment of its own.
"""

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI, OpenAIResponses

import plan


def weather_in(city: str) -> str:
    """Says how the weather is in a city."""
    return f"rain in {city}"


def options(base_url, call):
    chosen = {"api_base": base_url, "api_key": call["key"]}
    # Else it repeats a call whose estimate stays charged: its retries do not read `x-should-retry`.
    return chosen if call["repeats"] else chosen | {"max_retries": 0}


def text(model_class):
    def make(base_url, call, seen):
        model = model_class(model=call["model"], **options(base_url, call))
        tools = [FunctionTool.from_defaults(weather_in)] if call["usesTool"] else []
        messages = [ChatMessage(role="user", content=call["text"])]
        answer = ask(model, call, tools, messages, seen)
        for _ in range(1, call["turns"]):
            messages += [answer.message, ChatMessage(role="user", content=call["text"])]
            answer = ask(model, call, tools, messages, seen)
        if tools:
            (wanted,) = model.get_tool_calls_from_response(answer)
            result = weather_in(**wanted.tool_kwargs)
            reference = {"tool_call_id": wanted.tool_id}
            messages += [
                answer.message,
                ChatMessage(role="tool", content=result, additional_kwargs=reference),
            ]
            ask(model, call, tools, messages, seen)

    return make


def ask(model, call, tools, messages, seen):
    """One turn."""
    if call["streamed"]:
        answer = None
        for answer in model.stream_chat_with_tools(tools, chat_history=messages):
            seen["text"] += answer.delta or ""
        return answer
    answer = model.chat_with_tools(tools, chat_history=messages)
    seen["text"] += answer.message.content or ""
    seen["tokens"] = answer.raw.usage.total_tokens
    return answer


def embeddings(base_url, call, seen):
    model = OpenAIEmbedding(model="text-embedding-3-small", **options(base_url, call))
    seen["text"] = ",".join(map(str, model.get_text_embedding(call["text"])))


plan.run(
    {
        ("llamaindex", "chat"): text(OpenAI),
        ("llamaindex", "responses"): text(OpenAIResponses),
        ("llamaindex", "embeddings"): embeddings,
    }
)
