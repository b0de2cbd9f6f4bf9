//! Small records beside tasks.

use std::time::Duration;

use super::state::State;
use crate::policy::keeping;
use crate::{Document, DocumentAnswer, DocumentChange, DocumentList, Result, Timestamp};

impl State {
    /// Makes, changes or removes a document, if it stands as the change expects.
    ///
    /// # Errors
    /// As [`DocumentChange::check`].
    pub fn save_document(
        &mut self,
        change: DocumentChange,
        now: Timestamp,
    ) -> Result<DocumentAnswer> {
        change.check()?;
        let place = (change.kind.clone(), change.name.clone());
        let spared = |heartbeat| self.guard.held_back(self.monotonic, heartbeat);
        let beside = change.beside.as_ref().and_then(|one| self.document(&one.kind, &one.name));
        let beside = beside.map(|one| one.version);
        let answer = change.apply(self.documents.get(&place), beside, now, spared);
        match &answer {
            DocumentAnswer::Saved(document) => {
                self.documents.insert(place, document.clone());
            }
            DocumentAnswer::Removed => {
                self.documents.remove(&place);
            }
            DocumentAnswer::Changed { .. } | DocumentAnswer::Young { .. } => {}
        }
        Ok(answer)
    }

    /// One document as it stands.
    #[must_use]
    pub fn document(&self, kind: &str, name: &str) -> Option<&Document> {
        self.documents.get(&(kind.to_owned(), name.to_owned()))
    }

    /// One document, read now.
    #[must_use]
    pub fn read_document(&self, kind: &str, name: &str, now: Timestamp) -> Option<Document> {
        self.document(kind, name).map(|document| Document { read_at: now, ..document.clone() })
    }

    /// Documents of a kind, by name.
    #[must_use]
    pub fn documents(&self, list: &DocumentList, now: Timestamp) -> Vec<Document> {
        let from = (list.kind.clone(), list.after.clone().unwrap_or_default());
        let behind = self.documents.range(from.clone()..);
        let of_kind = behind.take_while(|((kind, _), _)| *kind == list.kind);
        let new = of_kind.filter(|(place, _)| **place != from).take(list.page());
        new.map(|(_, document)| Document { read_at: now, ..document.clone() }).collect()
    }

    /// How far back minutes are kept.
    #[must_use]
    pub fn minutes_kept(&self) -> Duration {
        let said = self.document(keeping::KIND, keeping::MINUTES);
        keeping::minutes_kept(said.map(|document| document.body.as_str()))
    }

    /// All documents.
    pub fn all_documents(&self) -> impl Iterator<Item = &Document> {
        self.documents.values()
    }

    /// Puts a document back.
    pub fn restore_document(&mut self, document: Document) {
        self.documents.insert((document.kind.clone(), document.name.clone()), document);
    }

    /// Forgets a document.
    pub fn forget_document(&mut self, kind: String, name: String) {
        self.documents.remove(&(kind, name));
    }

    /// Forgets those past their keeping time.
    pub(super) fn forget_documents(&mut self, now: Timestamp) -> u64 {
        let over = self.documents.iter().filter(|(_, document)| document.is_forgotten(now));
        let over: Vec<_> = over.map(|(place, _)| place.clone()).collect();
        over.iter().for_each(|place| drop(self.documents.remove(place)));
        over.len() as u64
    }

    /// What was said ahead of the clock is said now.
    pub(super) fn clamp_documents(&mut self, now: Timestamp) {
        let ahead = self.documents.iter().filter(|(_, document)| document.changed_at > now);
        let ahead: Vec<_> = ahead.map(|(place, _)| place.clone()).collect();
        for place in ahead {
            if let Some(document) = self.documents.get_mut(&place) {
                document.created_at = document.created_at.min(now);
                document.changed_at = now;
            }
        }
    }
}
