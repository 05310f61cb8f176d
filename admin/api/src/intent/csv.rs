//! The flat form of an intent: a header and one row (specification "Intent export").

use super::document::IntentDocument;
use crate::spreadsheet::lines;
use endpoint::problem::Problem;

const COLUMNS: [&str; 10] = [
    "intent_id",
    "kind",
    "state",
    "amount",
    "currency",
    "allowed_by",
    "blocked_reason",
    "rail_reference",
    "created_at",
    "updated_at",
];

/// Returns header and row.
///
/// # Errors
/// 500 if it cannot be written.
pub(super) fn write(document: &IntentDocument<'_>) -> Result<Vec<u8>, Problem> {
    let amount = document.amount.to_string();
    let row = [
        document.intent_id,
        document.kind,
        document.state,
        &amount,
        document.currency,
        document.allowed_by.unwrap_or_default(),
        document.blocked_reason.unwrap_or_default(),
        document.rail_reference.unwrap_or_default(),
        &document.created_at,
        &document.updated_at,
    ];
    lines([COLUMNS, row])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        let mut row = [""; 10];
        for (at, cell) in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\tx",
            "\rx",
            "a,b",
            "say \"hi\"",
            "two\nlines",
            "plain=x",
        ]
        .into_iter()
        .enumerate()
        {
            row[at] = cell;
        }
        let text = String::from_utf8(lines([row]).unwrap()).unwrap();
        let expected =
            "'=1+1,'+1,'-1,'@SUM(A1),'\tx,\"'\rx\",\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",plain=x\r\n";
        assert_eq!(text, expected);
    }

    /// Parses the row as a reader of the file does.
    fn read_back(row: [&str; 10]) -> Vec<String> {
        let text = lines([COLUMNS, row]).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), 1, "no cell begins a row of its own");
        rows[0].iter().map(str::to_owned).collect()
    }

    #[test]
    fn no_cell_breaks_out_of_its_place_to_become_a_formula() {
        let nasty = [
            "\"=1+1\"",
            "x\",=1+1,\"",
            "x\"\r\n=1+1",
            "\"\"=1+1",
            "\t=1+1",
            "\r\n=1+1",
            "\r=1+1",
            "=HYPERLINK(\"http://x\",\"y\")",
            "'=1+1",
            "-2+3+cmd|' /C calc'!A0",
            "@",
            "=",
            "",
            "ordinary",
            "\u{202e}=gnp",
        ];
        for cell in nasty {
            for place in 0..10 {
                let mut row = ["x"; 10];
                row[place] = cell;
                let read = read_back(row);
                assert_eq!(read.len(), 10, "{cell:?}");
                assert!(
                    !read[place].starts_with(['=', '+', '-', '@', '\t', '\r']),
                    "{cell:?}"
                );
                let plain = |text: &str| text.replace('\'', "");
                assert_eq!(plain(&read[place]), plain(cell), "nothing is lost");
                let others = read.iter().enumerate().filter(|(at, _)| *at != place);
                assert!(others.into_iter().all(|(_, other)| other == "x"), "{cell:?}");
            }
        }
    }
}
