//! Tables that fit the terminal: columns shrink, rows never wrap, a pipe gets everything.

use crate::ui::Look;

const GAP: &str = "  ";
/// A cell is not cut below this, even when the line gets too long by it.
const NARROWEST: usize = 8;

/// Columns as wide as their widest cell; when that is too much, the widest give way first.
pub fn render(look: Look, header: &[&str], rows: &[Vec<String>]) -> String {
    let widths = fit(natural_widths(header, rows), header, look.width);
    let head: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
    let mut text = look.bold(&line(&head, &widths));
    text.push('\n');
    for row in rows {
        text.push_str(&line(row, &widths));
        text.push('\n');
    }
    text
}

fn natural_widths(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |column: usize, title: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell));
        cells.chain([length(title)]).max().unwrap_or(0)
    };
    header.iter().enumerate().map(|(column, title)| widest(column, title)).collect()
}

fn fit(mut widths: Vec<usize>, header: &[&str], limit: Option<usize>) -> Vec<usize> {
    let Some(limit) = limit else { return widths };
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > limit {
        let least = |column: usize| length(header[column]).max(NARROWEST);
        let widest =
            (0..widths.len()).filter(|c| widths[*c] > least(*c)).max_by_key(|c| widths[*c]);
        match widest {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    widths
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        let shown = cut(cell, *width);
        let pad = " ".repeat(width - length(&shown));
        shown + &pad
    });
    padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

/// At most so many characters, with an ellipsis where something is missing.
pub fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_fits_and_a_pipe_gets_it_whole() {
        let rows = vec![vec!["1".to_owned(), "a".repeat(70), "b".repeat(30)]];
        let narrow = render(Look::PLAIN, &["N", "NAME", "BRANCH"], &rows);
        assert!(narrow.lines().all(|l| l.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains('…'));
        let whole = render(Look { color: false, width: None }, &["N", "NAME", "BRANCH"], &rows);
        assert!(whole.contains(&"a".repeat(70)) && whole.contains(&"b".repeat(30)));
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("naïve", 5), "naïve");
        assert_eq!(cut("naïvely", 5), "naïv…");
    }
}
