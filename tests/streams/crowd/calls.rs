//! Calls of a crowd: the provider's behaviour for each, when its caller leaves, and its cost by
//! docs/reference/streams.md, from what the provider recorded as sent.

use crate::fixture::{chunk, usage_frame};
use harness::{Script, SeededRandom};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Notify;

/// Text that was sent before the gate: a token.
pub const BEGIN: &str = "four";
/// Tokens of a long text: more than is held.
const LONG_TOKENS: usize = 2000;
/// Highest usage, in tokens of a nano-USD: more than is held.
const OUTPUT_MAX: u64 = 3000;

/// Behaviour of the provider behind the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Usage,
    NoUsage,
    NoUsageButMuchText,
    BreaksOff,
    BreaksOffBehindMuchText,
    BreaksOffBehindUsage,
    Resets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Stays,
    /// Before the gate is opened, with a reset or without.
    LeavesBefore {
        reset: bool,
    },
    /// This many milliseconds after the gate is opened.
    LeavesWithin(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Call {
    ending: Ending,
    output: u64,
    /// Size of the pieces sent after the gate, in bytes.
    piece: usize,
    pub gate: usize,
    pub caller: Caller,
    /// Whether the provider sends a long text before the gate.
    pub is_long: bool,
    /// Its `max_tokens`.
    pub limit: Option<u64>,
}

impl Call {
    /// A random call that waits at one of this many gates.
    pub fn roll(dice: &mut SeededRandom, gates: usize) -> Self {
        let caller = match dice.percent(50) {
            true => Caller::Stays,
            false if dice.percent(50) => Caller::LeavesBefore {
                reset: dice.percent(50),
            },
            false => Caller::LeavesWithin(dice.below(30)),
        };
        Self {
            ending: dice.pick(&[
                Ending::Usage,
                Ending::Usage,
                Ending::Usage,
                Ending::NoUsage,
                Ending::NoUsageButMuchText,
                Ending::BreaksOff,
                Ending::BreaksOffBehindMuchText,
                Ending::BreaksOffBehindUsage,
                Ending::Resets,
            ]),
            output: 1 + dice.below(OUTPUT_MAX),
            piece: dice.pick(&[7, 100, 10_000]),
            gate: usize::try_from(dice.below(gates as u64)).expect("few"),
            caller,
            is_long: false,
            limit: None,
        }
    }

    /// Tokens of the text before the gate.
    pub const fn tokens_before(self) -> usize {
        if self.is_long { LONG_TOKENS } else { 1 }
    }

    /// Steps that the provider sends.
    pub fn script(self, gates: &[Arc<Notify>]) -> Script {
        let begin = chunk(&BEGIN.repeat(self.tokens_before()));
        let script = Script::new().send(begin).wait_for(&gates[self.gate]);
        let much = chunk(&BEGIN.repeat(LONG_TOKENS));
        let usage = usage_frame(self.output);
        let done = "data: [DONE]\n\n";
        match self.ending {
            Ending::Usage => script.in_pieces(self.piece, usage + done),
            Ending::NoUsage => script.in_pieces(self.piece, done),
            Ending::NoUsageButMuchText => script.in_pieces(self.piece.max(100), much + done),
            Ending::BreaksOff => script.break_off(),
            Ending::BreaksOffBehindMuchText => script.in_pieces(self.piece.max(100), much).break_off(),
            Ending::BreaksOffBehindUsage => script.in_pieces(self.piece, usage).break_off(),
            Ending::Resets => script.reset(),
        }
    }
}

/// Cost of a stream with these sent bytes, in nano-USD: its usage, else the larger of the held amount and the cost of
/// its text.
pub fn charge(sent: &[u8], held: u64) -> u64 {
    let usage = frames(sent)
        .iter()
        .find_map(|frame| frame["usage"]["completion_tokens"].as_u64());
    usage.unwrap_or_else(|| held.max(text_tokens(sent)))
}

/// Tokens of the text that was sent: one for four bytes.
pub fn text_tokens(sent: &[u8]) -> u64 {
    let frames = frames(sent);
    let texts = frames
        .iter()
        .filter_map(|frame| frame["choices"][0]["delta"]["content"].as_str());
    let text = texts.map(str::len).sum::<usize>() as u64;
    text.div_ceil(4)
}

fn frames(sent: &[u8]) -> Vec<Value> {
    let sent = std::str::from_utf8(sent).expect("UTF-8");
    let frames = sent
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "));
    frames
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}
