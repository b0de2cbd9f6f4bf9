//! Why an attempt went wrong, in words: an error with all its causes, and where
//! a handler panicked.
//!
//! An error's own words often leave its cause out ("sending the mail"), and what
//! is stored is all that whoever looks at a failed task has.

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::marker::PhantomData;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// Most causes that are told: an error that has itself as its cause would be
/// followed for ever.
const CAUSES: usize = 32;

/// What says why an attempt went wrong: any error, a boxed one, an error of
/// `anyhow` or `eyre`, or a text. All causes of an error are told.
///
/// `Kind` only tells the compiler which of two ways is taken; it finds it by
/// itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say why an attempt went wrong",
    label = "not an error and not a text",
    note = "use a type that implements `std::error::Error`, a boxed one, or a `String`"
)]
pub trait IntoReason<Kind> {
    /// The reason with all its causes.
    fn into_reason(self) -> String;
}

/// The kind of what can be made a boxed error.
#[derive(Debug)]
pub struct Boxable<'a>(PhantomData<&'a ()>);

/// The kind of errors that are boxed and stay on their thread.
#[derive(Debug)]
pub struct Local(());

impl<'a, E> IntoReason<Boxable<'a>> for E
where
    E: Into<Box<dyn Error + Send + Sync + 'a>>,
{
    fn into_reason(self) -> String {
        with_causes(&*self.into())
    }
}

impl IntoReason<Local> for Box<dyn Error> {
    fn into_reason(self) -> String {
        with_causes(&*self)
    }
}

impl IntoReason<Local> for Box<dyn Error + Send> {
    fn into_reason(self) -> String {
        with_causes(&*self)
    }
}

/// `sending the mail: no connection: refused`. Some errors tell their cause
/// themselves: it is not told twice.
fn with_causes(error: &(dyn Error + '_)) -> String {
    let mut told = error.to_string();
    let mut before = told.clone();
    let mut cause = error.source();
    for _ in 0..CAUSES {
        let Some(error) = cause else { break };
        let said = error.to_string();
        if !before.contains(&said) {
            told.push_str(": ");
            told.push_str(&said);
        }
        before = said;
        cause = error.source();
    }
    told
}

thread_local! {
    /// Where this thread panicked last.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Has the place of each panic remembered from now on. Only the hook is told of
/// it, so ours goes before the program's own, which is called as before. A
/// program that sets its own later takes ours away: then no place is told.
pub(crate) fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let theirs = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            PLACE.set(info.location().map(ToString::to_string));
            theirs(info);
        }));
    });
}

/// Forgets the place of a panic that somebody else has dealt with.
pub(crate) fn forget_panic() {
    PLACE.take();
}

/// Why a handler panicked, and where.
pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    match PLACE.take() {
        Some(place) => format!("the handler panicked: {said}, at {place}"),
        // Carried over from another thread, or by a program's own hook.
        None => format!("the handler panicked: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Layer {
        said: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(all: &[&'static str]) -> Option<Box<Layer>> {
        let (said, below) = all.split_first()?;
        Some(Box::new(Layer { said, source: layers(below) }))
    }

    #[test]
    fn a_cause_is_told_once() {
        for (all, told) in [
            (&["sending", "no route", "refused"][..], "sending: no route: refused"),
            (&["sending: no route", "no route", "refused"], "sending: no route: refused"),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["alone"], "alone"),
        ] {
            assert_eq!((*layers(all).expect("layers")).into_reason(), told);
        }
    }

    #[test]
    fn whatever_says_why_is_a_reason() {
        let error = || std::io::Error::other(*layers(&["writing", "full"]).expect("layers"));
        let told = "writing: full";
        assert_eq!(error().into_reason(), told);
        assert_eq!((&error()).into_reason(), told);
        assert_eq!((Box::new(error()) as Box<dyn Error>).into_reason(), told);
        assert_eq!((Box::new(error()) as Box<dyn Error + Send>).into_reason(), told);
        assert_eq!((Box::new(error()) as Box<dyn Error + Send + Sync>).into_reason(), told);
        assert_eq!("words".into_reason(), "words");
        assert_eq!("words".to_owned().into_reason(), "words");
    }
}
