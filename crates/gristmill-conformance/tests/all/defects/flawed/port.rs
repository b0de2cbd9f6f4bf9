//! The port of the flawed store: each verb goes to the store inside, or where
//! it goes wrong.

use std::time::Duration;

use gristmill_core::{
    Capabilities, Declared, Document, DocumentAnswer, DocumentChange, Ending, Expects, ListRequest,
    Page, QueueName, Result, SettingsPatch, Store, Task, TaskId, WakeMark,
};
use gristmill_text::ROLES;

use super::{Defect, Flawed, lock};

macro_rules! flawed {
    (now $self:ident.flush_limit()) => { None };
    (now $self:ident.capabilities()) => { Capabilities {
        survives_kill: true, several_processes: true, ..$self.inner().capabilities()
    } };
    (now $self:ident.$verb:ident()) => { $self.inner().$verb() };
    ($self:ident.put($request:ident)) => { $self.flawed_put($request).await };
    ($self:ident.claim($request:ident)) => { flawed!(@ $self.flawed_claim($request)) };
    ($self:ident.settle($all:ident)) => { flawed!(@ $self.flawed_settle($all)) };
    ($self:ident.extend($all:ident)) => { flawed!(@ $self.flawed_extend($all)) };
    ($self:ident.checkpoint($all:ident)) => { flawed!(@ $self.flawed_checkpoint($all)) };
    ($self:ident.endings($ids:ident)) => { flawed!(@ $self.flawed_endings($ids)) };
    ($self:ident.reclaim()) => { flawed!(@ $self.flawed_reclaim()) };
    ($self:ident.sweep()) => { flawed!(@ $self.flawed_sweep()) };
    ($self:ident.wait($queues:ident, $since:ident, $timeout:ident)) => {
        flawed!(@ $self.flawed_wait($queues, $since, $timeout))
    };
    ($self:ident.get($id:ident)) => { flawed!(@ $self.flawed_get($id)) };
    ($self:ident.list($request:ident)) => { flawed!(@ $self.flawed_list($request)) };
    ($self:ident.operate($operation:ident)) => { flawed!(@ $self.flawed_operate($operation)) };
    ($self:ident.stats()) => { flawed!(@ $self.flawed_stats()) };
    ($self:ident.fire($fire:ident)) => { flawed!(@ $self.flawed_fire($fire)) };
    ($self:ident.declare_queue($declaration:ident)) => {{
        let mut declaration = $declaration;
        $self.mishear_declaration(&mut declaration);
        $self.inner().declare_queue(declaration).await
    }};
    ($self:ident.override_queue($queue:ident, $settings:ident, $by:ident)) => {
        $self.flawed_override($queue, $settings, $by).await
    };
    ($self:ident.pause_queue($queue:ident, $paused:ident, $by:ident)) => {
        $self.flawed_pause($queue, $paused, $by).await
    };
    ($self:ident.pause_schedule($name:ident, $paused:ident, $by:ident)) => {{
        let paused = $paused && !$self.has(Defect::FiresWhilePaused);
        $self.inner().pause_schedule($name, paused, $by).await
    }};
    ($self:ident.document($kind:ident, $name:ident)) => {
        $self.flawed_document($kind, $name).await
    };
    ($self:ident.save_document($change:ident)) => { $self.flawed_save($change).await };
    // It says what happened before whatever else happens.
    (@ $self:ident.$flawed:ident($($given:ident),*)) => {{
        $self.write_the_unwritten().await?;
        $self.$flawed($($given),*).await
    }};
    ($self:ident.$verb:ident($($given:ident),*)) => {{
        $self.write_the_unwritten().await?;
        $self.inner().$verb($($given),*).await
    }};
}

gristmill_core::delegate_store!(Flawed, flawed);

impl Flawed {
    async fn flawed_endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        let mut endings = self.inner().endings(ids).await?;
        let stale = lock(&self.shared.returned);
        for (id, ending) in ids.iter().zip(&mut endings) {
            if let (Ending::Done { value: Some(value) }, Some(last)) = (ending, stale.get(id)) {
                *value = last.clone();
            }
        }
        Ok(endings)
    }

    async fn flawed_wait(
        &self,
        queues: &[QueueName],
        since: WakeMark,
        timeout: Duration,
    ) -> Result<()> {
        if self.has(Defect::LosesWakeUps) {
            tokio::time::sleep(timeout).await;
            return self.inner().wait(queues, self.inner().mark(), Duration::ZERO).await;
        }
        match self.inner().wait(queues, since, timeout).await {
            Err(_) if self.defect == Some(Defect::KeepsWaitersAtTheClose) => Ok(()),
            answer => answer,
        }
    }

    async fn flawed_get(&self, id: TaskId) -> Result<Option<Task>> {
        let mut task = self.inner().get(id).await?;
        task.iter_mut().for_each(|task| self.mistell(task));
        Ok(task)
    }

    async fn flawed_list(&self, request: ListRequest) -> Result<Page> {
        let mut page = self.inner().list(request).await?;
        page.tasks.iter_mut().for_each(|task| self.mistell(task));
        Ok(page)
    }

    async fn flawed_override(
        &self,
        queue: &QueueName,
        settings: SettingsPatch,
        by: &str,
    ) -> Result<Declared> {
        let before = self.inner().queues().await?;
        let declared = self.inner().override_queue(queue, settings, by).await?;
        let fresh = before.iter().any(|one| one.name == *queue && one.overridden.is_none());
        if self.has(Defect::ForgetsOverrides) && fresh {
            self.inner().reset_queue(queue, by).await?;
        }
        Ok(declared)
    }

    async fn flawed_pause(&self, queue: &QueueName, paused: bool, by: &str) -> Result<()> {
        if self.has(Defect::PausesOneProcess) {
            self.pause_here(queue, paused);
            return self.inner().queues().await.map(drop);
        }
        let paused = paused && !self.has(Defect::IgnoresPause);
        self.inner().pause_queue(queue, paused, by).await
    }

    async fn flawed_document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let found = self.inner().document(kind, name).await?;
        Ok(found.map(|mut found| {
            if kind == ROLES && self.has(Defect::GivesRolesToAll) {
                found.read_at = found.read_at.after(Duration::from_secs(1 << 40));
            }
            found
        }))
    }

    async fn flawed_save(&self, mut change: DocumentChange) -> Result<DocumentAnswer> {
        let given_up = change.kind == ROLES
            && change.body.as_ref().is_some_and(|body| body.contains(r#""hold":0}"#));
        if given_up && self.has(Defect::KeepsRolesAfterResigning) {
            let current = self.inner().document(&change.kind, &change.name).await?;
            return Ok(DocumentAnswer::Changed { current: current.map(|one| one.version) });
        }
        let is_role = change.kind == ROLES && self.has(Defect::GivesRolesToAll);
        if let Expects::Aged { version, .. } = change.expects
            && (is_role || self.has(Defect::TakesTheAskersWordForAges))
        {
            change.expects = Expects::Version(version);
        }
        if self.has(Defect::LooksAtNothingBeside) {
            change.beside = None;
        }
        if self.has(Defect::KeepsDocumentsForGood) {
            change.keep = None;
        }
        self.inner().save_document(change).await
    }
}
