//! What is done with each queue's tasks: typed batches in, and every task of a
//! batch settled by itself.

use std::time::Duration;

use gristmill::contract::Handled;
use gristmill::worker::{BatchContext, When};

use crate::outbox::{Mail, Outbox, Refused};
use crate::queues::{
    Emails, EmailsHandler, EmailsTask, NewslettersHandler, NewslettersTask, Undelivered,
    UndeliveredHandler, UndeliveredTask,
};

/// Handles all three queues.
#[derive(Debug, Clone)]
pub struct Mailer {
    /// Where mails go.
    pub outbox: Outbox,
    /// How often a mail may return before it is given up. The store sets no
    /// limit: this is the handler's own.
    pub give_up_after: u32,
    /// The wait before the next try, doubled with each return up to an hour.
    pub wait: Duration,
}

impl EmailsHandler for Mailer {
    async fn handle_emails(&self, tasks: Vec<EmailsTask>, store: BatchContext) -> Handled {
        for task in &tasks {
            let mail = Mail {
                id: task.id().0,
                returns: task.returns(),
                to: &task.to,
                subject: &task.subject,
                body: task.body.as_deref().unwrap_or_default(),
                attachment: task.attachment.as_deref().unwrap_or_default(),
            };
            let reason = match self.outbox.deliver(&mail) {
                Ok(()) => {
                    store.done(task.id());
                    continue;
                }
                Err(Refused::Later(_)) if task.returns() < self.give_up_after => {
                    let doubled = 2u32.saturating_pow(task.returns().min(12));
                    let wait = self.wait.saturating_mul(doubled).min(Duration::from_secs(3600));
                    store.retry(task.id(), When::After(wait));
                    continue;
                }
                Err(Refused::Later(reason) | Refused::Never(reason)) => reason,
            };
            // In the step that settles the mail: it is in one place or the other.
            task.context.follow_up(Undelivered {
                to: task.to.clone(),
                user_id: task.user_id,
                reason,
                returns: task.returns().into(),
            })?;
            store.done(task.id());
        }
        Ok(())
    }
}

impl NewslettersHandler for Mailer {
    async fn handle_newsletters(&self, tasks: Vec<NewslettersTask>, _: BatchContext) -> Handled {
        for task in &tasks {
            for (to, user_id) in task.readers.iter().zip(&task.user_ids) {
                let (to, subject) = (to.clone(), task.subject.clone());
                let mail = Emails { to, user_id: *user_id, subject, body: None, attachment: None };
                task.context.follow_up(mail)?;
            }
        }
        // What is left open is done, each with the mails it puts.
        Ok(())
    }
}

impl UndeliveredHandler for Mailer {
    async fn handle_undelivered(&self, tasks: Vec<UndeliveredTask>, _: BatchContext) -> Handled {
        for task in &tasks {
            let Undelivered { to, user_id, reason, returns } = &task.task;
            self.outbox.give_up(&format!("user {user_id}, {to}, {returns} returns: {reason}"))?;
        }
        Ok(())
    }
}
