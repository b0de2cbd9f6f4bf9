//! What a put says of one task in place of its queue's settings.

use std::borrow::Cow;
use std::time::Duration;

use crate::settings::SPAN_MAX;
use crate::{Backoff, Settings, SettingsPatch};

/// A task's own settings. Most tasks say nothing, and pay for it with one empty
/// pointer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TaskSettings(Option<Box<Said>>);

/// What was said; never nothing at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Said {
    timeout: Option<Duration>,
    max_attempts: Option<Option<u32>>,
    backoff: Option<Backoff>,
    is_wanted: bool,
}

impl TaskSettings {
    /// Whether the queue's settings hold in everything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How long its handler may take.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.as_ref()?.timeout
    }

    /// Attempts before it fails; an inner `None` is without limit.
    #[must_use]
    pub fn max_attempts(&self) -> Option<Option<u32>> {
        self.0.as_ref()?.max_attempts
    }

    /// The wait after an error.
    #[must_use]
    pub fn backoff(&self) -> Option<Backoff> {
        self.0.as_ref()?.backoff
    }

    /// Whether whoever put it waits for its end.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|said| said.is_wanted)
    }

    /// Says that whoever puts it waits for its end, which is then kept ten minutes
    /// whatever its queue says. A put that is a duplicate wants the standing task's.
    pub fn set_wanted(&mut self) {
        self.said().is_wanted = true;
    }

    /// Says how long its handler may take.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.said().timeout = Some(kept(timeout));
    }

    /// Says how many attempts it has before it fails; `None` is without limit.
    pub fn set_max_attempts(&mut self, max_attempts: Option<u32>) {
        self.said().max_attempts = Some(max_attempts);
    }

    /// Says how long it waits after an error.
    pub fn set_backoff(&mut self, backoff: Backoff) {
        let Backoff { base, cap, jitter } = backoff;
        self.said().backoff = Some(Backoff { base: kept(base), cap: kept(cap), jitter });
    }

    /// Says what another one says; what that leaves open stays.
    pub fn say(&mut self, other: &TaskSettings) {
        let Some(other) = &other.0 else { return };
        let said = self.said();
        said.timeout = other.timeout.or(said.timeout);
        said.max_attempts = other.max_attempts.or(said.max_attempts);
        said.backoff = other.backoff.or(said.backoff);
        said.is_wanted |= other.is_wanted;
    }

    fn said(&mut self) -> &mut Said {
        self.0.get_or_insert_default()
    }

    /// The queue's settings with what is said here in their place.
    #[must_use]
    pub fn over<'a>(&self, queue: &'a Settings) -> Cow<'a, Settings> {
        let Some(said) = &self.0 else {
            return Cow::Borrowed(queue);
        };
        Cow::Owned(Settings {
            timeout: said.timeout.unwrap_or(queue.timeout),
            max_attempts: said.max_attempts.unwrap_or(queue.max_attempts),
            backoff: said.backoff.unwrap_or(queue.backoff),
            ..queue.clone()
        })
    }

    /// Why no task can have these, if so: a sentence that begins with the field.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let said = self.0.as_ref()?;
        let spans = [
            ("timeout", said.timeout),
            ("backoff.base", said.backoff.map(|backoff| backoff.base)),
            ("backoff.cap", said.backoff.map(|backoff| backoff.cap)),
        ];
        for (name, span) in spans {
            if span.is_some_and(|span| span > SPAN_MAX) {
                return Some(format!("{name} is over a year"));
            }
        }
        if said.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Some("timeout is zero: the handler would be cancelled at once".to_owned());
        }
        match said.max_attempts {
            Some(Some(0)) => Some("max_attempts is 0: the task could never run".to_owned()),
            // PostgreSQL's integer; nobody counts further.
            Some(Some(max)) if max > i32::MAX.cast_unsigned() => {
                Some(format!("max_attempts is {max}: it is at most {}", i32::MAX))
            }
            _ => None,
        }
    }
}

impl From<&SettingsPatch> for TaskSettings {
    /// What it says that one task may have of its own.
    fn from(patch: &SettingsPatch) -> Self {
        let mut own = TaskSettings::default();
        if let Some(timeout) = patch.timeout {
            own.set_timeout(timeout);
        }
        if let Some(max_attempts) = patch.max_attempts {
            own.set_max_attempts(max_attempts);
        }
        if let Some(backoff) = patch.backoff {
            own.set_backoff(backoff);
        }
        own
    }
}

/// A span as every store keeps it: in whole microseconds.
fn kept(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_stands_in_the_place_of_the_queues() {
        let queue = Settings { batch_size: 7, ..Settings::default() };
        let mut own = TaskSettings::default();
        assert!(own.is_empty() && matches!(own.over(&queue), Cow::Borrowed(_)));
        own.set_max_attempts(None);
        own.set_timeout(Duration::from_secs(3));
        let both = own.over(&queue).into_owned();
        let expected =
            Settings { max_attempts: None, timeout: Duration::from_secs(3), ..queue.clone() };
        assert_eq!(both, expected);
    }

    #[test]
    fn the_fault_names_the_field() {
        let said = |say: fn(&mut TaskSettings)| {
            let mut own = TaskSettings::default();
            say(&mut own);
            own.fault().unwrap_or_default()
        };
        let year = Duration::from_secs(367 * 24 * 3600);
        assert_eq!(said(|own| own.set_max_attempts(Some(1))), "");
        assert!(said(|own| own.set_max_attempts(Some(0))).starts_with("max_attempts is 0"));
        assert!(said(|own| own.set_timeout(Duration::ZERO)).starts_with("timeout is zero"));
        let mut own = TaskSettings::default();
        own.set_timeout(year);
        assert_eq!(own.fault().as_deref(), Some("timeout is over a year"));
        let mut own = TaskSettings::default();
        own.set_backoff(Backoff { cap: year, ..Backoff::default() });
        assert_eq!(own.fault().as_deref(), Some("backoff.cap is over a year"));
    }

    #[test]
    fn nothing_said_is_one_pointer() {
        assert_eq!(size_of::<TaskSettings>(), size_of::<usize>());
    }
}
