//! HTML as text. All text from a document is escaped here, and the simple markup of descriptions is converted to tags.

/// Escapes everything in the text that HTML could interpret as markup.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Renders a line with its `code` and **strong** parts.
pub(super) fn inline(text: &str) -> String {
    let mut html = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            html.push_str(&format!("<code>{}</code>", escape(part)));
            continue;
        }
        for (at, part) in part.split("**").enumerate() {
            match at % 2 {
                1 => html.push_str(&format!("<strong>{}</strong>", escape(part))),
                _ => html.push_str(&escape(part)),
            }
        }
    }
    html
}

/// Renders paragraphs, and lists of lines that begin with `- `.
pub(super) fn prose(text: &str) -> String {
    let mut html = String::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let items: Option<Vec<&str>> = block.lines().map(|line| line.strip_prefix("- ")).collect();
        match items {
            Some(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| format!("<li>{}</li>", inline(item)))
                    .collect();
                html.push_str(&format!("<ul>{}</ul>", items.concat()));
            }
            None => html.push_str(&format!("<p>{}</p>", inline(block))),
        }
    }
    html
}

/// Renders a table that scrolls separately if the page is narrow.
pub(super) fn table(label: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head
        .iter()
        .map(|cell| format!("<th scope=\"col\">{cell}</th>"))
        .collect();
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "<tr>{}</tr>",
                row.iter()
                    .map(|cell| format!("<td>{cell}</td>"))
                    .collect::<String>()
            )
        })
        .collect();
    format!(
        "<div class=\"scroll\" role=\"group\" aria-label=\"{}\" tabindex=\"0\"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        escape(label),
        head.concat(),
        rows.concat()
    )
}

/// Renders code with a caption.
pub(super) fn code(label: &str, text: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption><pre tabindex=\"0\"><code>{}</code></pre></figure>",
        escape(label),
        escape(text.trim_end())
    )
}

/// Converts a name to the form of a URL fragment.
pub(super) fn anchor(text: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() {
            character.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through_as_markup() {
        let bad = "<script>alert(\"x\")</script> & 'y'";
        for html in [
            escape(bad),
            inline(bad),
            prose(bad),
            inline(&format!("`{bad}` **{bad}**")),
            code(bad, bad),
        ] {
            assert!(
                !html.contains("<script") && !html.contains("\"x\"") && !html.contains("'y'"),
                "{html}"
            );
        }
        assert!(!table(bad, &["A"], &[vec![escape(bad)]]).contains("<script"));
        assert_eq!(anchor("\"><x>"), "---x-");
    }

    #[test]
    fn the_markup_of_descriptions() {
        assert_eq!(
            inline("a `b<` **c** `**`"),
            "a <code>b&lt;</code> <strong>c</strong> <code>**</code>"
        );
        assert_eq!(
            prose("One.\n\n- a\n- b"),
            "<p>One.</p><ul><li>a</li><li>b</li></ul>"
        );
    }
}
