//! The overview as a page: each stage with its rows and its queue, then readers, what
//! comes next, what was enriched, and what failed. The browser asks for it again every few
//! seconds.

use std::fmt::Write as _;

use crate::overview::{Overview, Rows};
use crate::status::ERROR;

const STYLE: &str = include_str!("page.css");

/// A table's rows, how people call them, and the queue that works on them.
const STAGES: [(&str, &str, &str); 3] = [
    ("source", "Sources", "fetch"),
    ("news_item", "News items", "processing"),
    ("briefing", "Briefings", "briefing"),
];

/// The page.
pub(crate) fn html(overview: &Overview) -> String {
    let stages: String = STAGES.iter().map(|stage| card(overview, stage)).collect();
    let readers = overview.readers.iter().map(|reader| {
        let (credits, sources) = (reader.credits.to_string(), reader.sources.to_string());
        vec![reader.mail.clone(), reader.zone.clone(), sources, credits]
    });
    let briefings = overview.briefings.iter().map(|briefing| {
        let next = briefing.next.clone().unwrap_or_else(|| "never".to_owned());
        vec![next, briefing.title.clone(), briefing.mail.clone()]
    });
    let stories = overview.stories.iter().map(|story| {
        vec![
            story.score.to_string(),
            story.title.clone(),
            story.summary.clone(),
            story.mail.clone(),
        ]
    });
    let failures = overview.failures.iter().map(|failure| {
        let row = format!("{} {}", failure.table, failure.row);
        vec![row, failure.attempts.to_string(), failure.error.clone()]
    });
    let tables = [
        table("Next briefings", &["when", "title", "reader"], briefings),
        table("Readers", &["reader", "zone", ">sources", ">credits"], readers),
        table("Enriched last", &[">score", "title", "summary", "reader"], stories),
        table("Failed last", &["row", ">times", "why"], failures),
    ];
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"refresh\" content=\"5\"><title>Morning deck</title>\
         <style>{STYLE}</style></head><body><header><h1>Morning deck</h1><p>as of {}</p></header>\
         <main><div class=\"stages\">{stages}</div>{}</main></body></html>",
        escaped(&overview.as_of),
        tables.concat()
    )
}

/// A stage: how many rows are at each step of their way, and what their queue has.
fn card(overview: &Overview, (name, title, queue): &(&str, &str, &str)) -> String {
    let rows = overview.rows.iter().find(|rows| rows.table == *name);
    let steps: String =
        rows.into_iter().flat_map(|rows: &Rows| &rows.by_status).map(step).collect();
    let queue = overview.queues.iter().flatten().find(|known| known.name == *queue);
    let load = queue.map_or_else(String::new, |queue| {
        let most = queue.capacity.map_or_else(String::new, |most| format!(" of {most}"));
        let bar = queue.capacity.map_or_else(String::new, |most| {
            format!("<progress max=\"{most}\" value=\"{}\"></progress>", queue.waiting)
        });
        let failed = if queue.failed > 0 { " class=\"bad\"" } else { "" };
        format!(
            "<h3>queue {}</h3>{bar}<p><b>{}</b>{most} waiting, <b>{}</b> running, \
             <span{failed}><b>{}</b> failed</span></p>",
            escaped(&queue.name),
            queue.waiting,
            queue.running,
            queue.failed
        )
    });
    format!("<section><h2>{title}</h2><ol>{steps}</ol>{load}</section>")
}

/// A step of the way, seen where somebody is at it.
fn step((status, count): &(&'static str, u64)) -> String {
    let class = match (*count, *status) {
        (0, _) => " class=\"none\"",
        (_, ERROR) => " class=\"bad\"",
        _ => "",
    };
    format!("<li{class}><b>{count}</b> {status}</li>")
}

/// A table; a heading that begins with `>` stands over numbers.
fn table(title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = format!("<section><h2>{title}</h2><table><thead><tr>");
    let number = |name: &str| if name.starts_with('>') { " class=\"number\"" } else { "" };
    for name in head {
        // Writing to a string cannot fail.
        let _ = write!(
            table,
            "<th scope=\"col\"{}>{}</th>",
            number(name),
            name.trim_start_matches('>')
        );
    }
    table += "</tr></thead><tbody>";
    let mut empty = true;
    for row in rows {
        empty = false;
        let cells = head.iter().zip(&row);
        let cells = cells.map(|(name, cell)| format!("<td{}>{}</td>", number(name), escaped(cell)));
        let _ = write!(table, "<tr>{}</tr>", cells.collect::<String>());
    }
    if empty {
        let _ = write!(table, "<tr><td class=\"none\" colspan=\"{}\">none</td></tr>", head.len());
    }
    table + "</tbody></table></section>"
}

/// What a source or an error says must not become part of the page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_text_and_stays_so() {
        let rows = [vec!["<script>alert(1)</script> & \"x\"".to_owned(), "1".to_owned()]];
        let shown = table("Failed last", &["why", ">times"], rows.into_iter());
        assert!(!shown.contains("<script>"), "{shown}");
        assert!(
            shown.contains("<td>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;x&quot;</td>")
        );
        assert!(shown.contains("<td class=\"number\">1</td>"), "{shown}");
    }

    #[test]
    fn a_step_that_failed_is_seen() {
        assert_eq!(step(&(ERROR, 2)), "<li class=\"bad\"><b>2</b> ERROR</li>");
        assert_eq!(step(&(ERROR, 0)), "<li class=\"none\"><b>0</b> ERROR</li>");
        assert_eq!(step(&("NEW", 1)), "<li><b>1</b> NEW</li>");
    }
}
