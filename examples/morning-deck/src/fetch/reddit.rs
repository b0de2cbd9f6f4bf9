//! A subreddit's listing: `/r/rust/new.json`.

use serde::Deserialize;

use super::{Entry, SourceFetcher};
use crate::error::Result;
use crate::html;
use crate::url;

pub(super) struct Reddit;

#[derive(Deserialize)]
struct Listing {
    data: Children,
}

#[derive(Deserialize)]
struct Children {
    children: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    data: Post,
}

#[derive(Deserialize)]
struct Post {
    /// Its name among all of Reddit's things.
    name: String,
    title: String,
    #[serde(default)]
    selftext: String,
    permalink: String,
    /// What it links to, which for a text is the post itself.
    url: Option<String>,
    /// Pinned: the rules of the house, not news.
    #[serde(default)]
    stickied: bool,
}

impl SourceFetcher for Reddit {
    fn read(&self, base: &str, document: &str) -> Result<Vec<Entry>> {
        let listing: Listing = serde_json::from_str(document)
            .map_err(|error| format!("this is not a listing of Reddit: {error}"))?;
        let posts = listing.data.children.into_iter().map(|child| child.data);
        Ok(posts.filter(|post| !post.stickied).map(|post| post.entry(base)).collect())
    }
}

impl Post {
    fn entry(self, base: &str) -> Entry {
        let link = self.url.filter(|url| !url.is_empty()).unwrap_or(self.permalink);
        // Reddit escapes its texts for HTML.
        let title = html::text(&self.title).replace('\n', " ");
        let content = html::text(&self.selftext);
        Entry { guid: self.name, url: url::join(base, &link), title, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_read() {
        let listing = r#"{"kind":"Listing","data":{"after":null,"children":[
            {"kind":"t3","data":{"name":"t3_0","title":"Rules","permalink":"/r/x/0","stickied":true}},
            {"kind":"t3","data":{"name":"t3_1","title":"A &amp; B","selftext":"text",
              "permalink":"/r/x/comments/1/","url":"/r/x/comments/1/","score":12}},
            {"kind":"t3","data":{"name":"t3_2","title":"Link","permalink":"/r/x/2",
              "url":"http://example.com/2"}}]}}"#;
        let entries =
            Reddit.read("http://reddit.example.com/r/x/new.json", listing).expect("posts");
        let read: Vec<_> = entries.iter().map(|e| (e.guid.as_str(), e.url.as_str())).collect();
        let first = ("t3_1", "http://reddit.example.com/r/x/comments/1/");
        assert_eq!(read, [first, ("t3_2", "http://example.com/2")]);
        assert_eq!((entries[0].title.as_str(), entries[0].content.as_str()), ("A & B", "text"));
    }

    #[test]
    fn something_else_is_an_error() {
        for text in ["", "<html>", "{}", r#"{"data":{"children":[{"data":{}}]}}"#] {
            let error = Reddit.read("http://a/", text).expect_err(text).to_string();
            assert!(error.contains("not a listing of Reddit"), "{error}");
        }
    }
}
