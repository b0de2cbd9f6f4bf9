//! The workers that `up` runs, and what a reload changes of them: commands and numbers
//! of processors while they run; a worker comes or goes only where the queues it serves
//! do.

use std::sync::Arc;

use gristmill::manager::Manager;
use gristmill::worker::Worker;
use gristmill::{Mill, QueueName, StoreUrl};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::config::{Config, ManagerConfig};
use crate::contracts::Contracts;
use crate::exec::{Broken, Children, Exec, How, Stays, Told};
use crate::output::{Output, count};
use crate::serve::{Order, Staffed};

/// Who works here.
pub(crate) struct Crew {
    mill: Mill,
    url: StoreUrl,
    output: Output,
    children: Children,
    posts: Vec<Post>,
}

/// One worker, as it was told to be.
struct Post {
    queues: Vec<(QueueName, Told)>,
    processors: usize,
    /// The manager that moves its processors.
    manager: Option<ManagerConfig>,
    broken: Broken,
    orders: UnboundedSender<Order>,
}

/// A worker as the configuration wants it.
struct Wanted {
    queues: Vec<(QueueName, How)>,
    processors: usize,
    manager: Option<ManagerConfig>,
}

impl Wanted {
    fn names(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.iter().map(|(name, _)| name)
    }

    /// What a worker with this manager is, besides how often it decides.
    fn is_served_by(&self, post: &Post) -> bool {
        self.manager == post.manager && self.names().eq(post.queues.iter().map(|(name, _)| name))
    }
}

impl Crew {
    pub(crate) fn new(mill: &Mill, url: &StoreUrl, output: Output, children: &Children) -> Self {
        let (mill, url, children) = (mill.clone(), url.clone(), children.clone());
        Crew { mill, url, output, children, posts: Vec::new() }
    }

    /// Whether nobody works here.
    pub(crate) fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Makes the crew what the configuration wants: returns the workers that are new
    /// and what changed, in words.
    pub(crate) fn follow(
        &mut self,
        config: &Config,
        contracts: &Arc<Contracts>,
    ) -> (Vec<Staffed>, Vec<String>) {
        let (mut hired, mut changes) = (Vec::new(), Vec::new());
        let before = std::mem::take(&mut self.posts);
        // One whose commands could not be run has ended.
        let (mut before, _): (Vec<Post>, Vec<Post>) =
            before.into_iter().partition(|post| !post.orders.is_closed());
        for wanted in self.wanted(config, contracts) {
            let found = before.iter().position(|post| wanted.is_served_by(post));
            match found {
                Some(found) => {
                    let mut post = before.swap_remove(found);
                    post.follow(wanted, &mut changes);
                    self.posts.push(post);
                }
                None => {
                    let names: Vec<&str> = wanted.names().map(QueueName::as_str).collect();
                    let processors = count(wanted.processors as u64, "processor");
                    changes.push(format!("{} handled by {processors}", names.join(", ")));
                    hired.push(self.hire(wanted));
                }
            }
        }
        for post in before {
            let still = |queue: &QueueName| {
                self.posts.iter().any(|now| now.queues.iter().any(|(name, _)| name == queue))
            };
            let gone: Vec<&str> = post
                .queues
                .iter()
                .map(|(name, _)| name)
                .filter(|q| !still(q))
                .map(QueueName::as_str)
                .collect();
            if !gone.is_empty() {
                changes.push(format!("{} not handled here any more", gone.join(", ")));
            }
            // It may have ended by itself.
            let _ = post.orders.send(Order::Leave);
        }
        (hired, changes)
    }

    /// A worker for each queue with a handler, so that its processors are its own;
    /// with a manager one for all of them, whose processors it moves.
    fn wanted(&self, config: &Config, contracts: &Arc<Contracts>) -> Vec<Wanted> {
        let handled = config.queues.iter().filter_map(|queue| {
            let how = How {
                means: queue.means.clone()?,
                contracts: contracts.clone(),
                store: queue.with_store.then(|| self.url.clone()),
            };
            Some((queue, how))
        });
        let Some(shared) = shared_processors(config) else {
            let alone = handled.map(|(queue, how)| Wanted {
                queues: vec![(queue.name.clone(), how)],
                processors: queue.processors,
                manager: None,
            });
            return alone.collect();
        };
        let queues: Vec<_> = handled.map(|(queue, how)| (queue.name.clone(), how)).collect();
        if queues.is_empty() {
            return Vec::new();
        }
        vec![Wanted { queues, processors: shared, manager: config.manager() }]
    }

    fn hire(&mut self, wanted: Wanted) -> Staffed {
        let Wanted { queues, processors, manager } = wanted;
        let (tells, broken) = Broken::new();
        let mut worker = Worker::new(&self.mill).processors(processors);
        if let Some(said) = &manager {
            let manager = Manager::new(&self.mill);
            worker = worker.manager(match said.every {
                Some(every) => manager.every(every),
                None => manager,
            });
        }
        let queues: Vec<_> =
            queues.into_iter().map(|(queue, how)| (queue, Told::new(how))).collect();
        for (queue, told) in &queues {
            let handler = Exec {
                told: told.clone(),
                mill: self.mill.clone(),
                output_to_stderr: self.output.json,
                children: self.children.clone(),
                broken: tells.clone(),
                stays: Stays::default(),
            };
            worker = worker.queue(queue.as_str(), Arc::new(handler));
        }
        let names = queues.iter().map(|(queue, _)| queue.clone()).collect();
        let (orders, heard) = unbounded_channel();
        self.posts.push(Post { queues, processors, manager, broken: tells, orders });
        Staffed::new(worker, names, broken).ordered(heard)
    }
}

impl Post {
    /// Works as is wanted from now on.
    fn follow(&mut self, wanted: Wanted, changes: &mut Vec<String>) {
        if self.processors != wanted.processors {
            let names: Vec<&str> = wanted.names().map(QueueName::as_str).collect();
            let (before, after) = (self.processors, wanted.processors);
            changes.push(format!("{}: processors: {before} -> {after}", names.join(", ")));
            self.processors = after;
            let _ = self.orders.send(Order::Processors(after));
        }
        for ((queue, told), (_, how)) in self.queues.iter().zip(wanted.queues) {
            let before = told.now();
            let changed = before.means != how.means || before.store != how.store;
            // Contracts may have changed too, and are the newest either way.
            told.say(how);
            if changed {
                changes.push(format!("queue {queue}: its handler changed, for what starts now"));
                self.broken.forget(queue);
                let _ = self.orders.send(Order::Serve(queue.clone()));
            }
        }
    }
}

/// With a manager: how many processors all queues share.
pub(crate) fn shared_processors(config: &Config) -> Option<usize> {
    let handled = config.queues.iter().filter(|queue| queue.means.is_some());
    let all = handled.map(|queue| queue.processors).sum();
    config.manager().map(|manager| manager.processors.unwrap_or(all))
}
