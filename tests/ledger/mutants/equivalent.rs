//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const THE_STORE_ADDS: &str = "the store adds the same; the condition saves calls";
const A_PART_OF_A_DAY: &str =
    "the leap days come out less than a tenth of a day short, and years are cut to whole ones";
const NOTHING_IS_NOTHING: &str = "what is zero is set to zero";
const OTHER_NUMBERS: &str = "two texts that are not the same are not the same whole number";
const PLAN_NOT_READ: &str = "the twin reads the plan of `other_plan` only";
const NOT_THE_LARGEST: &str = "what is held is compared with a ceiling where doubles are 1024 apart";
const OF_SPENDS: &str =
    "only spends have a limit of a transaction; the money model's mutants change it there";
const HAS_SLOT: &str = "the plan's limit of agents is not compared for an agent with a slot";
const BOTH_OR_NONE: &str =
    "an estimate and the life of its hold are given both, or neither; so are the keys of a run";
const NO_RECORD: &str = "the run of a call that named none has no record";
const NO_NUMBER: &str = "a text without digits is neither an estimate nor a generation with a version";

/// Name of the change, and why it changes nothing.
pub const LIST: &[(&str, &str)] = &[
    (
        "authorize: elseif ARGV[11] == '' then | 13: 11 -> 12",
        BOTH_OR_NONE,
    ),
    (
        "denial_line: local estimate_text = ARGV[11] == '' and '-' or ARGV[11] | 28: 11 -> 12",
        BOTH_OR_NONE,
    ),
    ("authorize: local named = KEYS[10] | 20: 10 -> 11", BOTH_OR_NONE),
    (
        "settle: if estimate_text ~= ARGV[2] and estimate_text ~= (ARGV[7] or '') then return 'mismatch' end | 62: '' -> 'x'",
        NO_NUMBER,
    ),
    (
        "settle: local generation, version = string.match(ARGV[6] or '', '^(%d+) (%d+)$') | 53: '' -> 'x'",
        NO_NUMBER,
    ),
    (
        "period: + (day_of_era - day_of_era % 146096) / 146096 | 40: 146096 -> 146097",
        A_PART_OF_A_DAY,
    ),
    (
        "period: local leap_days = (day_of_era - day_of_era % 1460) / 1460 - (day_of_era - day_of_era % 36524) / 36524 | 54: 1460 -> 1461",
        A_PART_OF_A_DAY,
    ),
    (
        "end_hold: if is_open and call('HINCRBY', KEYS[2], 'held', format('%d', -estimate_text)) < 0 then | 79: < -> <=",
        NOTHING_IS_NOTHING,
    ),
    (
        "end_hold: if is_open and call('HINCRBY', KEYS[2], 'held', format('%d', -estimate_text)) < 0 then | 81: 0 -> 1",
        NOTHING_IS_NOTHING,
    ),
    (
        "authorize: if highest < EXACT then | 4: highest < EXACT -> false",
        THE_STORE_ADDS,
    ),
    (
        "authorize: if not same_generation and generation_text + 0 < ARGV[3] + 0 then return 'lost_writes ' .. view_text end | 48: < -> <=",
        OTHER_NUMBERS,
    ),
    (
        "authorize: if not same_generation and generation_text + 0 < ARGV[3] + 0 then return 'lost_writes ' .. view_text end | 60: 0 -> 1",
        OTHER_NUMBERS,
    ),
    (
        "extend: if not same_generation and generation_text + 0 < ARGV[3] + 0 then return 'lost_writes ' .. view_text end | 48: < -> <=",
        OTHER_NUMBERS,
    ),
    (
        "extend: if not same_generation and generation_text + 0 < ARGV[3] + 0 then return 'lost_writes ' .. view_text end | 60: 0 -> 1",
        OTHER_NUMBERS,
    ),
    (
        "extend: if not generation_text or not plan_text then return 'no_account 0 0 ' end | 53: 'no_account 0 0 ' -> 'no_account 0 0 x'",
        PLAN_NOT_READ,
    ),
    (
        "extend: return 'extended ' .. generation_text .. ' ' .. new_version_text .. ' ' .. plan_text | 69: ' ' -> ' x'",
        PLAN_NOT_READ,
    ),
    (
        "extend: day_spent, month_spent, held = (day_spent or '0') + 0, (month_spent or '0') + 0, (held or '0') + 0 | 91: '0' -> '1'",
        NOT_THE_LARGEST,
    ),
    (
        "extend: day_spent, month_spent, held = (day_spent or '0') + 0, (month_spent or '0') + 0, (held or '0') + 0 | 98: 0 -> 1",
        NOT_THE_LARGEST,
    ),
    (
        "cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 53: or -> and",
        OF_SPENDS,
    ),
    (
        "cap: txn_text, run_text, day_text, month_text = txn_text or '', run_text or '', day_text or '', month_text or '' | 56: '' -> 'x'",
        OF_SPENDS,
    ),
    (
        "extend: if named_text == '1' then run_spent, run_calls = unpack(call('HMGET', KEYS[6], 'spent', 'calls')) end | 4: named_text == '1' -> true",
        NO_RECORD,
    ),
    (
        "cap: elseif charges and txn_text ~= '' and amount > txn_text + 0 then | 46: > -> <",
        OF_SPENDS,
    ),
    (
        "cap: elseif charges and txn_text ~= '' and amount > txn_text + 0 then | 46: > -> >=",
        OF_SPENDS,
    ),
    (
        "cap: elseif charges and txn_text ~= '' and amount > txn_text + 0 then | 59: 0 -> 1",
        OF_SPENDS,
    ),
    (
        "cap: elseif charges and txn_text ~= '' and amount > txn_text + 0 then | 8: charges and txn_text ~= '' and amount > txn_text + 0 -> false",
        OF_SPENDS,
    ),
    (
        "cap: return 'per_transaction_limit', txn_text, '0' | 43: '0' -> '1'",
        OF_SPENDS,
    ),
    (
        "cap: return 'per_transaction_limit', txn_text, '0' | 8: 'per_transaction_limit' -> 'per_transaction_limitx'",
        OF_SPENDS,
    ),
    (
        "extend: month_spent, true, '', 0, ARGV[5], tracked) | 24: 0 -> 1",
        HAS_SLOT,
    ),
    (
        "extend: month_spent, true, '', 0, ARGV[5], tracked) | 20: '' -> 'x'",
        HAS_SLOT,
    ),
];
