//! Which tasks a page is about, as its address says it.

use gristmill::port::{Action, Order, TaskFilter};
use gristmill::{QueueStats, TaskId, Timestamp};

use crate::dashboard::fields::{Fields, query};
use crate::message::fields::id;
use crate::problem::{Answer, Problem};
use crate::route::tasks::{FilterIn, since};

/// The words for where a task stands.
pub(crate) const STATES: [&str; 7] =
    ["ready", "delayed", "blocked", "pending", "processing", "failed", "done"];

/// Names in an address, in the order in which they are written.
const NAMES: [&str; 14] = [
    "queue", "state", "key", "group", "source", "error", "payload", "shape", "since", "over",
    "order", "limit", "cursor", "looked",
];
/// Those that no kept number tells apart.
const UNCOUNTED: [&str; 8] =
    ["key", "group", "source", "error", "payload", "shape", "since", "over"];
/// Tasks on a page unless said, and most.
const PAGE: (usize, usize) = (50, 500);

/// What the address says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked(Vec<(&'static str, String)>);

/// The same, as the store takes it.
pub(crate) struct Meant {
    pub(crate) filter: TaskFilter,
    pub(crate) since: Option<Timestamp>,
    /// The shape of the error.
    pub(crate) shape: Option<String>,
    /// What its payload has in it.
    pub(crate) payload: Option<String>,
    pub(crate) order: Order,
    pub(crate) after: Option<TaskId>,
    pub(crate) limit: usize,
}

impl Asked {
    pub(crate) fn read(fields: &Fields) -> Self {
        let said = NAMES.into_iter().filter_map(|name| Some((name, fields.one(name)?)));
        Asked(said.collect())
    }

    /// What is said under a name; nothing is an empty text.
    pub(crate) fn said(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str())
    }

    /// Whether it narrows what is shown.
    pub(crate) fn says_anything(&self) -> bool {
        self.0.iter().any(|(name, _)| !matches!(*name, "cursor" | "looked" | "limit" | "order"))
    }

    /// Whether one of the filters that are folded away is set.
    pub(crate) fn says_more(&self) -> bool {
        ["group", "source", "shape", "since", "over", "order", "limit"]
            .iter()
            .any(|name| !self.said(name).is_empty())
    }

    fn optional(&self, name: &str) -> Option<String> {
        Some(self.said(name)).filter(|said| !said.is_empty()).map(str::to_owned)
    }

    pub(crate) fn meant(&self) -> Answer<Meant> {
        let filter = FilterIn {
            queue: self.optional("queue"),
            state: self.optional("state"),
            key: self.optional("key"),
            group: self.optional("group"),
            source: self.optional("source"),
            error: self.optional("error"),
        };
        let mut filter = filter.meant()?;
        let number = |name: &str, why: &str| {
            let said = self.optional(name).map(|said| said.parse::<u32>());
            said.transpose().map_err(|_| Problem::field(name, why.to_owned()))
        };
        filter.claims_over = number("over", "how often it was claimed is a whole number")?;
        let limit = number("limit", "how many a page has is a whole number")?;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(PAGE.0);
        let order = match self.said("order") {
            "" | "newest" => Order::Newest,
            "oldest" => Order::Oldest,
            _ => return Err(Problem::field("order", "use newest or oldest")),
        };
        Ok(Meant {
            filter,
            since: self.optional("since").map(|text| since(&text)).transpose()?,
            shape: self.optional("shape"),
            payload: self.optional("payload"),
            order,
            after: self.optional("cursor").map(|cursor| id("cursor", &cursor)).transpose()?,
            limit: limit.clamp(1, PAGE.1),
        })
    }

    /// How many match, where the numbers that are kept say so: nobody counts rows.
    pub(crate) fn counted(&self, stats: &[QueueStats]) -> Option<u64> {
        if UNCOUNTED.iter().any(|name| !self.said(name).is_empty()) {
            return None;
        }
        let queue = self.said("queue");
        let meant = stats.iter().filter(|one| queue.is_empty() || one.queue.as_str() == queue);
        let of: fn(&QueueStats) -> u64 = match self.said("state") {
            "" => QueueStats::total,
            "pending" => QueueStats::pending,
            "ready" => |one| one.ready,
            "delayed" => |one| one.delayed,
            "blocked" => |one| one.blocked,
            "processing" => |one| one.processing,
            "failed" => |one| one.failed,
            _ => |one| one.done_kept,
        };
        Some(meant.map(of).sum())
    }

    /// Whether an operation can be about all that match: it knows neither what changes by
    /// itself nor how old or how often claimed a task is, nor what is in its payload.
    pub(crate) fn can_be_all(&self) -> bool {
        !matches!(self.said("state"), "ready" | "delayed" | "blocked" | "done")
            && self.said("since").is_empty()
            && self.said("over").is_empty()
            && self.said("payload").is_empty()
    }

    fn but<'a>(&'a self, without: &'a [&str]) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let kept = self.0.iter().filter(move |(name, _)| !without.contains(name));
        kept.map(|(name, value)| (*name, Some(value.as_str())))
    }

    /// The whole of it as a query.
    pub(crate) fn query(&self) -> String {
        query(self.but(&[]))
    }

    /// The page that begins here.
    pub(crate) fn at(&self, cursor: Option<TaskId>) -> String {
        let cursor = cursor.map(|cursor| cursor.to_string());
        query(self.but(&["cursor", "looked"]).chain([("cursor", cursor.as_deref())]))
    }

    /// The page that goes on with a look, which has looked at so many.
    pub(crate) fn on(&self, cursor: TaskId, looked: u64) -> String {
        let (cursor, looked) = (cursor.to_string(), looked.to_string());
        let here = [("cursor", Some(cursor.as_str())), ("looked", Some(looked.as_str()))];
        query(self.but(&["cursor", "looked"]).chain(here))
    }

    /// How many were looked at on the pages before this one.
    pub(crate) fn looked(&self) -> u64 {
        self.said("looked").parse().unwrap_or_default()
    }

    /// How many there are to look through.
    pub(crate) fn among(&self, stats: &[QueueStats]) -> u64 {
        match self.said("state") {
            "failed" | "done" => Asked(
                self.0
                    .iter()
                    .filter(|(name, _)| ["queue", "state"].contains(name))
                    .cloned()
                    .collect(),
            )
            .counted(stats)
            .unwrap_or_default(),
            _ => stats.iter().map(QueueStats::total).sum(),
        }
    }

    /// The page that asks whether this is to be done to all that match.
    pub(crate) fn with_action(&self, action: Action) -> String {
        let action = ("action", Some(action.as_str()));
        query([action].into_iter().chain(self.but(&["cursor", "looked", "order", "limit"])))
    }

    /// What is said, in words.
    pub(crate) fn words(&self) -> Vec<(&'static str, &str)> {
        let shown = self
            .0
            .iter()
            .filter(|(name, _)| !matches!(*name, "cursor" | "looked" | "order" | "limit"));
        shown.map(|(name, value)| (*name, value.as_str())).collect()
    }

    /// What a form sends along.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill::QueueName;

    fn asked(text: &str) -> Asked {
        Asked::read(&Fields::read(text.as_bytes()))
    }

    #[test]
    fn an_address_comes_back_as_it_was() {
        let text = "queue=a&state=failed&error=x+%26+y&cursor=7";
        assert_eq!(asked(text).query(), text);
        assert_eq!(asked(text).at(Some(TaskId(9))), "queue=a&state=failed&error=x+%26+y&cursor=9");
        assert_eq!(asked(&format!("{text}&evil=1&did=retry")).query(), text, "only what is known");
    }

    #[test]
    fn kept_numbers_say_how_many() {
        let mut one = QueueStats::new(QueueName::new("a").expect("a name"), 1);
        one.ready = 3;
        one.failed = 4;
        let mut two = QueueStats::new(QueueName::new("b").expect("a name"), 2);
        two.failed = 5;
        let stats = [one, two];
        assert_eq!(asked("state=failed").counted(&stats), Some(9));
        assert_eq!(asked("queue=a").counted(&stats), Some(7));
        assert_eq!(asked("queue=a&key=k").counted(&stats), None);
    }

    #[test]
    fn what_an_operation_cannot_say_is_not_offered() {
        for (text, can) in [
            ("state=failed&error=x", true),
            ("", true),
            ("state=ready", false),
            ("over=5", false),
            ("since=1h", false),
            ("payload=ada", false),
        ] {
            assert_eq!(asked(text).can_be_all(), can, "{text}");
        }
    }

    #[test]
    fn mistakes_name_their_field() {
        for (text, field) in [
            ("state=odd", "state"),
            ("over=x", "over"),
            ("since=y", "since"),
            ("cursor=z", "cursor"),
        ] {
            let Err(problem) = asked(text).meant() else { panic!("{text} was taken") };
            assert_eq!(problem.at_field(), Some(field), "{text}");
        }
    }
}
