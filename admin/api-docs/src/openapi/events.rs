//! The bodies of webhooks, one for each event, as `domain::event` makes them (tests/webhooks compares).

use super::operation::fields_schema;
use domain::denial::Denial;
use domain::event::EventName;
use domain::reason::Reason;
use endpoint::doc::field::{self, Field};
use endpoint::doc::nullable;
use openapi::{Components, Json, components::reference, object};

/// `webhooks` of the document; the schemas go to its components.
pub(super) fn webhooks(components: &mut Components) -> Json {
    let mut webhooks = object([]);
    for name in EventName::ALL.iter().chain([&EventName::WebhookTest]) {
        webhooks.set(name.as_str(), webhook(components, *name));
    }
    webhooks
}

fn webhook(components: &mut Components, event: EventName) -> Json {
    let name = event.as_str();
    let (description, fields) = described(event);
    let title = title(name);
    let data = components.named(&format!("{title}Data"), fields_schema(&fields));
    let word = || object([("type", "string".into()), ("const", name.into())]);
    let properties = object([
        ("type", word()),
        ("event", word()),
        (
            "timestamp",
            field::time().with("description", "When it happened."),
        ),
        ("data", data),
    ]);
    let body = object([
        ("type", "object".into()),
        ("description", "The fields of `data` stand beside it, too.".into()),
        ("required", vec!["type", "event", "timestamp", "data"].into()),
        ("properties", properties),
    ]);
    let body = components.named(&format!("{title}Event"), body);
    let content = object([("application/json", object([("schema", body)]))]);
    let accepted = object([("description", "Any 2xx accepts the delivery.".into())]);
    let operation = object([
        ("operationId", format!("on{title}").into()),
        ("summary", description.into()),
        ("tags", vec!["Webhooks"].into()),
        ("security", Json::List(Vec::new())),
        (
            "requestBody",
            object([("required", true.into()), ("content", content)]),
        ),
        ("responses", object([("2XX", accepted)])),
    ]);
    object([("post", operation)])
}

/// `agent.run.completed` as `AgentRunCompleted`.
fn title(name: &str) -> String {
    let parts = name.split(['.', '_']);
    let upper = parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]);
    upper.collect()
}

/// The event's description and the fields of its data.
fn described(event: EventName) -> (&'static str, Vec<Field>) {
    let agent = Field::required(
        "agentId",
        nullable(field::is("AgentId")),
        "Null for the account's own wallet.",
    );
    let seq = Field::required(
        "auditSeq",
        field::count(1),
        "The number of the event's audit entry.",
    );
    let (description, fields) = match event {
        EventName::AgentRunCompleted => ("A run was ended as completed.", run()),
        EventName::AgentRunFailed => ("A run was ended as failed.", run()),
        EventName::AgentFrozen => ("An agent was frozen.", frozen()),
        EventName::AgentApprovalRequired => {
            let texts = [
                Field::required(
                    "recipient",
                    nullable(field::string()),
                    "Its first 200 characters.",
                ),
                Field::required(
                    "description",
                    nullable(field::string()),
                    "Its first 200 characters.",
                ),
            ];
            ("A spend waits for an approval.", [spend(), texts.into()].concat())
        }
        EventName::WalletDeposit => ("A deposit is confirmed.", deposit()),
        EventName::WalletLowBalance => ("A debit took a wallet below its threshold.", low_balance()),
        EventName::PolicyViolation => ("Cap, a policy or the plan denied a call or a spend.", violation()),
        EventName::AuditInjectionDetected => {
            let found = [
                Field::required("reason", field::string(), "`injection_detected`"),
                Field::required("message", field::string(), "For people."),
                Field::required("field", nullable(field::string()), "Where the text stood."),
                Field::required(
                    "pattern",
                    nullable(field::string()),
                    "The built-in pattern, or `patterns[n]` of the operator's.",
                ),
            ];
            (
                "A spend was blocked, since its text tries to instruct the agent.",
                [spend(), found.into()].concat(),
            )
        }
        EventName::WebhookTest => (
            "`POST /webhooks/{id}/test`; nobody subscribes to it.",
            vec![Field::required("webhookId", field::is("WebhookId"), "")],
        ),
    };
    (description, [vec![agent, seq], fields].concat())
}

fn run() -> Vec<Field> {
    vec![
        Field::required("runId", field::string(), ""),
        Field::required("status", field::words(["completed", "failed"]), ""),
        Field::required("calls", nullable(field::count(0)), "Its approved calls."),
        Field::required("denied", nullable(field::count(0)), "Its denied calls."),
        usd("spentUsd", "Its charge in USD."),
        nanos("spentNanos"),
    ]
}

fn frozen() -> Vec<Field> {
    let authority = field::words(["user", "operator"]);
    vec![
        Field::required(
            "by",
            field::string(),
            "An API key's id, a user's id, or `operator`.",
        ),
        Field::required("authority", nullable(authority), "Who can lift it."),
        Field::required("at", field::time(), ""),
    ]
}

fn spend() -> Vec<Field> {
    let [amount, exact] = amount();
    vec![
        Field::required("intentId", field::is("IntentId"), ""),
        amount,
        exact,
        Field::required("currency", nullable(field::string()), ""),
        Field::required("runId", nullable(field::string()), ""),
    ]
}

fn deposit() -> Vec<Field> {
    let [amount, exact] = amount();
    vec![
        Field::required("walletId", field::count(1), "The wallet's number."),
        Field::required("owner", field::string(), "The agent, or `user`."),
        Field::required("transactionId", field::is("TransactionId"), ""),
        Field::required("reference", field::string(), "The reference of the payment rail."),
        Field::required("currency", field::string(), ""),
        amount,
        exact,
        usd("balance", "The wallet's balance after it, in USD."),
        nanos("balanceNanos"),
    ]
}

fn low_balance() -> Vec<Field> {
    vec![
        Field::required("owner", field::string(), "The agent, or `user`."),
        usd("balance", "The wallet's balance, in USD."),
        nanos("balanceNanos"),
        usd("threshold", "Its threshold, in USD."),
        nanos("thresholdNanos"),
        Field::required("cause", field::string(), "The type of the audit entry."),
    ]
}

fn violation() -> Vec<Field> {
    let reasons = Denial::ALL.iter().map(|denial| denial.reason());
    let reasons = reasons.chain(Reason::ALL.iter().map(|reason| reason.as_str()));
    let mut reasons: Vec<&str> = reasons.collect();
    reasons.sort_unstable();
    reasons.dedup();
    let always = vec![
        Field::required("source", field::words(["call", "spend"]), ""),
        Field::required(
            "reason",
            field::words(reasons),
            "The reason in the answer to the caller.",
        ),
        Field::required("message", field::string(), "For people."),
        usd(
            "limit",
            "Of the check that decided, in USD; of `plan_agent_limit` a number of agents.",
        ),
        nanos("limitNanos"),
        usd(
            "spent",
            "What was counted before, in USD; of `plan_agent_limit` a number of agents.",
        ),
        nanos("spentNanos"),
        Field::required("runId", nullable(field::string()), ""),
    ];
    // Fields of only a call, a spend, or several violations together.
    let amounts = amount().into_iter().chain([
        usd("estimateUsd", "Of a call, in USD."),
        nanos("estimateNanos"),
        usd("held", "Of a call: held by calls under way, in USD."),
        nanos("heldNanos"),
    ]);
    let amounts = amounts.map(|field| Field {
        is_required: false,
        ..field
    });
    let others = vec![
        Field::optional("decisionId", field::is("DecisionId"), "Of a call."),
        Field::optional("keyId", nullable(field::string()), "Of a call: the virtual key."),
        Field::optional("model", nullable(field::string()), "Of a call."),
        Field::optional("intentId", field::is("IntentId"), "Of a spend."),
        Field::optional("currency", nullable(field::string()), "Of a spend."),
        Field::optional("recipient", nullable(field::string()), "Of a spend."),
        Field::optional("count", field::count(2), "Of several together: how many."),
        Field::optional("firstAt", field::time(), "Of several together."),
        Field::optional("lastAt", field::time(), "Of several together."),
        Field::optional(
            "firstAuditSeq",
            field::count(1),
            "Of several together: the first one's entry.",
        ),
    ];
    always.into_iter().chain(amounts).chain(others).collect()
}

fn amount() -> [Field; 2] {
    [usd("amount", "In USD."), nanos("amountNanos")]
}

fn usd(name: &'static str, description: &'static str) -> Field {
    Field::required(name, nullable(object([("type", "number".into())])), description)
}

fn nanos(name: &'static str) -> Field {
    Field::required(name, nullable(reference("NanoUsd")), "The same, exact.")
}
