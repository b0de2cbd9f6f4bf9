//! The threads that read: each has a connection of its own and a short
//! snapshot for each question.

use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use gristmill_core::{Result, Signs};
use rusqlite::Connection;

use crate::db::Db;
use crate::errors::fault;
use crate::known::Known;
use crate::place::Place;

/// How many there are.
pub(crate) const READERS: usize = 2;

/// A question; it answers its asker by itself.
pub(crate) type Question = Box<dyn FnOnce(Result<(&Db<'_>, &mut Known)>) + Send>;

/// Serves until the store is closed or dropped.
pub(crate) fn serve(
    conn: &Connection,
    questions: &Mutex<Receiver<Question>>,
    place: &Place,
    signs: &Signs,
) {
    let db = Db::own(conn);
    let mut known = Known::default();
    loop {
        let next = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = next else {
            return;
        };
        signs.give();
        // One snapshot a question: what it reads belongs together, and a long
        // one would keep the log from being written back.
        let ready = db
            .steer("BEGIN")
            .map_err(fault)
            .and_then(|()| place.check())
            .and_then(|()| known.refresh(&db));
        match ready {
            Ok(_) => question(Ok((&db, &mut known))),
            Err(error) => question(Err(error)),
        }
        if !conn.is_autocommit()
            && let Err(error) = db.steer("ROLLBACK")
        {
            tracing::warn!(%error, "a reader could not end its snapshot");
        }
        signs.end(true);
    }
}
