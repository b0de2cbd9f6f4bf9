//! The line a mistake stands on, with what is meant underlined.

/// Most characters of a line that are shown.
const SHOWN: usize = 120;
/// Characters shown in front of a mistake that stands far to the right.
const BEFORE: usize = 60;

/// Two lines: the line with its number, and carets below what stands at the
/// column (counted from 1, in characters). None when there is nothing to show.
pub(super) fn excerpt(text: &str, line: u64, column: u64) -> Option<String> {
    let index = usize::try_from(line.saturating_sub(1)).ok()?;
    let source = text.lines().nth(index).filter(|line| !line.trim().is_empty())?;
    let column = usize::try_from(column.saturating_sub(1)).ok()?;
    // Not the whole of a line that may be a megabyte.
    let from = if column >= SHOWN { column - BEFORE } else { 0 };
    let mut chars = source.chars().skip(from);
    // A tab would be wider than its caret, and an escape could paint.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = chars.by_ref().take(SHOWN).map(plain).collect();
    if from > 0 {
        shown.replace_range(0..shown.chars().next().map_or(0, char::len_utf8), "…");
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    let at = column - from;
    let width = width(source.chars().skip(column)).min(SHOWN - at.min(SHOWN)).max(1);
    let carets = "^".repeat(width);
    Some(format!("{line:>5} | {shown}\n      | {:at$}{carets}", ""))
}

/// How many characters belong to what begins here.
fn width(mut rest: impl Iterator<Item = char>) -> usize {
    match rest.next() {
        // A collection: its beginning stands for it.
        None | Some('{' | '[' | '|' | '>') => 1,
        Some('-') => match rest.next() {
            Some(c) if !c.is_whitespace() => 2 + plain(rest),
            _ => 1,
        },
        Some(quote @ ('"' | '\'')) => 2 + rest.take_while(|c| *c != quote).count(),
        Some(_) => 1 + plain(rest),
    }
}

/// The rest of a text without quotes.
fn plain(rest: impl Iterator<Item = char>) -> usize {
    let rest: String = rest.take(SHOWN).collect();
    let end = [":", ",", "}", "]", " #"].iter().filter_map(|stop| rest.find(stop)).min();
    let text = end.map_or(rest.as_str(), |end| rest.get(..end).unwrap_or_default());
    text.trim_end().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_underlined() {
        let text = "a: b\n  - {name: 'to', type: strnig}  # odd\n";
        let shown = |column| excerpt(text, 2, column).expect("an excerpt");
        assert!(shown(12).ends_with("\n      |            ^^^^"), "{}", shown(12));
        assert!(shown(24).ends_with("^^^^^^"), "{}", shown(24));
        assert!(shown(3).ends_with("|   ^"), "{}", shown(3));
        assert_eq!(excerpt(text, 9, 1), None);
    }

    #[test]
    fn a_long_line_is_shown_around_the_mistake() {
        let text = format!("{}wrong{}", "x".repeat(500), "y".repeat(500));
        let shown = excerpt(&text, 1, 501).expect("an excerpt");
        assert!(shown.len() < 400 && shown.contains("wrong"), "{shown}");
        let mut lines = shown.lines();
        let (source, carets) = (lines.next().unwrap(), lines.next().unwrap());
        let at = carets.chars().position(|c| c == '^').unwrap();
        assert_eq!(source.chars().skip(at).take(5).collect::<String>(), "wrong");
    }
}
