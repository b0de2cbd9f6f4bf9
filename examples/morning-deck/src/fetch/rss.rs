//! RSS 2.0 and Atom feeds.

use quick_xml::Reader;
use quick_xml::escape::{resolve_html5_entity, unescape_with};
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{Entry, SourceFetcher};
use crate::error::Result;
use crate::html;
use crate::url;

pub(super) struct Rss;

impl SourceFetcher for Rss {
    fn read(&self, base: &str, document: &str) -> Result<Vec<Entry>> {
        let mut feed = Feed { base, root: None, at: Vec::new(), item: None, entries: Vec::new() };
        let mut reader = Reader::from_str(document);
        // Feeds are made by hand and by programs that know little of XML.
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        let wrong = loop {
            match reader.read_event() {
                Ok(Event::Eof) => break None,
                Ok(event) => feed.take(event),
                Err(error) => break Some(error),
            }
        };
        match (feed.root, wrong) {
            (None, _) => Err("this is not a feed: there is neither <rss> nor <feed>".into()),
            (Some(_), Some(error)) => {
                Err(format!("the feed breaks off after {} bytes: {error}", reader.error_position())
                    .into())
            }
            // Half a feed would make the other half look like news later.
            (Some(root), None) if !feed.at.is_empty() => {
                Err(format!("the feed is cut off: <{root}> does not end").into())
            }
            (Some(_), None) => Ok(feed.entries),
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
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => {
                let name = name(tag.name().as_ref());
                self.open(&name, &tag);
                if self.root.is_some() {
                    if is_item(&name) {
                        self.item = Some(Item::default());
                    }
                    self.at.push(name);
                }
            }
            Event::Empty(tag) => self.open(&name(tag.name().as_ref()), &tag),
            Event::End(tag) => self.close(&name(tag.name().as_ref())),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(entity) => self.text(&character(&entity)),
            _ => {}
        }
    }

    fn open(&mut self, name: &str, tag: &BytesStart<'_>) {
        if self.root.is_none() && matches!(name, "rss" | "feed" | "rdf:rdf") {
            self.root = Some(name.to_owned());
        }
        // Atom has links of many kinds; the page itself is `alternate`, or unsaid.
        let is_main = || attribute(tag, "rel").is_none_or(|rel| rel == "alternate");
        if let Some(item) = self.item.as_mut().filter(|_| name == "link" && is_main())
            && let Some(link) = attribute(tag, "href")
        {
            item.link = link;
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(at) = self.at.iter().rposition(|open| open == name) {
            self.at.truncate(at);
        }
        if is_item(name) {
            let entry = self.item.take().and_then(|item| item.entry(self.base));
            self.entries.extend(entry);
        }
    }

    fn text(&mut self, text: &str) {
        if let (Some(item), Some(inner)) = (&mut self.item, self.at.last()) {
            item.add(inner, text);
        }
    }
}

fn name(name: &str) -> String {
    name.to_lowercase()
}

fn attribute(tag: &BytesStart<'_>, wanted: &str) -> Option<String> {
    let mut attributes = tag.html_attributes();
    let mut found = attributes.with_checks(false).flatten();
    let found = found.find(|attribute| attribute.key.as_ref().eq_ignore_ascii_case(wanted))?;
    let plain = unescape_with(&found.value, resolve_html5_entity);
    Some(plain.map_or_else(|_| found.value.to_string(), |plain| plain.into_owned()))
}

/// What an entity stands for, or itself where it stands for nothing.
fn character(entity: &BytesRef<'_>) -> String {
    match entity.resolve_char_ref() {
        Ok(Some(c)) => c.to_string(),
        _ => {
            let known = resolve_html5_entity(entity);
            known.map_or_else(|| format!("&{};", &**entity), str::to_owned)
        }
    }
}

fn is_item(name: &str) -> bool {
    matches!(name, "item" | "entry")
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
    fn a_feed_that_is_nearly_xml_is_read() {
        let entries = read(
            "<!DOCTYPE rss><rss><channel><item><title>R&D &rsquo;26 &#38; &nope; <b>x</i></title>
            <link>/1</link><description>one<br>two &lt;p&gt;</description></item></channel></rss>",
        );
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].title, "R&D ’26 & &nope;");
        assert_eq!(entries[0].url, "http://feeds.example.com/1");
    }

    #[test]
    fn what_is_no_whole_feed_is_an_error() {
        let error = |text| Rss.read("http://a/", text).expect_err("no feed").to_string();
        assert!(error("<html><body>Not found</body></html>").contains("not a feed"));
        assert!(error("").contains("not a feed"));
        assert!(error("<rss><channel><item><title>a</title>").contains("cut off"));
        assert!(error("<rss><channel><item><title>a</ti").contains("breaks off"));
        assert_eq!(read("<rss><channel></channel></rss>"), []);
    }
}
