//! The queue as a person sees it who has nothing but SQL.

use std::process::Command;
use std::time::Duration;

use gristmill_core::{Clock, NewTask, Outcome, Payload, SettingsPatch, Store, Timestamp};

use crate::support::{Place, claim, declare, keyed, put, settlements};

const LOOK: &str = "SELECT id, queue, state, key, attempts, claims, error, payload, created_at,
    worker, lease_until FROM gristmill_tasks ORDER BY id";

fn json(key: &str, text: &str) -> NewTask {
    NewTask { payload: Payload::json(text.to_owned()), ..keyed(key) }
}

#[tokio::test]
async fn tasks_can_be_read_by_a_person() {
    let place = Place::new();
    let store = place.open();
    let kept = Some(Some(Duration::from_secs(60)));
    let settings =
        SettingsPatch { keep_done: kept, max_attempts: Some(Some(1)), ..SettingsPatch::default() };
    declare(&store, "emails", settings).await;
    put(&store, "emails", vec![json("a", r#"{"to": "ada"}"#)]).await;
    let held = claim(&store, "emails", 1).await;
    let outcome = Outcome::Error("no such host".to_owned());
    store.settle(settlements(&held, &outcome)).await.unwrap();
    put(&store, "emails", vec![json("b", "1")]).await;
    let held = claim(&store, "emails", 1).await;
    store.settle(settlements(&held, &Outcome::Done)).await.unwrap();
    let raw = NewTask { payload: Payload::raw(vec![0xff]), ..keyed("d") };
    put(&store, "emails", vec![json("c", "2"), raw]).await;
    claim(&store, "emails", 1).await;
    // Behind the one that runs.
    put(&store, "emails", vec![json("c", "3")]).await;
    let application = place.application();
    let mut look = application.prepare(LOOK).unwrap();
    let texts = |row: &gristmill_sqlite::rusqlite::Row<'_>| {
        let read = (0..11).map(|at| {
            Ok(match row.get_ref(at)? {
                gristmill_sqlite::rusqlite::types::ValueRef::Null => String::new(),
                gristmill_sqlite::rusqlite::types::ValueRef::Integer(n) => n.to_string(),
                other => other.as_str()?.to_owned(),
            })
        });
        read.collect::<gristmill_sqlite::rusqlite::Result<Vec<String>>>()
    };
    let rows: Vec<String> = look
        .query_map([], |row| Ok(texts(row)?.join("|")))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    // As times are written everywhere, to the microsecond.
    let (at, until) = (place.clock.now(), place.clock.now().after(Duration::from_secs(60)));
    let text = |at: Timestamp| at.to_string().replace('Z', ".000000Z");
    let (at, until) = (text(at), text(until));
    let wanted = [
        format!("1|emails|failed|a|1|1|no such host|{{\"to\": \"ada\"}}|{at}||"),
        format!("2|emails|done|b|1|1||1|{at}||"),
        format!("3|emails|processing|c|1|1||2|{at}|w|{until}"),
        format!("4|emails|pending|d|0|0|||{at}||"),
        format!("5|emails|pending|c|0|0||3|{at}||"),
    ];
    assert_eq!(rows, wanted);

    // The shell prints the same.
    match Command::new("sqlite3").arg(place.path()).arg(LOOK).output() {
        Ok(said) => {
            let said = String::from_utf8(said.stdout).unwrap();
            assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
        }
        Err(error) => println!("NOT RUN: sqlite3: {error}"),
    }
}
