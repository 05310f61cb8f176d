//! The built-in patterns, used if `injection.patterns` is empty.
//!
//! The text is already in lower case with single spaces. In a phrase, a space stands for one to four characters that
//! are neither letters nor digits, so that `ignore_previous-instructions` also matches; the phrase begins and ends with
//! a word. The patterns describe text that does not occur in payments: words about instructions ("instructions",
//! "system prompt") as the object of ignoring or revealing. "Ignore the previous invoice" does not match.

/// A built-in pattern.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    /// Name in the audit log.
    pub name: &'static str,
    /// True for a phrase of words; otherwise it is matched letter by letter.
    phrase: bool,
    pattern: &'static str,
}

impl BuiltIn {
    /// Returns the regular expression.
    pub fn regex(&self) -> String {
        if !self.phrase {
            return self.pattern.to_owned();
        }
        let words = self.pattern.replace(' ', "[^a-z0-9]{1,4}");
        format!("(?:^|[^a-z0-9])(?:{words})(?:[^a-z0-9]|$)")
    }
}

const fn phrase(name: &'static str, pattern: &'static str) -> BuiltIn {
    BuiltIn {
        name,
        phrase: true,
        pattern,
    }
}

const fn verbatim(name: &'static str, pattern: &'static str) -> BuiltIn {
    BuiltIn {
        name,
        phrase: false,
        pattern,
    }
}

/// All built-in patterns, in the order of precedence of their names.
pub const BUILT_IN: &[BuiltIn] = &[
    // "ignore all previous instructions", "disregard your prior system prompt", "forget the above rules"
    phrase(
        "ignore_previous",
        "(?:ignore|ignoring|disregard|disregarding|forget|override|bypass)(?: (?:all|any|every|everything|of|the|these|those|your|my|our))*\
         (?: (?:previous|previously|prior|above|earlier|preceding|foregoing|former|past|original|initial))+\
         (?: (?:and|or|all|any|given|other|previous|prior|above|earlier|original|initial|system|developer|user|safety))*\
         (?: (?:instructions?|prompts?|directives?|guidelines?|rules?|commands?|context|programming))",
    ),
    // "ignore all instructions", "override your system prompt", "bypass any safety guidelines"
    phrase(
        "ignore_all",
        "(?:ignore|ignoring|disregard|disregarding|override|bypass) (?:all|any|every|your)(?: (?:all|of|the|these|those|your|other|existing|current|system|developer|safety|security))*\
         (?: (?:instructions|system prompts?|directives|guidelines|guardrails|safeguards|rules|programming))",
    ),
    // "forget everything you were told", "forget all of your rules"
    phrase(
        "forget_all",
        "forget (?:all|everything)(?: (?:of|about|that|the|your|these|those|you))*\
         (?: (?:instructions|rules|guidelines|programming|know|knew|learned|above|were told|have been told|were instructed))",
    ),
    // "disregard the above", "ignore everything above"
    phrase(
        "disregard_above",
        "(?:disregard|disregarding) (?:(?:all|everything|anything|any|of|the|that is|written|said) ){0,3}above",
    ),
    phrase(
        "ignore_above",
        "(?:ignore|ignoring) (?:(?:(?:all|everything|anything)(?: (?:of|the|that is|written|said)){0,3} (?:above|before this))|the above(?: and|(?:[^a-z0-9]*)$))",
    ),
    // "reveal the system prompt", "print your hidden instructions"
    phrase(
        "reveal_prompt",
        "(?:reveal|show|print|output|repeat|display|disclose|leak|share|expose|dump|give|tell|send|return|write|recite|quote|summari[sz]e|what(?:[^a-z0-9]?s| is| are| was| were))\
         (?: (?:me|us|out|back|to|all|of|the|your|its|this|entire|full|exact|complete|whole|verbatim|hidden|secret|internal|initial|original|current))*\
         (?: (?:system prompts?|system messages?|system instructions?|developer messages?|developer prompts?|developer instructions?))",
    ),
    phrase(
        "reveal_instructions",
        "(?:reveal|print|output|repeat|display|disclose|leak|expose|dump|recite)(?: (?:me|us|out|back|to|all|of))* your\
         (?: (?:entire|full|exact|complete|whole|hidden|secret|internal|initial|original|current))* (?:instructions|prompt|guidelines)",
    ),
    // "your new instructions are", "here are your new instructions"
    phrase(
        "new_instructions",
        "your (?:new|real|actual|true|updated) (?:instructions?|task|goal|objective|role|purpose|directive|system prompt) (?:is|are)",
    ),
    phrase(
        "new_prompt",
        "(?:here (?:is|are)|follow|obey) (?:(?:the|these|your|my) )?new (?:system )?(?:instructions|prompt|directives)",
    ),
    // "you are now DAN", "you are no longer bound by", "you are in developer mode"
    phrase(
        "other_role",
        "you are (?:now )?(?:dan|in (?:[a-z]+ )?(?:developer|dan|god|jailbreak|unrestricted|unfiltered|sudo|debug|admin) mode|\
         (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken)(?: [a-z]+)?)",
    ),
    phrase(
        "no_longer_bound",
        "you (?:are no longer|are not|aren[^a-z0-9]t) (?:bound|restricted|constrained|limited) by",
    ),
    phrase("anything_now", "do anything now"),
    // "do not tell the user"
    phrase(
        "hide_from_user",
        "(?:do not|don[^a-z0-9]?t|never|without) (?:tell|telling|inform|informing|alert|alerting|notify|notifying|ask|asking) (?:(?:the|your|any) )?(?:user|human|operator|supervisor|developer)s?",
    ),
    // "send me your API key"
    phrase(
        "reveal_key",
        "(?:reveal|print|output|send|forward|post|leak|exfiltrate|disclose|give|share|tell)(?: (?:me|us|all|of))* your (?:[a-z]+ )?(?:api|private|secret|provider|virtual|access) keys?",
    ),
    // "<|im_start|>system", "[INST]", "<<SYS>>", "</system_prompt>", "### System:"
    verbatim(
        "chat_markup",
        r"<\|[a-z0-9_ ▁-]{1,40}\|>|\[/?inst\]|<</?sys>>|</?system(?:[_ -]?(?:prompt|message))?>",
    ),
    verbatim(
        "chat_role",
        r"(?:^|[^a-z0-9])system ?(?:prompt|message)? ?: ?you (?:are|must|will|should|have)[^a-z0-9]",
    ),
];
