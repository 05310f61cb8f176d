//! The changes that cannot be noticed, because the changed script does the same. Each with its proof.

const THE_STORE_ADDS: &str = "the store adds the same; the condition saves calls";
const A_PART_OF_A_DAY: &str =
    "the leap days come out less than a tenth of a day short, and years are cut to whole ones";
const NOTHING_IS_NOTHING: &str = "what is zero is set to zero";
const OTHER_NUMBERS: &str = "two texts that are not the same are not the same whole number";
const BOTH_OR_NONE: &str = "generation and version are given both, or neither";

/// Name of the change, and why it changes nothing.
pub const LIST: &[(&str, &str)] = &[
    (
        "settle: return ARGV[5] and lacks_writes(ARGV[5], ARGV[6]) and 'lacks_writes' or 'missing' | 13: 5 -> 6",
        BOTH_OR_NONE,
    ),
    ("void: if not value and ARGV[3] then | 23: 3 -> 4", BOTH_OR_NONE),
    (
        "prune: local age = kind and (kind == 'm' and month or today) - tonumber(number) or 0 | 77: 0 -> 1",
        "the age of a field that is no counter is only compared with 200",
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
        "resolve: if open and call('HINCRBY', KEYS[2], 'held', format('%d', -estimate_text)) < 0 then | 76: < -> <=",
        NOTHING_IS_NOTHING,
    ),
    (
        "resolve: if open and call('HINCRBY', KEYS[2], 'held', format('%d', -estimate_text)) < 0 then | 78: 0 -> 1",
        NOTHING_IS_NOTHING,
    ),
    (
        "authorize: if top < EXACT then | 4: top < EXACT -> false",
        THE_STORE_ADDS,
    ),
    (
        "authorize: if not same and generation_text + 0 < ARGV[3] + 0 then return 'stale ' .. view_text end | 37: < -> <=",
        OTHER_NUMBERS,
    ),
    (
        "authorize: if not same and generation_text + 0 < ARGV[3] + 0 then return 'stale ' .. view_text end | 49: 0 -> 1",
        OTHER_NUMBERS,
    ),
    (
        "authorize: if run[4] then call('HDEL', KEYS[7], 'status', 'ended') end | 4: run[4] -> true",
        "fields that are not there cannot be removed; the condition saves a call",
    ),
];
