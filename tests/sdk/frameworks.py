"""LangChain, the OpenAI Agents SDK, LiteLLM, Pydantic AI: chat completions, responses, embeddings, streamed and not.

They are given address and key, and told to keep to them: no traces to OpenAI, no price list or vocabulary from the net.
"""

import asyncio
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import agents
import litellm
import openai
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic_ai import Agent, Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

import plan

agents.set_tracing_disabled(True)
litellm.suppress_debug_info = True

# The agents' clients keep their connections from call to call.
LOOP = asyncio.new_event_loop()


def weather_in(city: str) -> str:
    """Says how the weather is in a city."""
    return f"rain in {city}"


def delta(event):
    """The text of an event of the Responses API."""
    return event.delta if event.type == "response.output_text.delta" else ""


def langchain(use_responses):
    def make(base_url, call, seen):
        model = ChatOpenAI(
            model=call["model"], base_url=base_url, api_key=call["key"], use_responses_api=use_responses
        )
        messages = [("user", call["text"])]
        if call["usesTool"]:
            model = model.bind_tools([weather_in])
        answer = ask(model, call, messages, seen)
        for _ in range(1, call["turns"]):
            messages += [answer, ("user", call["text"])]
            answer = ask(model, call, messages, seen)
        if call["usesTool"]:
            (wanted,) = answer.tool_calls
            result = weather_in(**wanted["args"])
            messages += [answer, {"role": "tool", "content": result, "tool_call_id": wanted["id"]}]
            ask(model, call, messages, seen)

    return make


def ask(model, call, messages, seen):
    """One turn of LangChain."""
    if call["streamed"]:
        answer = None
        for chunk in model.stream(messages):
            seen["text"] += str(chunk.text)
            answer = chunk if answer is None else answer + chunk
    else:
        answer = model.invoke(messages)
        seen["text"] += str(answer.text)
    seen["tokens"] = (answer.usage_metadata or {}).get("total_tokens")
    return answer


def langchain_embeddings(base_url, call, seen):
    # Without this it counts tokens first, with a vocabulary from the net.
    model = OpenAIEmbeddings(
        model="text-embedding-3-small", base_url=base_url, api_key=call["key"], check_embedding_ctx_length=False
    )
    seen["text"] = ",".join(map(str, model.embed_query(call["text"])))


def agents_sdk(use_responses, store=None):
    def make(base_url, call, seen):
        LOOP.run_until_complete(run(base_url, call, seen))

    async def run(base_url, call, seen):
        provider = agents.OpenAIProvider(
            base_url=base_url, api_key=call["key"], use_responses=use_responses
        )
        tools = [agents.function_tool(weather_in)] if call["usesTool"] else []
        agent = agents.Agent(
            name="helper",
            instructions="Be brief.",
            model=call["model"],
            tools=tools,
            model_settings=agents.ModelSettings(store=store),
        )
        config = agents.RunConfig(model_provider=provider)
        said = []
        for _ in range(call["turns"]):
            said.append({"role": "user", "content": call["text"]})
            if call["streamed"]:
                result = agents.Runner.run_streamed(agent, said, run_config=config)
                async for event in result.stream_events():
                    if event.type == "raw_response_event":
                        seen["text"] += delta(event.data)
            else:
                result = await agents.Runner.run(agent, said, run_config=config)
                seen["text"] += result.final_output
            seen["tokens"] = result.context_wrapper.usage.total_tokens or None
            said = result.to_input_list()

    return make


def litellm_chat(base_url, call, seen):
    request = {
        "model": "openai/gpt-4o-mini",
        "api_base": base_url,
        "api_key": call["key"],
        "messages": [{"role": "user", "content": call["text"]}],
    }
    if not call["streamed"]:
        answer = litellm.completion(**request)
        seen["text"] = answer.choices[0].message.content
        seen["tokens"] = answer.usage.total_tokens
        return
    for chunk in litellm.completion(stream=True, stream_options={"include_usage": True}, **request):
        seen["text"] += chunk.choices[0].delta.content or "" if chunk.choices else ""
        if getattr(chunk, "usage", None):
            seen["tokens"] = chunk.usage.total_tokens


def litellm_responses(base_url, call, seen):
    request = {
        "model": f"openai/{call['model']}",
        "api_base": base_url,
        "api_key": call["key"],
        "input": call["text"],
    }
    if not call["usesTool"]:
        litellm_response(call, request, seen)
        return
    request["tools"] = [
        {
            "type": "function",
            "name": "weather_in",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        }
    ]
    output = litellm_response(call, request, seen)
    output = [item if isinstance(item, dict) else item.model_dump() for item in output]
    result = weather_in(**json.loads(output[-1]["arguments"]))
    answered = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": result}
    request["input"] = [{"role": "user", "content": call["text"]}, *output, answered]
    litellm_response(call, request, seen)


def litellm_response(call, request, seen):
    """One turn of LiteLLM. Returns the output of the model."""
    if not call["streamed"]:
        answer = litellm.responses(**request)
        seen["text"] += answer.output_text
        seen["tokens"] = answer.usage.total_tokens
        return answer.output
    output = None
    for event in litellm.responses(stream=True, **request):
        seen["text"] += delta(event)
        if event.type == "response.completed":
            seen["tokens"] = event.response.usage.total_tokens
            output = event.response.output
    return output


def litellm_embeddings(base_url, call, seen):
    answer = litellm.embedding(
        model="openai/text-embedding-3-small", api_base=base_url, api_key=call["key"], input=[call["text"]]
    )
    seen["text"] = ",".join(map(str, answer.data[0]["embedding"]))
    seen["tokens"] = answer.usage.total_tokens


def pydantic_ai(model_class):
    def make(base_url, call, seen):
        LOOP.run_until_complete(run(base_url, call, seen))

    async def run(base_url, call, seen):
        provider = OpenAIProvider(base_url=base_url, api_key=call["key"])
        tools = [weather_in] if call["usesTool"] else []
        agent = Agent(model_class(call["model"], provider=provider), tools=tools)
        said = None
        for _ in range(call["turns"]):
            if call["streamed"]:
                async with agent.run_stream(call["text"], message_history=said) as result:
                    async for piece in result.stream_text(delta=True, debounce_by=None):
                        seen["text"] += piece
            else:
                result = await agent.run(call["text"], message_history=said)
                seen["text"] += result.output
            seen["tokens"] = result.usage.total_tokens
            said = result.all_messages()

    return make


def pydantic_ai_embeddings(base_url, call, seen):
    provider = OpenAIProvider(base_url=base_url, api_key=call["key"])
    model = Embedder(OpenAIEmbeddingModel("text-embedding-3-small", provider=provider))
    answer = LOOP.run_until_complete(model.embed_query(call["text"]))
    seen["text"] = ",".join(map(str, answer.embeddings[0]))
    seen["tokens"] = answer.usage.input_tokens


plan.run(
    {
        ("langchain", "chat"): langchain(False),
        ("langchain", "responses"): langchain(True),
        ("langchain", "embeddings"): langchain_embeddings,
        ("agents", "chat"): agents_sdk(False),
        ("agents", "responses"): agents_sdk(True),
        ("agents-unstored", "responses"): agents_sdk(True, store=False),
        ("litellm", "chat"): litellm_chat,
        ("litellm", "responses"): litellm_responses,
        ("litellm", "embeddings"): litellm_embeddings,
        ("pydantic-ai", "chat"): pydantic_ai(OpenAIChatModel),
        ("pydantic-ai", "responses"): pydantic_ai(OpenAIResponsesModel),
        ("pydantic-ai", "embeddings"): pydantic_ai_embeddings,
    },
    (openai.APIError, ModelAPIError),
)
