//! Aligned columns, and lines that fit into a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Shortens a line to so many columns of a terminal; `…` stands for what is left out.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut shown = String::new();
    for c in line.chars() {
        let needed = c.width().unwrap_or(0);
        if needed > room {
            break;
        }
        room -= needed;
        shown.push(c);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// Fills a text up to so many columns of a terminal.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// Rows of three columns, the first two aligned; each line is cut to `width`, if there is one.
///
/// Where there is little room, a few long entries stick out instead of pushing all others aside.
pub(crate) fn rows(rows: &[[String; 3]], width: Option<usize>) -> String {
    let most = width.map_or(usize::MAX, |width| width / 3);
    let column = |index: usize| {
        let widths = rows.iter().map(|row| row[index].width());
        widths.filter(|width| *width <= most).max().unwrap_or(0)
    };
    let (first, second) = (column(0), column(1));
    let mut text = String::new();
    for [a, b, c] in rows {
        let line = format!("{}  {}  {c}", pad(a, first), pad(b, second));
        let line = line.trim_end();
        text.push_str(&width.map_or_else(|| line.to_owned(), |width| cut(line, width)));
        text.push('\n');
    }
    text
}

/// Puts spaces before each line of a text but the first.
pub(crate) fn indent(text: &str, spaces: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{}", " ".repeat(spaces)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_width_of_what_is_shown() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_entry() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let table = rows(&[row("a", "日本", "x"), row("long", "b", "")], None);
        assert_eq!(table, "a     日本  x\nlong  b\n");
        let table = rows(&[row("a", "b", "description"), row("much-longer", "b", "c")], Some(15));
        assert_eq!(table, "a  b  descript…\nmuch-longer  b…\n");
    }
}
