//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const ZERO_DIFFERENCE: &str =
    "adding a difference of 0 to counters that exist changes nothing; the condition saves calls";

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
    ("settle: if ARGV[3] ~= '0' then | 15: '0' -> '1'", ZERO_DIFFERENCE),
    (
        "settle: if ARGV[3] ~= '0' then | 4: ARGV[3] ~= '0' -> true",
        ZERO_DIFFERENCE,
    ),
    ("settle: if ARGV[3] ~= '0' then | 9: 3 -> 4", ZERO_DIFFERENCE),
];
