//! Fetching a source: one fetcher for each kind, all giving the same entries.

mod reddit;
mod rss;
mod web;

use std::str::FromStr;

use crate::deck::Services;
use crate::error::Result;
use crate::source::Source;

/// How a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An RSS or Atom feed.
    Rss,
    /// A page with headlines on it.
    Web,
    /// A subreddit's listing as JSON.
    Reddit,
}

impl Kind {
    /// Its name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Rss => "rss",
            Kind::Web => "web",
            Kind::Reddit => "reddit",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Kind::Rss, Kind::Web, Kind::Reddit]
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| format!("'{name}' is not a kind of source"))
    }
}

/// One piece of news, as a source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What tells it from the source's others, for ever.
    pub guid: String,
    /// Where it is.
    pub url: String,
    /// What it is called.
    pub title: String,
    /// Its text, as far as the source has it.
    pub content: String,
}

/// Reads one kind of source.
trait SourceFetcher {
    /// The entries of a document that came from `base`.
    fn read(&self, base: &str, document: &str) -> Result<Vec<Entry>>;
}

/// Fetches a source.
///
/// # Errors
/// When it does not answer, or answers with something else than it should.
pub async fn fetch(services: &Services, source: &Source) -> Result<Vec<Entry>> {
    let fetcher: &(dyn SourceFetcher + Send + Sync) = match source.kind {
        Kind::Rss => &rss::Rss,
        Kind::Web => &web::Web,
        Kind::Reddit => &reddit::Reddit,
    };
    let page = services.web.get(&source.url).await?;
    fetcher.read(&page.url, &page.body)
}
