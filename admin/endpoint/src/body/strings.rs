//! Fields that are texts for people, and fields that are lists of strings.

use super::{FieldValue, Fields, TextForm};
use crate::problem::Problem;
use domain::printable::{is_direction, is_seen};

/// Characters that break lines in addition to control characters: Unicode's line and paragraph separators.
const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

impl Fields<'_> {
    /// Parses a text of at most `longest` characters.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn text(&self, name: &str, kind: TextForm, longest: usize) -> Result<FieldValue<String>, Problem> {
        self.string(name)?.try_map(|text| {
            let bad = |must: &str| Err(Problem::validation(format!("{name} must {must}.")));
            if text.chars().count() > longest {
                return bad(&format!("have at most {longest} characters"));
            }
            let breaks = |c: char| kind == TextForm::Lines && matches!(c, '\n' | '\r' | '\t');
            if text.chars().any(|c| c.is_control() && !breaks(c)) {
                return bad("not contain control characters");
            }
            if kind == TextForm::Line && text.contains(SEPARATORS) {
                return bad("be one line");
            }
            if text.chars().any(is_direction) {
                return bad("not contain characters that turn the direction of text");
            }
            if kind == TextForm::Line && !text.chars().any(is_seen) {
                return bad("not be empty");
            }
            Ok(text)
        })
    }

    /// Parses a list of at most `most` strings.
    ///
    /// # Errors
    /// 400 with the field.
    pub fn strings(&self, name: &str, most: usize) -> Result<FieldValue<Vec<String>>, Problem> {
        self.get(name)
            .try_map(|json| match serde_json::from_str::<Vec<String>>(json) {
                Ok(list) if list.len() <= most => Ok(list),
                Ok(_) => Err(Problem::validation(format!(
                    "{name} must have at most {most} items."
                ))),
                Err(_) => Err(Problem::validation(format!("{name} must be a list of strings."))),
            })
    }
}
