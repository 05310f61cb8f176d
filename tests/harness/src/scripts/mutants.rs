//! Small changes to a Lua script, one at a time: each comparison, constant, condition and write.

/// A changed script.
#[derive(Debug)]
pub struct Mutant {
    /// Line and column of the change, with the old and the new text: unique within a script.
    pub name: String,
    /// The whole script with the change.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LexemeKind {
    Name,
    Number,
    Text,
    Sign,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: LexemeKind,
    text: &'a str,
    at: usize,
}

impl Token<'_> {
    const fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Commands that change the store.
const WRITES: [&str; 14] = [
    "'INCR'",
    "'HSET'",
    "'HINCRBY'",
    "'HDEL'",
    "'PEXPIRE'",
    "'SET'",
    "'ZADD'",
    "'ZREM'",
    "'ZREMRANGEBYSCORE'",
    "'DEL'",
    "'RPUSH'",
    "'SADD'",
    "'SREM'",
    "'RENAME'",
];
/// Signs of two characters.
const PAIRS: [&str; 5] = ["==", "~=", "<=", ">=", ".."];

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let word = |more: fn(char) -> bool| rest.find(|c| !more(c)).unwrap_or(rest.len());
        let (kind, length) = if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if first.is_whitespace() {
            at += 1;
            continue;
        } else if first.is_ascii_digit() {
            (LexemeKind::Number, word(|c| c.is_ascii_alphanumeric()))
        } else if first.is_ascii_alphabetic() || first == '_' {
            (LexemeKind::Name, word(|c| c.is_ascii_alphanumeric() || c == '_'))
        } else if first == '\'' {
            (LexemeKind::Text, rest[1..].find('\'').expect("a closed text") + 2)
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            (LexemeKind::Sign, 2)
        } else {
            (LexemeKind::Sign, first.len_utf8())
        };
        tokens.push(Token {
            kind,
            text: &rest[..length],
            at,
        });
        at += length;
    }
    tokens
}

/// Every change of `source`.
pub fn mutants(source: &str) -> Vec<Mutant> {
    let tokens = tokens(source);
    let mut edits = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| tokens[at]);
        // `+ 0` converts a text to a number, and so does `- 0`.
        if token.text == "+" && tokens.get(at + 1).is_some_and(|next| next.text == "0") {
            continue;
        }
        for new in replacements(*token, before, at >= 2 && is_verb(&tokens[..at])) {
            edits.push((token.at, token.end(), new));
        }
        if token.text == "if" || token.text == "elseif" {
            let then = tokens[at..]
                .iter()
                .find(|token| token.text == "then")
                .expect("an `if` has a `then`");
            let (from, to) = (token.end() + 1, then.at - 1);
            let condition = &source[from..to];
            edits.extend(
                [format!("not ({condition})"), "false".into(), "true".into()].map(|new| (from, to, new)),
            );
        }
        edits.extend(dropped_write(&tokens, at));
    }
    let edits = edits.into_iter().map(|(from, to, new)| {
        let (line, column) = position(source, from);
        let name = format!(
            "{line} | {column}: {} -> {}",
            &source[from..to],
            if new.is_empty() { "nothing" } else { &new }
        );
        Mutant {
            name,
            text: [&source[..from], &new, &source[to..]].concat(),
        }
    });
    edits.collect()
}

/// The line around a place, trimmed, and the place's column in it.
fn position(source: &str, at: usize) -> (&str, usize) {
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = source[at..]
        .find('\n')
        .map_or(source.len(), |newline| at + newline);
    let line = &source[start..end];
    (
        line.trim(),
        at - start - (line.len() - line.trim_start().len()) + 1,
    )
}

/// Returns true if these tokens end with `call(`, so that a command's name follows.
fn is_verb(before: &[Token<'_>]) -> bool {
    before.ends_with_texts(&["call", "("])
}

trait EndsWithTexts {
    fn ends_with_texts(&self, texts: &[&str]) -> bool;
}

impl EndsWithTexts for [Token<'_>] {
    fn ends_with_texts(&self, texts: &[&str]) -> bool {
        self.len() >= texts.len()
            && self[self.len() - texts.len()..]
                .iter()
                .map(|token| token.text)
                .eq(texts.iter().copied())
    }
}

/// Replacements of a single token.
fn replacements(token: Token<'_>, before: Option<Token<'_>>, verb: bool) -> Vec<String> {
    let after_value = before
        .is_some_and(|before| before.kind != LexemeKind::Sign || before.text == ")" || before.text == "]");
    let new: &[&str] = match token.text {
        "<" => &["<=", ">"],
        "<=" => &["<", ">"],
        ">" => &[">=", "<"],
        ">=" => &[">", "<"],
        "==" => &["~="],
        "~=" => &["=="],
        "+" => &["-"],
        "-" if after_value => &["+"],
        "-" => &[""],
        "*" => &["+"],
        "/" => &["*"],
        "%" => &["*"],
        "and" => &["or"],
        "or" => &["and"],
        "not" => &[""],
        "0" | "'0'" if token.kind == LexemeKind::Text => &["'1'"],
        "'1'" => &["'0'"],
        "''" => &["'x'"],
        "0" => &["1"],
        "1" => &["0"],
        "max" => &["min"],
        _ => &[],
    };
    let mut new: Vec<String> = new.iter().map(|&text| text.to_owned()).collect();
    if new.is_empty() && token.kind == LexemeKind::Number {
        let changed = token.text.parse().map(|number: u64| (number + 1).to_string());
        new.push(changed.unwrap_or_else(|_| token.text.replace("e18", "e17")));
    }
    if new.is_empty() && token.kind == LexemeKind::Text && !verb {
        new.push(format!("{}x'", &token.text[..token.text.len() - 1]));
    }
    new
}

/// Removes a command that changes the store. Where its value is used, the value becomes 1.
fn dropped_write(tokens: &[Token<'_>], at: usize) -> Option<(usize, usize, String)> {
    let [call, open, verb, ..] = tokens.get(at..)? else {
        return None;
    };
    if [call.text, open.text] != ["call", "("] || !WRITES.contains(&verb.text) {
        return None;
    }
    let mut depth = 0;
    let close = tokens[at..].iter().find(|token| {
        depth += i32::from(token.text == "(") - i32::from(token.text == ")");
        token.text == ")" && depth == 0
    })?;
    let before = at.checked_sub(1).map(|at| tokens[at])?;
    let value = matches!(
        before.text,
        "=" | "," | "(" | "{" | "return" | "and" | "or" | "not" | "in" | "if"
    );
    Some((call.at, close.end(), if value { "1" } else { "" }.to_owned()))
}

#[test]
fn every_kind_of_change_is_made() {
    let source = "-- if 1 == 2\nlocal a = call('INCR', KEYS[1])\nif a == 0 and b < 'x' then\n  call('DEL', f(1))\nend\n";
    let names: Vec<String> = mutants(source).into_iter().map(|mutant| mutant.name).collect();
    let expected = [
        "local a = call('INCR', KEYS[1]) | 11: call('INCR', KEYS[1]) -> 1",
        "local a = call('INCR', KEYS[1]) | 29: 1 -> 0",
        "if a == 0 and b < 'x' then | 4: a == 0 and b < 'x' -> not (a == 0 and b < 'x')",
        "if a == 0 and b < 'x' then | 4: a == 0 and b < 'x' -> false",
        "if a == 0 and b < 'x' then | 4: a == 0 and b < 'x' -> true",
        "if a == 0 and b < 'x' then | 6: == -> ~=",
        "if a == 0 and b < 'x' then | 9: 0 -> 1",
        "if a == 0 and b < 'x' then | 11: and -> or",
        "if a == 0 and b < 'x' then | 17: < -> <=",
        "if a == 0 and b < 'x' then | 17: < -> >",
        "if a == 0 and b < 'x' then | 19: 'x' -> 'xx'",
        "call('DEL', f(1)) | 1: call('DEL', f(1)) -> nothing",
        "call('DEL', f(1)) | 15: 1 -> 0",
    ];
    assert_eq!(names, expected);
}
