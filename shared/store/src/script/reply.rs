//! Reads the words of a script's reply. A word that is missing or malformed is an error that names the script.

use super::Script;
use crate::StoreError;
use domain::money::Nanos;
use std::collections::HashMap;
use std::str::FromStr;
use std::vec::IntoIter;

/// The words of a reply that have not been read yet.
pub(crate) struct ScriptReply {
    script: &'static str,
    words: IntoIter<String>,
}

impl ScriptReply {
    pub(crate) fn new(script: &Script, words: Vec<String>) -> Self {
        Self {
            script: script.name(),
            words: words.into_iter(),
        }
    }

    /// Returns the error for a reply that the twin does not know.
    pub(crate) fn unexpected<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::unexpected(self.script))
    }

    /// Returns whether the word is `yes`, and not one of `no`.
    pub(crate) fn is(mut self, yes: &str, no: &[&str]) -> Result<bool, StoreError> {
        self.parsed(|word| (word == yes || no.contains(&word)).then_some(word == yes))
    }

    /// Reads one of these words, which mean the same.
    pub(crate) fn expect_one_of(mut self, words: &[&str]) -> Result<(), StoreError> {
        self.parsed(|word| words.contains(&word).then_some(()))
    }

    /// Reads a word that `parse` understands.
    pub(crate) fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, StoreError> {
        let parsed = self.words.next().as_deref().and_then(parse);
        parsed.map_or_else(|| self.unexpected(), Ok)
    }

    pub(crate) fn word(&mut self) -> Result<String, StoreError> {
        self.words.next().map_or_else(|| self.unexpected(), Ok)
    }

    pub(crate) fn number<N: FromStr>(&mut self) -> Result<N, StoreError> {
        self.parsed(|word| word.parse().ok())
    }

    /// Reads an amount that the store wrote.
    pub(crate) fn nanos(&mut self) -> Result<Nanos, StoreError> {
        self.number().map(Nanos::from_stored)
    }

    /// Reads an amount, or an empty word in place of one.
    pub(crate) fn optional_nanos(&mut self) -> Result<Option<Nanos>, StoreError> {
        self.parsed(|word| match word {
            "" => Some(None),
            digits => Some(Some(Nanos::from_stored(digits.parse().ok()?))),
        })
    }

    /// Reads the rest as the fields of a record: each name is followed by its value.
    pub(crate) fn record<T>(
        &mut self,
        parse: impl FnOnce(&HashMap<String, String>) -> Option<T>,
    ) -> Result<T, StoreError> {
        let fields = self.pairs()?.into_iter().collect();
        parse(&fields).map_or_else(|| self.unexpected(), Ok)
    }

    /// Reads the rest as pairs.
    pub(crate) fn pairs(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        let mut pairs = Vec::with_capacity(self.words.len() / 2);
        while let Some(first) = self.words.next() {
            pairs.push((first, self.word()?));
        }
        Ok(pairs)
    }

    pub(crate) fn rest(&mut self) -> Vec<String> {
        self.words.by_ref().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::names::InputNames;
    use crate::script::{ScriptKind, WhenFull};

    fn reply(words: &[&str]) -> ScriptReply {
        let script = Script::new(
            "spend",
            ScriptKind::Timeless,
            WhenFull::Run,
            InputNames::default(),
            &[],
        );
        ScriptReply::new(&script, words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn words_are_read_in_order() {
        let mut settled = reply(&["settled", "12", "7", "a", "b"]);
        assert_eq!(settled.word().unwrap(), "settled");
        assert_eq!(settled.nanos().unwrap(), Nanos::from_stored(12));
        assert_eq!(settled.number::<u64>().unwrap(), 7);
        assert_eq!(settled.rest(), ["a", "b"]);
        assert!(reply(&["yes"]).is("yes", &["no"]).unwrap() && !reply(&["no"]).is("yes", &["no"]).unwrap());
        reply(&["known"]).expect_one_of(&["noted", "known"]).unwrap();
        let record = |fields: &HashMap<String, String>| fields.get("name").cloned();
        assert_eq!(reply(&["id", "1", "name", "n"]).record(record).unwrap(), "n");
    }

    #[test]
    fn a_missing_or_malformed_reply_is_an_error_that_names_the_script() {
        let is_error = |error: StoreError| error.to_string() == "unexpected reply: spend";
        assert!(is_error(reply(&[]).word().unwrap_err()));
        assert!(is_error(reply(&["x"]).number::<u64>().unwrap_err()));
        assert!(is_error(reply(&["-1"]).nanos().unwrap_err()));
        assert!(is_error(reply(&["a"]).is("b", &["c"]).unwrap_err()));
        assert!(is_error(reply(&["a"]).expect_one_of(&["b", "c"]).unwrap_err()));
        assert!(is_error(
            reply(&["a", "1", "b"]).record(|_| Some(())).unwrap_err()
        ));
        assert!(is_error(reply(&["a", "1"]).record(|_| None::<()>).unwrap_err()));
    }
}
