"""Makes the calls of a plan that it reads as JSON from standard input, and prints what came of each as JSON."""

import json
import sys

import openai


def code_in(error):
    """The code in the body of an answer, which an exception of the SDK has as its own."""
    body = getattr(error, "body", None)
    return body.get("code") if isinstance(body, dict) else None


def outcome(make, errors, base_url, call):
    """What `make` saw of one call: text, tokens, and the exception that ended it, if it is one of `errors`."""
    seen = {"text": "", "tokens": None, "error": None}
    try:
        make(base_url, call, seen)
    except errors as error:
        seen["error"] = {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": getattr(error, "code", None) or code_in(error),
            "message": str(error),
        }
    return seen


def run(clients, errors=openai.APIError):
    """`clients` has a function for each client and API of the plan; `errors` are their exceptions."""
    plan = json.load(sys.stdin)
    outcomes = [
        outcome(clients[call["client"], call["api"]], errors, plan["baseUrl"], call)
        for call in plan["calls"]
    ]
    # The last line: libraries print what they like before it.
    print(json.dumps(outcomes))
