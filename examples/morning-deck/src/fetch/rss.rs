//! RSS 2.0 and Atom feeds.

use super::{Entry, SourceFetcher};
use crate::error::Result;
use crate::html;
use crate::markup::{Piece, pieces};
use crate::url;

pub(super) struct Rss;

impl SourceFetcher for Rss {
    fn read(&self, base: &str, document: &str) -> Result<Vec<Entry>> {
        let mut feed = Feed { base, root: None, at: Vec::new(), item: None, entries: Vec::new() };
        for piece in pieces(document) {
            feed.take(piece);
        }
        match feed.root {
            None => Err("this is not a feed: there is neither <rss> nor <feed>".into()),
            // Half a feed would make the other half look like news later.
            Some(root) if !feed.at.is_empty() => {
                Err(format!("the feed is cut off: <{root}> does not end").into())
            }
            Some(_) => Ok(feed.entries),
        }
    }
}

/// A feed while it is read.
struct Feed<'a> {
    base: &'a str,
    root: Option<String>,
    /// The elements around the current place.
    at: Vec<String>,
    item: Option<Item>,
    entries: Vec<Entry>,
}

#[derive(Default)]
struct Item {
    guid: String,
    link: String,
    title: String,
    summary: String,
    content: String,
}

impl Feed<'_> {
    fn take(&mut self, piece: Piece) {
        match &piece {
            Piece::Open { name, empty, .. } => {
                if self.root.is_none() {
                    if !matches!(name.as_str(), "rss" | "feed" | "rdf:rdf") {
                        return;
                    }
                    self.root = Some(name.clone());
                }
                if is_item(name) && !empty {
                    self.item = Some(Item::default());
                }
                let link = piece.attribute("href").filter(|_| name == "link" && is_main(&piece));
                if let (Some(item), Some(link)) = (&mut self.item, link) {
                    link.clone_into(&mut item.link);
                }
                if !empty {
                    self.at.push(name.clone());
                }
            }
            Piece::Close(name) => {
                if let Some(at) = self.at.iter().rposition(|open| open == name) {
                    self.at.truncate(at);
                }
                if is_item(name) {
                    let entry = self.item.take().and_then(|item| item.entry(self.base));
                    self.entries.extend(entry);
                }
            }
            Piece::Text(text) => {
                let inner = self.at.last().map(String::as_str);
                if let (Some(item), Some(inner)) = (&mut self.item, inner) {
                    item.add(inner, text);
                }
            }
        }
    }
}

fn is_item(name: &str) -> bool {
    matches!(name, "item" | "entry")
}

/// Atom has links of many kinds; the page itself is `alternate`, or unsaid.
fn is_main(link: &Piece) -> bool {
    link.attribute("rel").is_none_or(|rel| rel == "alternate")
}

impl Item {
    fn add(&mut self, element: &str, text: &str) {
        let field = match element {
            "guid" | "id" => &mut self.guid,
            "link" => &mut self.link,
            "title" => &mut self.title,
            "description" | "summary" => &mut self.summary,
            "content:encoded" | "content" => &mut self.content,
            _ => return,
        };
        field.push_str(text);
    }

    /// The entry, unless there is nothing to tell it from others by.
    fn entry(self, base: &str) -> Option<Entry> {
        let link = self.link.trim();
        let url = if link.is_empty() { base.to_owned() } else { url::join(base, link) };
        let guid = [self.guid.trim(), link].into_iter().find(|text| !text.is_empty())?.to_owned();
        let content = if self.content.trim().is_empty() { &self.summary } else { &self.content };
        let title = Some(html::text(&self.title)).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| url.clone()).replace('\n', " ");
        Some(Entry { guid, url, title, content: html::text(content) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Vec<Entry> {
        Rss.read("http://feeds.example.com/a/feed.xml", document).expect("a feed")
    }

    #[test]
    fn rss_items_are_read() {
        let entries = read(
            r#"<?xml version="1.0"?><rss version="2.0"><channel><title>Channel</title>
            <link>http://example.com/</link>
            <item><title>Cats &amp; dogs</title><link>http://example.com/1</link>
              <guid isPermaLink="false">n-1</guid><description>short</description>
              <content:encoded><![CDATA[<p>The <b>whole</b> story.</p>]]></content:encoded></item>
            <item><title><![CDATA[No guid]]></title><link>/2</link>
              <description>&lt;p&gt;escaped&lt;/p&gt;</description></item>
            <item><title>Neither link nor guid</title></item>
            </channel></rss>"#,
        );
        assert_eq!(entries.len(), 2);
        let Entry { guid, url, title, content } = &entries[0];
        assert_eq!((guid.as_str(), url.as_str()), ("n-1", "http://example.com/1"));
        assert_eq!((title.as_str(), content.as_str()), ("Cats & dogs", "The whole story."));
        assert_eq!((entries[1].guid.as_str(), entries[1].content.as_str()), ("/2", "escaped"));
        assert_eq!(entries[1].url, "http://feeds.example.com/2");
    }

    #[test]
    fn atom_entries_are_read() {
        let entries = read(
            r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><id>feed</id>
            <entry><id>e-1</id><title type="html">A &lt;i&gt;title&lt;/i&gt;</title>
              <link rel="self" href="/self"/><link href="posts/1"/>
              <summary>sum</summary></entry></feed>"#,
        );
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].url, "http://feeds.example.com/a/posts/1");
        assert_eq!((entries[0].guid.as_str(), entries[0].title.as_str()), ("e-1", "A title"));
        assert_eq!(entries[0].content, "sum");
    }

    #[test]
    fn what_is_no_whole_feed_is_an_error() {
        let error = |text| Rss.read("http://a/", text).expect_err("no feed").to_string();
        assert!(error("<html><body>Not found</body></html>").contains("not a feed"));
        assert!(error("").contains("not a feed"));
        assert!(error("<rss><channel><item><title>a</title>").contains("cut off"));
        assert_eq!(read("<rss><channel></channel></rss>"), []);
    }
}
