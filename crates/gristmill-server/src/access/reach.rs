//! Which queues a token is for: names, and beginnings of names. Nothing else: a
//! pattern language is where such checks are got around.

use std::fmt;
use std::str::FromStr;

use gristmill::QueueName;

/// Most names and beginnings of one token.
const PARTS_MAX: usize = 100;

/// Which queues a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// This queue.
    Name(QueueName),
    /// Every queue whose name begins so; with nothing, every queue.
    Beginning(String),
}

/// A text says no queues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// It is neither a name nor a beginning.
    #[error("'{0}' says no queues: write a name, the beginning of names like shop-*, or *")]
    Wrong(String),
    /// There are too many of them.
    #[error("a token is for at most {PARTS_MAX} names: use the beginning of names like shop-*")]
    TooMany,
}

impl Reach {
    /// Every queue.
    #[must_use]
    pub fn all() -> Self {
        Reach(vec![Part::Beginning(String::new())])
    }

    /// The queues that these texts say; every queue when there are none.
    ///
    /// # Errors
    /// When one is neither a name nor a beginning with a `*` behind it.
    pub fn of<T: AsRef<str>>(texts: &[T]) -> Result<Self, ReachError> {
        if texts.is_empty() {
            return Ok(Reach::all());
        }
        if texts.len() > PARTS_MAX {
            return Err(ReachError::TooMany);
        }
        texts.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>().map(Reach)
    }

    /// Whether a queue is among them.
    #[must_use]
    pub fn has(&self, queue: &str) -> bool {
        self.0.iter().any(|part| match part {
            Part::Name(name) => name.as_str() == queue,
            Part::Beginning(beginning) => queue.starts_with(beginning.as_str()),
        })
    }

    /// Whether every queue is.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Beginning(text) if text.is_empty()))
    }

    /// The one queue that it is, if it is one.
    #[must_use]
    pub fn only(&self) -> Option<&QueueName> {
        match self.0.as_slice() {
            [Part::Name(name)] => Some(name),
            _ => None,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Name(name) => f.write_str(name.as_str()),
            Part::Beginning(text) => write!(f, "{text}*"),
        }
    }
}

impl FromStr for Part {
    type Err = ReachError;

    fn from_str(text: &str) -> Result<Self, ReachError> {
        let wrong = || ReachError::Wrong(text.chars().take(80).collect());
        match text.strip_suffix('*') {
            Some("") => Ok(Part::Beginning(String::new())),
            // What a name may begin with: itself a name.
            Some(beginning) => QueueName::new(beginning)
                .map(|name| Part::Beginning(name.to_string()))
                .map_err(|_| wrong()),
            None => QueueName::new(text).map(Part::Name).map_err(|_| wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_beginnings_are_told_apart() {
        let reach = Reach::of(&["emails", "shop-*"]).expect("queues");
        for (queue, within) in [
            ("emails", true),
            ("emails2", false),
            ("email", false),
            ("Emails", false),
            ("xemails", false),
            ("shop-", true),
            ("shop-orders", true),
            ("shop", false),
            ("my-shop-orders", false),
            ("*", false),
            ("", false),
        ] {
            assert_eq!(reach.has(queue), within, "{queue}");
        }
        assert!(!reach.is_all() && reach.only().is_none());
        assert_eq!(reach.texts(), ["emails", "shop-*"]);
        let all = Reach::of::<&str>(&[]).expect("all");
        assert!(all.is_all() && all.has("anything") && all == Reach::of(&["*"]).expect("all"));
        assert_eq!(Reach::of(&["a"]).expect("one").only().map(QueueName::as_str), Some("a"));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "**", "*a", "a*b", "a b", ".*", "^a$", "a|b", "a\0", "-*", "a**", "ä"] {
            assert!(Reach::of(&[text]).is_err(), "{text:?}");
        }
        assert_eq!(Reach::of(&vec!["a"; 101]), Err(ReachError::TooMany));
    }

    /// All texts of these characters, up to so many.
    fn texts(alphabet: &[char], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..most {
            let longer = |text: &String| {
                let text = text.clone();
                alphabet.iter().map(move |next| format!("{text}{next}"))
            };
            last = last.iter().flat_map(longer).collect();
            all.extend_from_slice(&last);
        }
        all
    }

    /// Every text that means something elsewhere (in a pattern of a shell, of SQL, of a
    /// regular expression) means itself here, or nothing.
    #[test]
    fn whatever_is_said_reaches_what_it_says_and_no_more() {
        let alphabet = ['a', 'b', '-', '.', '_', '*', '%', '?', '^', '|', ' ', '\n'];
        let mut reached = 0;
        let names = texts(&alphabet[..5], 4);
        for said in texts(&alphabet, 3) {
            let Ok(reach) = Reach::of(&[&said]) else { continue };
            for name in &names {
                let meant = match said.strip_suffix('*') {
                    Some(beginning) => name.starts_with(beginning),
                    None => *name == said,
                };
                assert_eq!(reach.has(name), meant, "{said:?} of {name:?}");
                reached += usize::from(meant);
            }
        }
        assert!(reached > 1_000, "{reached}");
    }
}
