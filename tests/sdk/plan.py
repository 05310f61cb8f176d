"""Makes the calls of a plan that it reads as JSON from standard input, and prints what came of each as JSON."""

import json
import sys

import openai


def outcome(make, base_url, call):
    """What `make` saw of one call: text, tokens, and the exception that ended it, if it is one of the SDK's."""
    seen = {"text": "", "tokens": None, "error": None}
    try:
        make(base_url, call, seen)
    except openai.APIError as error:
        seen["error"] = {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": error.code,
            "message": str(error),
        }
    return seen


def run(clients):
    """`clients` has a function for each client and API of the plan."""
    plan = json.load(sys.stdin)
    outcomes = [
        outcome(clients[call["client"], call["api"]], plan["baseUrl"], call)
        for call in plan["calls"]
    ]
    # The last line: libraries print what they like before it.
    print(json.dumps(outcomes))
