//! Placeholders for the ids and moments that the product generates. Each is a [`Names`] entry in an expected text: the
//! first text found in its place sets its value, and every later place must show the same.

pub use harness::scripts::Window;

use std::collections::BTreeSet;

/// Delimiters before and after the number of a name in an expected text. No text of these tests contains them.
pub const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// The kind of value that a name can have.
#[derive(Debug, Clone, Copy)]
enum ValueKind {
    Moment(Window),
    /// An id with this prefix, different from all others.
    Id(&'static str),
}

/// Names of generated values, and the values once they are known.
#[derive(Debug, Clone, Default)]
pub struct Names {
    all: Vec<(ValueKind, Option<String>)>,
    taken: BTreeSet<String>,
}

impl Names {
    fn new_name(&mut self, what: ValueKind) -> String {
        self.all.push((what, None));
        format!("{OPEN}{}{CLOSE}", self.all.len() - 1)
    }

    /// A moment within a window.
    pub fn moment(&mut self, window: Window) -> String {
        self.new_name(ValueKind::Moment(window))
    }

    pub fn id(&mut self, prefix: &'static str) -> String {
        self.new_name(ValueKind::Id(prefix))
    }

    /// Reads the name at the start of `text`; returns the rest.
    fn read<'a>(&mut self, number: usize, text: &'a str) -> Option<&'a str> {
        let (what, value) = &self.all[number];
        if let Some(value) = value {
            return text.strip_prefix(value.as_str());
        }
        let length = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, rest) = text.split_at(length.unwrap_or(text.len()));
        let fits = match what {
            ValueKind::Moment(window) => window.has(word),
            ValueKind::Id(prefix) => {
                word.len() == prefix.len() + 26
                    && word.starts_with(prefix)
                    && self.taken.insert(word.to_owned())
            }
        };
        fits.then(|| {
            self.all[number].1 = Some(word.to_owned());
            rest
        })
    }

    /// Makes up a value for every name that has none, for records that a test lays out.
    pub fn settle(&mut self) {
        for (number, (what, value)) in self.all.iter_mut().enumerate() {
            value.get_or_insert_with(|| match what {
                ValueKind::Moment(window) => window.from.to_string(),
                ValueKind::Id(prefix) => format!("{prefix}{number:026}"),
            });
        }
    }

    /// Compares `text` with the expected one, in which names are placeholders.
    pub fn agree(&mut self, mut expected: &str, mut text: &str) -> bool {
        while let Some((literal, rest)) = expected.split_once(OPEN) {
            let Some(left) = text.strip_prefix(literal) else {
                return false;
            };
            let Some((number, rest)) = rest.split_once(CLOSE) else {
                return false;
            };
            let number = number.parse().expect("the number of a name");
            let Some(left) = self.read(number, left) else {
                return false;
            };
            (expected, text) = (rest, left);
        }
        expected == text
    }

    /// The text with the values of the names that are known.
    pub fn show(&self, expected: &str) -> String {
        let mut shown = String::with_capacity(expected.len());
        let mut left = expected;
        while let Some((literal, rest)) = left.split_once(OPEN) {
            let (number, rest) = rest.split_once(CLOSE).expect("a whole name");
            shown.push_str(literal);
            let at: usize = number.parse().expect("the number of a name");
            match &self.all[at].1 {
                Some(value) => shown.push_str(value),
                None => shown.extend([OPEN.to_string(), number.to_owned(), CLOSE.to_string()]),
            }
            left = rest;
        }
        shown.push_str(left);
        shown
    }
}
