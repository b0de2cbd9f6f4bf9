//! Enrichment: a service that reads an article and says what it is worth.
//!
//! Behind a trait, because it costs money, fails and is slow. The one here
//! needs no network: it counts words.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::error::Result;

/// What the service is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// What it is called.
    pub title: String,
    /// Its text.
    pub content: String,
    /// What its reader wants to read about.
    pub interests: String,
}

/// What the service makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrichment {
    /// The article in a sentence or two.
    pub summary: String,
    /// What it is about.
    pub tags: Vec<String>,
    /// What it is worth to the reader, 0 to 100.
    pub score: u8,
    /// Why.
    pub score_reasoning: String,
}

/// Reads articles.
#[async_trait]
pub trait AiService: Send + Sync + 'static {
    /// Says what an article is worth to its reader.
    ///
    /// # Errors
    /// When the service does not answer or will not.
    async fn enrich_with_score(&self, article: &Article) -> Result<Enrichment>;
}

/// Counts words.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordCounter;

/// Tags at most.
const TAGS: usize = 4;
/// Shorter words say little.
const LONG_WORD: usize = 5;
/// Most characters of a summary.
const SUMMARY: usize = 240;

#[async_trait]
impl AiService for WordCounter {
    async fn enrich_with_score(&self, article: &Article) -> Result<Enrichment> {
        Ok(enrich(article))
    }
}

fn enrich(article: &Article) -> Enrichment {
    let Article { title, content, interests } = article;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in words(title).chain(words(title)).chain(words(content)) {
        *counts.entry(word).or_default() += 1;
    }
    let liked: Vec<String> = words(interests).filter(|word| counts.contains_key(word)).collect();
    let mut tags: Vec<(&String, &usize)> =
        counts.iter().filter(|(word, _)| word.chars().count() >= LONG_WORD).collect();
    tags.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let hits: usize = liked.iter().filter_map(|word| counts.get(word)).sum();
    let score = u8::try_from(20 + 15 * hits.min(5)).unwrap_or(100);
    let score_reasoning = match liked.as_slice() {
        [] => "nothing in it is among the reader's interests".to_owned(),
        liked => format!("it speaks of {}", liked.join(", ")),
    };
    let tags = tags.into_iter().take(TAGS).map(|(word, _)| word.clone()).collect();
    Enrichment { summary: summary(title, content), tags, score, score_reasoning }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

/// The first sentence, or as much of it as fits.
fn summary(title: &str, content: &str) -> String {
    let text = if content.is_empty() { title } else { content };
    let line = text.replace('\n', " ");
    let sentence = line.find(". ").and_then(|at| line.get(..=at)).unwrap_or(&line);
    if sentence.chars().count() <= SUMMARY {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(SUMMARY - 1).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(content: &str, interests: &str) -> Enrichment {
        let (title, content) = ("Harbour news".to_owned(), content.to_owned());
        enrich(&Article { title, content, interests: interests.to_owned() })
    }

    #[test]
    fn what_the_reader_likes_scores_higher() {
        let text = "The ferry is late. A second ferry waits in the harbour.";
        let (liked, other) = (about(text, "ferry, trains"), about(text, "chess"));
        assert!(liked.score > other.score && liked.score <= 100);
        assert_eq!(liked.score_reasoning, "it speaks of ferry");
        assert_eq!(liked.summary, "The ferry is late.");
        assert_eq!(liked.tags[0], "harbour");
        assert_eq!(about("", "").summary, "Harbour news");
    }

    #[test]
    fn long_sentences_are_cut_between_characters() {
        let long = about(&"é".repeat(1_000), "").summary;
        assert_eq!(long.chars().count(), SUMMARY);
        assert!(about(&"ferry ".repeat(500), "ferry").score <= 100);
    }
}
