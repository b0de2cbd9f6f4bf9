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
        let answer = change.apply(self.documents.get(&place), now);
        match &answer {
            DocumentAnswer::Saved(document) => {
                self.documents.insert(place, document.clone());
            }
            DocumentAnswer::Removed => {
                self.documents.remove(&place);
            }
            DocumentAnswer::Changed { .. } => {}
        }
        Ok(answer)
    }

    /// One document.
    #[must_use]
    pub fn document(&self, kind: &str, name: &str) -> Option<&Document> {
        self.documents.get(&(kind.to_owned(), name.to_owned()))
    }

    /// Documents of a kind, by name.
    #[must_use]
    pub fn documents(&self, list: &DocumentList) -> Vec<Document> {
        let from = (list.kind.clone(), list.after.clone().unwrap_or_default());
        let behind = self.documents.range(from.clone()..);
        let of_kind = behind.take_while(|((kind, _), _)| *kind == list.kind);
        let new = of_kind.filter(|(place, _)| **place != from);
        new.take(list.page()).map(|(_, document)| document.clone()).collect()
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
}
