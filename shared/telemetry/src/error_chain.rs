//! Formats errors for a log line.

/// Returns an error with its causes on one line. Omits a cause whose text the line already ends with.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        source = cause.source();
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let io = || std::io::Error::other("no route\nto it");
        let store = ::store::StoreError::NotConnected(io().into());
        let said = error_chain(&store);
        assert_eq!(said.matches("no route to it").count(), 1, "{said}");
        assert!(
            said.len() > "no route to it".len() && !said.contains('\n'),
            "{said}"
        );
    }
}
