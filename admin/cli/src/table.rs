//! Tables for people: columns that line up in any script, cut to the terminal's width if there is one.

use domain::printable::is_direction_mark;
use std::io;
use terminal_size::{Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text between two columns.
const GAP: &str = "  ";
/// Minimum width to which a column is cut.
const SHORTEST: usize = 6;
/// Mark in place of the part that was cut.
const CUT: char = '…';

/// Formats rows in columns, each as wide as its widest cell. On a terminal, lines are at most as wide as the terminal:
/// the widest columns are cut first, and the first column, which contains the id, last. Nothing is cut in a pipe.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let terminal = terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    lay_out(head, rows, terminal)
}

fn lay_out(head: &[&str], rows: &[Vec<String>], terminal: Option<usize>) -> String {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows = rows
        .iter()
        .map(|row| row.iter().map(|cell| plain(cell)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.width())
            .max()
    };
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or_default())
        .collect();
    if let Some(terminal) = terminal {
        narrow(&mut widths, terminal);
    }
    let lines = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| padded(cell, *width));
        let line = cells.collect::<Vec<_>>().join(GAP);
        let line = line.trim_end();
        terminal.map_or_else(|| line.to_owned(), |terminal| shortened(line, terminal))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cuts the widest column except the first until all fit, or none can be cut further.
fn narrow(widths: &mut [usize], terminal: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    loop {
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(terminal);
        let widest = widths.iter_mut().skip(1).filter(|width| **width > SHORTEST).max();
        match widest {
            Some(widest) if over > 0 => *widest -= 1,
            _ => return,
        }
    }
}

fn padded(cell: &str, width: usize) -> String {
    let mut cell = shortened(cell, width);
    let missing = width.saturating_sub(cell.width());
    cell.extend(std::iter::repeat_n(' ', missing));
    cell
}

/// Returns the text, or as much of its start as fits together with the mark.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used <= room
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push(CUT);
    short
}

/// Makes untrusted text safe for a terminal: escapes control characters and changes of direction.
pub(super) fn plain(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        // Line separators are not control characters.
        if c.is_control() || is_direction_mark(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[[&str; 3]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn columns_line_up_whatever_the_script() {
        let rows = rows(&[["a", "日本語", "x"], ["bcd", "e\u{301}é", "y"], ["", "🦀", "z"]]);
        let table = lay_out(&["ID", "NAME", "Z"], &rows, None);
        assert_eq!(
            table,
            "ID   NAME    Z\na    日本語  x\nbcd  e\u{301}é      y\n     🦀      z"
        );
    }

    #[test]
    fn a_line_is_never_wider_than_the_terminal_and_ids_give_way_last() {
        let long = "日本".repeat(40);
        let rows = rows(&[["acct_0123456789", &long, "another long cell"], ["b", "c", "d"]]);
        for terminal in 0..120 {
            for line in lay_out(&["ID", "NAME", "NOTE"], &rows, Some(terminal)).lines() {
                assert!(line.width() <= terminal.max(1), "{terminal}: {line:?}");
                assert!(
                    terminal < 31 || !line.starts_with('a') || line.starts_with("acct_0123456789  "),
                    "{line}"
                );
            }
        }
        let whole = lay_out(&["ID", "NAME", "NOTE"], &rows, None);
        assert!(whole.contains(&long) && whole.contains("another long cell") && !whole.contains(CUT));
        let narrow = lay_out(&["ID", "NAME", "NOTE"], &rows, Some(40));
        assert_eq!(
            narrow.lines().nth(1),
            Some("acct_0123456789  日本日本日…  another l…")
        );
    }

    #[test]
    fn nothing_in_a_cell_moves_the_cursor_or_turns_the_line() {
        let rows = rows(&[["a\u{1b}[2J", "b\r\n", "\u{202e}c\u{61c}b\u{200e}\u{2028}a"]]);
        let table = lay_out(&["A", "B", "C"], &rows, None);
        assert!(
            table.ends_with("a\\u{1b}[2J  b\\r\\n  \\u{202e}c\\u{61c}b\\u{200e}\\u{2028}a"),
            "{table}"
        );
    }
}
