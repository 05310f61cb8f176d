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
    let mut webhooks = Json::Object(Vec::new());
    for name in EventName::ALL.iter().chain([&EventName::WebhookTest]) {
        webhooks.set(name.as_str(), webhook(components, *name));
    }
    webhooks
}

fn webhook(components: &mut Components, event: EventName) -> Json {
    let name = event.as_str();
    let (says, fields) = described(event);
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
        ("summary", says.into()),
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
    let agent = Field::must(
        "agentId",
        nullable(field::is("AgentId")),
        "Null for the account's own wallet.",
    );
    let seq = Field::must(
        "auditSeq",
        field::count(1),
        "The number of the event's audit entry.",
    );
    let (says, fields) = match event {
        EventName::AgentRunCompleted => ("A run was ended as completed.", run()),
        EventName::AgentRunFailed => ("A run was ended as failed.", run()),
        EventName::AgentFrozen => ("An agent was frozen.", frozen()),
        EventName::AgentApprovalRequired => {
            let texts = [
                Field::must(
                    "recipient",
                    nullable(field::string()),
                    "Its first 200 characters.",
                ),
                Field::must(
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
                Field::must("reason", field::string(), "`injection_detected`"),
                Field::must("message", field::string(), "For people."),
                Field::must("field", nullable(field::string()), "Where the text stood."),
                Field::must(
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
            vec![Field::must("webhookId", field::is("WebhookId"), "")],
        ),
    };
    (says, [vec![agent, seq], fields].concat())
}

fn run() -> Vec<Field> {
    vec![
        Field::must("runId", field::string(), ""),
        Field::must("status", field::words(["completed", "failed"]), ""),
        Field::must("calls", nullable(field::count(0)), "Its approved calls."),
        Field::must("denied", nullable(field::count(0)), "Its denied calls."),
        usd("spentUsd", "What it was charged, in USD."),
        nanos("spentNanos"),
    ]
}

fn frozen() -> Vec<Field> {
    let authority = field::words(["user", "operator"]);
    vec![
        Field::must(
            "by",
            field::string(),
            "An API key's id, a user's id, or `operator`.",
        ),
        Field::must("authority", nullable(authority), "Who can lift it."),
        Field::must("at", field::time(), ""),
    ]
}

fn spend() -> Vec<Field> {
    let [amount, exact] = amount();
    vec![
        Field::must("intentId", field::is("IntentId"), ""),
        amount,
        exact,
        Field::must("currency", nullable(field::string()), ""),
        Field::must("runId", nullable(field::string()), ""),
    ]
}

fn deposit() -> Vec<Field> {
    let [amount, exact] = amount();
    vec![
        Field::must("walletId", field::count(1), "The wallet's number."),
        Field::must("owner", field::string(), "The agent, or `user`."),
        Field::must("transactionId", field::is("TransactionId"), ""),
        Field::must("reference", field::string(), "What the payment rail calls it."),
        Field::must("currency", field::string(), ""),
        amount,
        exact,
        usd("balance", "The wallet's balance after it, in USD."),
        nanos("balanceNanos"),
    ]
}

fn low_balance() -> Vec<Field> {
    vec![
        Field::must("owner", field::string(), "The agent, or `user`."),
        usd("balance", "The wallet's balance, in USD."),
        nanos("balanceNanos"),
        usd("threshold", "Its threshold, in USD."),
        nanos("thresholdNanos"),
        Field::must("cause", field::string(), "The type of the audit entry."),
    ]
}

fn violation() -> Vec<Field> {
    let reasons = Denial::ALL.iter().map(|denial| denial.reason());
    let reasons = reasons.chain(Reason::ALL.iter().map(|reason| reason.as_str()));
    let mut reasons: Vec<&str> = reasons.collect();
    reasons.sort_unstable();
    reasons.dedup();
    let always = vec![
        Field::must("source", field::words(["call", "spend"]), ""),
        Field::must("reason", field::words(reasons), "As the caller was told."),
        Field::must("message", field::string(), "For people."),
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
        Field::must("runId", nullable(field::string()), ""),
    ];
    // What only a call, a spend, or several violations together have.
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
        Field::given("decisionId", field::is("DecisionId"), "Of a call."),
        Field::given("keyId", nullable(field::string()), "Of a call: the virtual key."),
        Field::given("model", nullable(field::string()), "Of a call."),
        Field::given("intentId", field::is("IntentId"), "Of a spend."),
        Field::given("currency", nullable(field::string()), "Of a spend."),
        Field::given("recipient", nullable(field::string()), "Of a spend."),
        Field::given("count", field::count(2), "Of several together: how many."),
        Field::given("firstAt", field::time(), "Of several together."),
        Field::given("lastAt", field::time(), "Of several together."),
        Field::given(
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

fn usd(name: &'static str, says: &'static str) -> Field {
    Field::must(name, nullable(object([("type", "number".into())])), says)
}

fn nanos(name: &'static str) -> Field {
    Field::must(name, nullable(reference("NanoUsd")), "The same, exact.")
}
