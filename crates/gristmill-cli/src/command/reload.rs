//! Reading the configuration again while `up` or `serve` runs: when a file of it
//! changes, and on SIGHUP.
//!
//! It is taken whole or not at all. A file with a mistake changes nothing; a store that
//! does not answer is asked again until it has heard all of it. Afterwards everything is
//! as if it had been started with the new file, but for what only a start can change,
//! and that is said.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill::Mill;
use gristmill::signal::Hangups;
use gristmill_contract::{QueueContract, evolution};
use tokio::sync::mpsc::UnboundedSender;

use super::up;
use crate::config::{self, Config};
use crate::contracts::Contracts;
use crate::crew::Crew;
use crate::failure::{Exit, Failure};
use crate::serve::{Staffed, say};
use gristmill_server::{LOOK, Watched};

/// How long to wait before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// What the store would refuse for good.
const REFUSED: &str = "refused";

fn not_taken(failure: &Failure) {
    say(format_args!(
        "the configuration was not taken, and all goes on as before: {}",
        failure.message
    ));
}

/// Reads the configuration again.
pub(super) struct Reload {
    pub(super) file: PathBuf,
    pub(super) handles: bool,
    pub(super) mill: Mill,
    pub(super) crew: Crew,
    pub(super) hires: UnboundedSender<Staffed>,
    pub(super) config: Config,
    pub(super) watched: Watched,
    /// Nobody else does what time brings once all workers have gone.
    pub(super) sweeps: bool,
}

impl Reload {
    /// What to look at for this configuration.
    pub(super) fn watched(file: &Path, config: &Config) -> Watched {
        Watched::new(std::iter::once(file.to_owned()).chain(config.files.iter().cloned()).collect())
    }

    /// Reloads whenever there is a reason to, until it is dropped.
    pub(super) async fn run(mut self, mut hangups: Hangups) {
        loop {
            let asked = tokio::select! {
                () = hangups.next() => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            if !asked && !self.has_changed().await {
                if self.sweeps && self.crew.is_empty() {
                    let _ = self.mill.store().sweep().await;
                }
                continue;
            }
            self.reload(asked, &mut hangups).await;
        }
    }

    /// Looks beside the runtime's threads: a file system that does not answer must hold up
    /// nothing but this.
    async fn has_changed(&mut self) -> bool {
        let mut watched = std::mem::take(&mut self.watched);
        let looked = tokio::task::spawn_blocking(move || {
            let changed = watched.look();
            (watched, changed)
        });
        match looked.await {
            Ok((watched, changed)) => {
                self.watched = watched;
                changed
            }
            // The runtime ends.
            Err(_) => false,
        }
    }

    async fn reload(&mut self, asked: bool, hangups: &mut Hangups) {
        let shown = self.file.display().to_string();
        // As they are before they are read: what changes meanwhile is read again.
        let before = Reload::watched(&self.file, &self.config);
        let new = match self.read() {
            Ok(new) => new,
            Err(failure) => {
                self.watched = before;
                return not_taken(&failure);
            }
        };
        self.watched = Reload::watched(&self.file, &new);
        self.tell_of_restarts(&new);
        loop {
            match self.take(&new).await {
                Ok(changed) => {
                    match changed {
                        0 if asked => say(format_args!("{shown} was read again: nothing changed")),
                        0 => {}
                        _ => say(format_args!("{shown} was taken")),
                    }
                    self.config = new;
                    return;
                }
                Err(failure) if failure.code == REFUSED => return not_taken(&failure),
                Err(failure) => say(format_args!(
                    "{shown} is not taken yet: {}; it is tried again",
                    failure.message
                )),
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = hangups.next() => {}
            }
            if self.has_changed().await {
                // Another one is wanted by now: the next look takes it.
                return;
            }
        }
    }

    fn read(&self) -> Result<Config, Failure> {
        let mut new = config::read(&self.file)?;
        if !self.handles {
            new.queues.iter_mut().for_each(|queue| queue.means = None);
        }
        Ok(new)
    }

    /// Finds what the store would refuse, before it has taken anything else.
    async fn look_for_refusals(&self, new: &Config) -> Result<(), Failure> {
        if new.contract.queues.is_empty() {
            return Ok(());
        }
        let known = self.mill.inspect().queues().await?;
        let stats = self.mill.inspect().stats().await?;
        for contract in &new.contract.queues {
            let Some(queue) = known.iter().find(|queue| queue.name == contract.name) else {
                continue;
            };
            let kept = queue.contract.as_deref().and_then(QueueContract::from_text);
            let breaks = kept
                .is_some_and(|kept| evolution::is_breaking(&evolution::fields(&kept, contract)));
            let stand = stats.iter().any(|of| of.queue == queue.name && of.total() > 0);
            let why = if queue.number != contract.number {
                format!("it has number {} in the store: a queue keeps its number", queue.number)
            } else if breaks && stand {
                "it could not read tasks that stand: have them done first".to_owned()
            } else {
                continue;
            };
            let why = format!("the contract of queue {}: {why}", contract.name);
            return Err(Failure::new(Exit::Refused, REFUSED, why));
        }
        Ok(())
    }

    /// Says what only a start can change. No value is said: one may be a secret.
    fn tell_of_restarts(&self, new: &Config) {
        let url = |config: &Config| config.store.as_ref().map(|(url, _)| url.clone());
        for (name, changed) in [
            ("store", url(&self.config) != url(new)),
            ("listen", self.config.listen != new.listen),
            ("metrics", self.config.metrics != new.metrics),
            ("dashboard", self.config.read_only != new.read_only),
            ("tls", self.config.tls != new.tls),
            ("keep.audit", self.config.keep.audit != new.keep.audit),
            ("keep.operations", self.config.keep.operations != new.keep.operations),
        ] {
            if changed {
                say(format_args!(
                    "{name}: a change of it is taken at the next start; until then it stays as it \
                     was"
                ));
            }
        }
    }

    /// Has the store and the workers follow the new configuration. Returns how much
    /// changed.
    async fn take(&mut self, new: &Config) -> Result<usize, Failure> {
        self.look_for_refusals(new).await?;
        let declared = up::declare_all(&self.mill, new).await?;
        for made in &declared.made {
            say(format_args!("{made}: declared"));
        }
        let mut changed = declared.changed + declared.made.len();
        let gone = self
            .config
            .queues
            .iter()
            .filter(|old| !new.queues.iter().any(|queue| queue.name == old.name));
        for queue in gone {
            changed += 1;
            say(format_args!("queue {} is not in this file any more and stays", queue.name));
        }
        let seeded = up::seed(&self.mill, new).await?;
        if seeded.put > 0 {
            changed += 1;
            say(format_args!("{} seeded", crate::output::count(seeded.put, "task")));
        }
        let contracts = Arc::new(Contracts::of(&self.mill).await?);
        let (hired, changes) = self.crew.follow(new, &contracts);
        for staffed in hired {
            // Nobody hears it: the process is about to end.
            let _ = self.hires.send(staffed);
        }
        changes.iter().for_each(say);
        Ok(changed + changes.len())
    }
}
