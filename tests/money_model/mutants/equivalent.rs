//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const KEYED: &str = "the id of a record and its life are both given or both empty";
const POLICY: &str = "a policy in force has all fields, an unset limit being an empty text";
const ROW: &str = "what is given together is empty together: id and row, amount and words, intent and heads";

const SPAN: &str = "the spans of our time have larger numbers than 0 and 1";

const OF_SPENDS: &str = "a slot that a spend uses is set to what it is; the condition saves a call";

const OF_TEXTS: &str = "agents have descriptions, so the counter is there; the condition saves a call";

const CLAIM: &str =
    "who keeps a refusal under another id holds the claim of its key, so nothing else is there";

/// Name of the change, and why it changes nothing.
pub const LIST: &[(&str, &str)] = &[
    (
        "script/cap: local charges = amount > 0 | 24: > -> >=",
        "no spend is of 0; the ledger's mutants change it in calls, whose estimate can be 0",
    ),
    (
        "script/cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 56: '' -> 'x'",
        POLICY,
    ),
    (
        "script/cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 72: '' -> 'x'",
        POLICY,
    ),
    (
        "script/cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 88: '' -> 'x'",
        POLICY,
    ),
    (
        "script/cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 106: '' -> 'x'",
        POLICY,
    ),
    (
        "script/kept_text: if bytes ~= 0 then call('HINCRBY', KEYS[1], format('%s_kept_text', ARGV[1]), bytes) end | 13: 0 -> 1",
        OF_TEXTS,
    ),
    (
        "script/kept_text: if bytes ~= 0 then call('HINCRBY', KEYS[1], format('%s_kept_text', ARGV[1]), bytes) end | 4: bytes ~= 0 -> true",
        OF_TEXTS,
    ),
    (
        "script/kept_text: local KEY_BYTES = 400 | 19: 400 -> 401",
        "no key is stored or deleted by the script in which this file is changed",
    ),
    (
        "script/money: if not arrived then count_kept_text(math.max(#line - LONG_TRANSACTION, 0)) end | 4: not arrived -> true",
        "nothing arrives by the script in which this file is changed",
    ),
    (
        "spend/spend: elseif slot and slot ~= '1' then | 25: '1' -> '0'",
        OF_SPENDS,
    ),
    (
        "spend/spend: if named then run_spent, run_last, run_status = unpack(call('HMGET', KEYS[16], 'spent', 'last', 'status')) end | 4: named -> true",
        "the run of a spend that named none has no record",
    ),
    (
        "spend/spend: if run_status then call('HDEL', KEYS[16], 'status', 'ended') end | 4: run_status -> true",
        "fields that are not there cannot be removed; the condition saves a call",
    ),
    (
        "deposit/confirm: count_refusal(ARGV[6], ARGV[7]) | 20: 6 -> 7",
        KEYED,
    ),
    (
        "deposit/confirm: if is_refusal_over(ARGV[6], ARGV[7]) then return over_budget('refusals') end | 25: 6 -> 7",
        KEYED,
    ),
    (
        "deposit/make: if ARGV[7] ~= '' and there[1] == ARGV[3] and there[2] == ARGV[4] and there[3] == ARGV[13] and there[6] == ARGV[6] then | 9: 7 -> 8",
        KEYED,
    ),
    (
        "escrow/create: if ARGV[9] ~= '' then call('HSET', KEYS[15], ARGV[9], ARGV[10]) end | 9: 9 -> 10",
        ROW,
    ),
    (
        "number/number: local last = tonumber(call('GET', KEYS[1]) or '0') | 47: '0' -> '1'",
        "a count is never below the milliseconds since 2026",
    ),
    (
        "script/run: local EXPIRED_MAX = 10 | 21: 10 -> 11",
        "no run ends in the 35 days of a check of money; the ledger's checks, where runs end, notice this line",
    ),
    (
        "script/agent_exists: if string.sub(field, 1, 6) == 'pk_id:' then return true end | 22: 1 -> 0",
        "a text begins at 1 also for who says 0",
    ),
    (
        "deposit/confirm: if ARGV[6] ~= '' and call('EXISTS', KEYS[9]) == 1 then return {'known'} end | 9: 6 -> 7",
        KEYED,
    ),
    (
        "deposit/make: if ARGV[7] ~= '' and call('EXISTS', KEYS[9]) == 1 then return {'known'} end | 9: 7 -> 8",
        KEYED,
    ),
    (
        "transfer/checks: if ARGV[7] ~= '' and call('EXISTS', KEYS[8]) == 1 then return {'known'} end | 9: 7 -> 8",
        KEYED,
    ),
    (
        "deposit/make: count_refusal(ARGV[7], ARGV[8]) | 20: 7 -> 8",
        KEYED,
    ),
    (
        "deposit/make: if is_refusal_over(ARGV[7], ARGV[8]) then return over_budget('refusals') end | 25: 7 -> 8",
        KEYED,
    ),
    (
        "transfer/checks: count_refusal(ARGV[7], ARGV[8]) | 20: 7 -> 8",
        KEYED,
    ),
    (
        "transfer/checks: if is_refusal_over(ARGV[7], ARGV[8]) then return over_budget('refusals') end | 25: 7 -> 8",
        KEYED,
    ),
    (
        "script/refusals: if tonumber(at or '0') == span - 1 then return span, 0, tonumber(this) end | 19: '0' -> '1'",
        SPAN,
    ),
    (
        "script/refusals: if tonumber(at or '0') == span then return span, tonumber(this), tonumber(before) end | 19: '0' -> '1'",
        SPAN,
    ),
    (
        "escrow/fund: if payee_is_here then call('SADD', KEYS[19], ARGV[6]) end | 4: payee_is_here -> true",
        "for a payee elsewhere this is the payer's set, which has got the number just before",
    ),
    (
        "escrow/resolve: if ARGV[8] ~= '' then call('HSET', KEYS[12], ARGV[8], ARGV[9]) end | 9: 8 -> 9",
        ROW,
    ),
    (
        "escrow/resolve: local pays, keeps_intent, by_party = ARGV[5] ~= '', ARGV[17] ~= '', ARGV[11] ~= '' | 74: 11 -> 12",
        "who asks has both an intent id and a spare one",
    ),
    (
        "spend/deny: file_under(4, ARGV[3], 'blocked') | 24: 'blocked' -> 'blockedx'",
        "what neither waits nor is settled is listed as blocked",
    ),
    (
        "spend/spend: call('HSET', KEYS[8], 'state', new_state, 'reason', why, 'head', new_head, 'filed', next_seq(), | 19: 8 -> 9",
        "only approvals come here, whose spare id is the intent's own",
    ),
    ("transit/arrive: if ARGV[4] ~= '' then | 9: 4 -> 5", ROW),
    (
        "transit/arrive: if not noticed and ARGV[7] ~= '' then | 25: 7 -> 8",
        ROW,
    ),
    ("transit/arrive: if fits and ARGV[4] ~= '' then | 18: 4 -> 5", ROW),
    (
        "transit/arrive: if not fits and (noticed or ARGV[6] == '' and ARGV[7] == '') then return {'too_much'} end | 52: 7 -> 8",
        ROW,
    ),
    (
        "escrow/blocked: if is_free(call('HMGET', KEYS[10], 'state', 'fp')) then call('DEL', KEYS[10]) end | 36: 'state' -> 'statex'",
        CLAIM,
    ),
    (
        "escrow/blocked: if is_free(call('HMGET', KEYS[10], 'state', 'fp')) then call('DEL', KEYS[10]) end | 4: is_free(call('HMGET', KEYS[10], 'state', 'fp')) -> true",
        CLAIM,
    ),
];
