//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const THE_STORE_ADDS: &str = "the store adds the same; the condition saves calls";

/// Name of the change, and why it changes nothing.
pub const LIST: &[(&str, &str)] = &[
    (
        "period: local age = kind and (kind == 'm' and month or today) - tonumber(number) or 0 | 77: 0 -> 1",
        "the age of a field that is no counter is only compared with 200",
    ),
    (
        "period: local era = math.floor(z / 146097) | 28: 146097 -> 146098",
        "an era that begins a few days late only shifts days within March, until the year 12000",
    ),
    (
        "resolve: if math.max(day_spent, month_spent, held, tracked, run_spent) + new < EXACT then | 4: math.max(day_spent, month_spent, held, tracked, run_spent) + new < EXACT -> false",
        THE_STORE_ADDS,
    ),
    (
        "resolve: local tracked, run_spent = tonumber(account[1] or '0'), tonumber(spent or '0') | 75: '0' -> '1'",
        "what a run without a record spent is only compared with 2^53",
    ),
    (
        "authorize: if top < EXACT then | 4: top < EXACT -> false",
        THE_STORE_ADDS,
    ),
    (
        "authorize: if not same and tonumber(generation) < tonumber(ARGV[3]) then return {'stale', generation, version, plan} end | 38: < -> <=",
        "two texts that are not the same are not the same number",
    ),
    (
        "authorize: if run[4] then redis.call('HDEL', KEYS[7], 'status', 'ended') end | 4: run[4] -> true",
        "fields that are not there cannot be removed; the condition saves a call",
    ),
];
