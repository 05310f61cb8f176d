//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const ZERO_DIFFERENCE: &str =
    "adding a difference of 0 to counters that exist changes nothing; the condition saves calls";

const ZERO_AGAIN: &str = "a counter that is 0 is set to 0";

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
        "resolve: if cost ~= estimate then | 4: cost ~= estimate -> true",
        ZERO_DIFFERENCE,
    ),
    (
        "resolve: if redis.call('HINCRBY', KEYS[hash], 'held', amount) < 0 then redis.call('HSET', KEYS[hash], 'held', '0') end | 54: < -> <=",
        ZERO_AGAIN,
    ),
    (
        "resolve: if redis.call('HINCRBY', KEYS[hash], 'held', amount) < 0 then redis.call('HSET', KEYS[hash], 'held', '0') end | 56: 0 -> 1",
        ZERO_AGAIN,
    ),
    (
        "raise: if exact then | 4: exact -> false",
        "the store adds the same; the condition saves calls",
    ),
    (
        "authorize: if run[5] then redis.call('HDEL', KEYS[7], 'status', 'ended') end | 4: run[5] -> true",
        "fields that are not there cannot be removed; the condition saves a call",
    ),
    (
        "authorize: if over(ARGV[8], tracked) then return 'plan_limit', 7 end | 53: 7 -> 8",
        "there are seven groups: the eighth is not there to be shown or not",
    ),
];
