//! An enrichment service that does as the test says.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use morning_deck::ai::{AiService, Article, Enrichment};
use morning_deck::error::Result;
use tokio::sync::watch;

/// What it does with the next articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Answers,
    Refuses,
    Panics,
}

/// The service. An article's score is the number in its title.
#[derive(Debug)]
pub(crate) struct TestAi {
    mood: watch::Sender<Mood>,
    open: watch::Sender<bool>,
    asked: watch::Sender<Vec<Article>>,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    dropped: AtomicBool,
}

impl TestAi {
    pub(crate) fn new() -> Self {
        TestAi {
            mood: watch::Sender::new(Mood::Answers),
            open: watch::Sender::new(true),
            asked: watch::Sender::new(Vec::new()),
            inside: AtomicUsize::new(0),
            most_inside: AtomicUsize::new(0),
            dropped: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// Articles wait for their answer while it is not open.
    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// What it was asked about so far.
    pub(crate) fn articles(&self) -> Vec<Article> {
        self.asked.borrow().clone()
    }

    /// Waits until it was asked this often.
    pub(crate) async fn asked(&self, times: usize) {
        self.asked.subscribe().wait_for(|asked| asked.len() >= times).await.expect("it lives");
    }

    /// The most articles it had at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_inside.load(Ordering::SeqCst)
    }

    /// Whether somebody gave up on it.
    pub(crate) fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// Notices an answer that nobody waited for.
struct Inside<'a>(&'a TestAi, bool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.dropped.store(true, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl AiService for TestAi {
    async fn enrich_with_score(&self, article: &Article) -> Result<Enrichment> {
        let now_inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(now_inside, Ordering::SeqCst);
        let mut inside = Inside(self, false);
        self.asked.send_modify(|asked| asked.push(article.clone()));
        self.open.subscribe().wait_for(|open| *open).await?;
        inside.1 = true;
        let mood = *self.mood.borrow();
        match mood {
            Mood::Answers => {}
            Mood::Refuses => return Err("the service is over its budget".into()),
            Mood::Panics => panic!("on purpose"),
        }
        let digits: String = article.title.chars().filter(char::is_ascii_digit).collect();
        Ok(Enrichment {
            summary: format!("{} in short", article.title),
            tags: vec!["one".to_owned(), "two".to_owned()],
            score: digits.parse().unwrap_or(1),
            score_reasoning: "the number in its title".to_owned(),
        })
    }
}
