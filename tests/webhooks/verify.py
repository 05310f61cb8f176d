"""Verifies deliveries with the Standard Webhooks library: one JSON object a line, {secret, headers, body}; answers a line each."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    delivery = json.loads(line)
    try:
        event = Webhook(delivery["secret"]).verify(delivery["body"].encode(), delivery["headers"])
        print("verified", event["type"])
    except WebhookVerificationError as error:
        print("refused", error)
