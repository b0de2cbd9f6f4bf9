//! What a handler keeps for the next attempt of its task: a state, and what the
//! steps gave that ran. Both are one text of JSON, so that a person can read it.

use std::collections::BTreeMap;
use std::future::Future;

use gristmill_core::{Checkpoint, CheckpointAnswer, Kept};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::Error;
use crate::worker::handler::context::Context;

/// What goes wrong inside a step, whatever its type.
type StepError = Box<dyn std::error::Error + Send + Sync>;

/// What is kept, as it was written and not looked at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    steps: BTreeMap<String, Box<RawValue>>,
}

impl Notes {
    fn read(kept: Option<&[u8]>) -> Result<Self, Error> {
        let Some(kept) = kept else { return Ok(Notes::default()) };
        serde_json::from_slice(kept).map_err(|error| {
            unreadable("what was kept of this task is no checkpoint of this library", &error)
        })
    }
}

fn unreadable(what: &str, error: &serde_json::Error) -> Error {
    Error::Checkpoint(format!("{what}: {error}; 'gristmill retry --fresh' forgets it"))
}

impl Context {
    /// Keeps `state` for the next attempt of this task, in place of what was kept
    /// before. Once this returns it is as durable as a settlement. Together with
    /// what steps gave it may have 64 KiB as JSON.
    ///
    /// It stays through whatever brings the task back: an error, a release, a worker
    /// that was killed, an operator's retry (but not `retry --fresh`). It goes with
    /// the task.
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # async fn page(_: u32) -> Result<bool, std::io::Error> { Ok(false) }
    /// # async fn import(context: Context) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let mut next: u32 = context.resume()?.unwrap_or(1);
    /// while page(next).await? {
    ///     next += 1;
    ///     context.checkpoint(&next).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when another worker may have the task: stop. When it has
    /// no form in JSON or is too large, nothing changes. When the store cannot
    /// answer, it may have been kept or not.
    pub async fn checkpoint(&self, state: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let state = written("the checkpoint", state)?;
        self.change(|notes| notes.state = Some(state)).await
    }

    /// What the attempts before this one kept last; nothing when none kept anything.
    ///
    /// # Errors
    /// When it cannot be read as a `T`: an older version of the program kept
    /// something else. The attempt may fail with that; `gristmill retry --fresh`
    /// begins anew.
    pub fn resume<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let notes = Notes::read(self.kept())?;
        let read = |state: Box<RawValue>| {
            serde_json::from_str(state.get()).map_err(|error| {
                let what = std::any::type_name::<T>();
                unreadable(&format!("what was kept cannot be read as {what}"), &error)
            })
        };
        notes.state.map(read).transpose()
    }

    /// Runs a named step once over all attempts of this task: what it gave is kept,
    /// and given again by every later attempt (and by a later call in this one)
    /// without running it. A step that fails is not kept.
    ///
    /// At least once, for the one that was running when the process died: what it
    /// does should bear a repetition, or be recognised by [`Context::id`].
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # async fn charge() -> Result<u64, std::io::Error> { Ok(7) }
    /// # async fn send(_: u64) -> Result<(), String> { Ok(()) }
    /// # async fn order(context: Context) -> Result<(), gristmill::Error> {
    /// let receipt: u64 = context.step("charge", || charge()).await?;
    /// context.step("send", || send(receipt)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Step`] with the step's own error; and as [`Context::checkpoint`] and
    /// [`Context::resume`].
    pub async fn step<T, E, F>(&self, name: &str, run: impl FnOnce() -> F) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<StepError>,
        F: Future<Output = Result<T, E>>,
    {
        let ran = self.notes().await?.as_ref().and_then(|notes| notes.steps.get(name).cloned());
        if let Some(value) = ran {
            return serde_json::from_str(value.get()).map_err(|error| {
                let what = std::any::type_name::<T>();
                unreadable(&format!("what step '{name}' gave cannot be read as {what}"), &error)
            });
        }
        let given = run()
            .await
            .map_err(|error| Error::Step { name: name.to_owned(), error: error.into() })?;
        let value = written("what the step gave", &given)?;
        self.change(|notes| {
            notes.steps.insert(name.to_owned(), value);
        })
        .await?;
        Ok(given)
    }

    /// What the attempts before this one kept, as it is stored: for handlers that
    /// have a form of their own instead of [`Context::checkpoint`]'s.
    #[must_use]
    pub fn kept(&self) -> Option<&[u8]> {
        self.task().checkpoint.as_deref()
    }

    /// Keeps bytes of any form, at most 64 KiB, instead of [`Context::checkpoint`];
    /// none at all forget what was kept.
    ///
    /// # Errors
    /// As [`Context::checkpoint`].
    pub async fn keep(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let (id, token) = (self.id, self.token());
        let checkpoint = Checkpoint { id, token, state: Kept::from(bytes) };
        let answers = self.mill().store().checkpoint(vec![checkpoint]).await?;
        match answers.into_iter().next() {
            Some(CheckpointAnswer::Kept) => Ok(()),
            Some(CheckpointAnswer::Refused(why)) => Err(Error::Checkpoint(why.to_string())),
            Some(CheckpointAnswer::LeaseLost | CheckpointAnswer::Gone) | None => {
                Err(Error::LeaseLost)
            }
        }
    }

    /// What is kept by now. Held for as long as one is written: of two at once, the
    /// second knows of the first.
    async fn notes(&self) -> Result<tokio::sync::MutexGuard<'_, Option<Notes>>, Error> {
        let mut notes = self.noted().lock().await;
        if notes.is_none() {
            *notes = Some(Notes::read(self.kept())?);
        }
        Ok(notes)
    }

    async fn change(&self, change: impl FnOnce(&mut Notes)) -> Result<(), Error> {
        let mut notes = self.notes().await?;
        let mut changed = notes.clone().unwrap_or_default();
        change(&mut changed);
        let bytes = serde_json::to_vec(&changed).map_err(no_form("the checkpoint"))?;
        self.keep(bytes).await?;
        *notes = Some(changed);
        Ok(())
    }
}

fn written(what: &str, value: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Error> {
    to_raw_value(value).map_err(no_form(what))
}

fn no_form(what: &str) -> impl FnOnce(serde_json::Error) -> Error {
    move |error| Error::Checkpoint(format!("{what} cannot be written as JSON: {error}"))
}
