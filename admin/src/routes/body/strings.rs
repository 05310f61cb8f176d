//! Fields that are lists of strings.

use super::{Fields, Given};
use crate::problem::Problem;

impl Fields<'_> {
    /// A list of at most `most` strings.
    ///
    /// # Errors
    /// 400 names the field.
    pub fn strings(&self, name: &str, most: usize) -> Result<Given<Vec<String>>, Problem> {
        match self.get(name) {
            Given::Absent => Ok(Given::Absent),
            Given::Null => Ok(Given::Null),
            Given::Value(json) => match serde_json::from_str::<Vec<String>>(json) {
                Ok(list) if list.len() <= most => Ok(Given::Value(list)),
                Ok(_) => {
                    let message = format!("{name} must have at most {most} items.");
                    Err(Problem::validation(message))
                }
                Err(_) => Err(Problem::validation(format!("{name} must be a list of strings."))),
            },
        }
    }
}
