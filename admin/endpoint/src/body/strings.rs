//! Fields that are texts for people, and fields that are lists of strings.

use super::{FieldValue, Fields, Text};
use crate::problem::Problem;
use domain::printable::{is_direction, is_seen};

/// Characters that break lines in addition to control characters: Unicode's line and paragraph separators.
const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

impl Fields<'_> {
    /// Parses a text of at most `longest` characters.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn text(&self, name: &str, kind: Text, longest: usize) -> Result<FieldValue<String>, Problem> {
        let text = match self.string(name)? {
            FieldValue::Value(text) => text,
            other => return Ok(other),
        };
        let bad = |must: &str| Problem::validation(format!("{name} must {must}."));
        if text.chars().count() > longest {
            return Err(bad(&format!("have at most {longest} characters")));
        }
        let breaks = |c: char| kind == Text::Lines && matches!(c, '\n' | '\r' | '\t');
        if text.chars().any(|c| c.is_control() && !breaks(c)) {
            return Err(bad("not contain control characters"));
        }
        if kind == Text::Line && text.contains(SEPARATORS) {
            return Err(bad("be one line"));
        }
        if text.chars().any(is_direction) {
            return Err(bad("not contain characters that turn the direction of text"));
        }
        if kind == Text::Line && !text.chars().any(is_seen) {
            return Err(bad("not be empty"));
        }
        Ok(FieldValue::Value(text))
    }

    /// Parses a list of at most `most` strings.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn strings(&self, name: &str, most: usize) -> Result<FieldValue<Vec<String>>, Problem> {
        match self.get(name) {
            FieldValue::Absent => Ok(FieldValue::Absent),
            FieldValue::Null => Ok(FieldValue::Null),
            FieldValue::Value(json) => match serde_json::from_str::<Vec<String>>(json) {
                Ok(list) if list.len() <= most => Ok(FieldValue::Value(list)),
                Ok(_) => {
                    let message = format!("{name} must have at most {most} items.");
                    Err(Problem::validation(message))
                }
                Err(_) => Err(Problem::validation(format!("{name} must be a list of strings."))),
            },
        }
    }
}
