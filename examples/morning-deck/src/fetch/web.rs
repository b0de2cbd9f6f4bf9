//! Web pages: the headlines on them. A headline is the first link of an
//! `<article>`, or a link in a heading where a page has no articles.

use super::{Entry, SourceFetcher};
use crate::error::Result;
use crate::html;
use crate::markup::{Piece, pieces};
use crate::url;

pub(super) struct Web;

impl SourceFetcher for Web {
    fn read(&self, base: &str, document: &str) -> Result<Vec<Entry>> {
        let pieces = pieces(document);
        let mut entries = headlines(base, &pieces, &["article"]);
        if entries.is_empty() {
            entries = headlines(base, &pieces, &["h1", "h2", "h3"]);
        }
        if entries.is_empty() {
            return Err("the page has no headlines: no link in an article or heading".into());
        }
        Ok(entries)
    }
}

/// One headline for each of these elements that has a link.
fn headlines(base: &str, pieces: &[Piece], elements: &[&str]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open: Option<Headline> = None;
    for piece in pieces {
        match piece {
            Piece::Open { name, .. } if elements.contains(&name.as_str()) => {
                keep(base, open.replace(Headline::default()), &mut entries);
            }
            Piece::Close(name) if elements.contains(&name.as_str()) => {
                keep(base, open.take(), &mut entries);
            }
            _ => {
                if let Some(headline) = &mut open {
                    headline.take(piece);
                }
            }
        }
    }
    // The last one may end with the page.
    keep(base, open, &mut entries);
    entries
}

fn keep(base: &str, headline: Option<Headline>, entries: &mut Vec<Entry>) {
    let entry = headline.and_then(|headline| headline.entry(base));
    // The same story may be teased twice on one page.
    entries.extend(entry.filter(|new| entries.iter().all(|e| e.guid != new.guid)));
}

/// An article while it is read.
#[derive(Default)]
struct Headline {
    href: Option<String>,
    in_link: bool,
    title: String,
    text: String,
}

impl Headline {
    fn take(&mut self, piece: &Piece) {
        match piece {
            Piece::Open { name, href } if name == "a" => {
                if href.is_some() && self.href.is_none() {
                    self.href.clone_from(href);
                    self.in_link = true;
                }
            }
            Piece::Close(name) if name == "a" => self.in_link = false,
            Piece::Open { .. } | Piece::Close(_) => self.text.push('\n'),
            Piece::Text(text) if self.in_link => self.title.push_str(text),
            Piece::Text(text) => self.text.push_str(text),
        }
    }

    fn entry(self, base: &str) -> Option<Entry> {
        let url = url::join(base, self.href?.trim());
        let title = html::tidy(&self.title).replace('\n', " ");
        if title.is_empty() {
            return None;
        }
        Some(Entry { guid: url.clone(), url, title, content: html::tidy(&self.text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Vec<(String, String, String)> {
        let entries = Web.read("http://news.example.com/today/", document).expect("headlines");
        entries.into_iter().map(|entry| (entry.url, entry.title, entry.content)).collect()
    }

    #[test]
    fn each_article_is_one_entry() {
        let found = read(
            r#"<h1><a href="/">News</a></h1>
            <article><h2><a href="/a">First   story</a></h2><p>Teaser &amp; more.</p>
              <a href="/a#c">12 comments</a></article>
            <article><a href="b">Second</a></article><article>no link</article>
            <article><a href="/a">First story again</a></article>"#,
        );
        let text = "Teaser & more.\n12 comments".to_owned();
        let first = ("http://news.example.com/a".to_owned(), "First story".to_owned(), text);
        let url = "http://news.example.com/today/b".to_owned();
        assert_eq!(found, [first, (url, "Second".to_owned(), String::new())]);
    }

    #[test]
    fn headings_are_taken_where_there_are_no_articles() {
        let found = read(r#"<h2><a href="http://b.example.com/x">X</a></h2><h2>plain</h2>"#);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "http://b.example.com/x");
        assert!(Web.read("http://a/", "<p>nothing</p>").is_err());
    }
}
