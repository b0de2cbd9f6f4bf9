//! Workers, schedulers and managers over a PostgreSQL store that misbehaves, as over
//! the others.

use std::sync::Arc;

use gristmill::postgres::{Options, PostgresStore};
use gristmill::testing::{Fault, ManualClock};
use gristmill_pgserver::Database;

use crate::faulty::Bad;
use crate::postgres::database;
use crate::schedule_faulty::{FAULTS, FINDS};
use crate::worker_lease::ends_at_its_holder;
use crate::worker_stop::stops_while;
use crate::{manager_faulty, schedule_faulty};

/// One on a clock that the test moves, in a schema of its own.
async fn on_a_clock(database: &Database, schema: &str) -> Vec<Bad> {
    let clock: Arc<ManualClock> = Arc::default();
    let options =
        Options { clock: Some(clock.clone()), schema: schema.to_owned(), ..Options::default() };
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    vec![Bad::on_clock(Arc::new(store), clock, None).await]
}

#[tokio::test]
async fn a_stop_ends_while_the_store_is_away() {
    for fault in [Fault::Refuses, Fault::Hangs] {
        let database = database().await;
        stops_while(vec![Bad::at(&database.url(), None).await], fault).await;
    }
}

#[tokio::test]
async fn a_lease_ends_at_its_holder() {
    let database = database().await;
    ends_at_its_holder(vec![Bad::at(&database.url(), None).await], Fault::Hangs).await;
}

async fn fire_through(faults: &[Fault]) {
    let database = database().await;
    for (number, fault) in faults.iter().enumerate() {
        let stores = on_a_clock(&database, &format!("fires{number}")).await;
        schedule_faulty::fires_once_through(stores, *fault).await;
    }
}

async fn lead_through(faults: &[Fault]) {
    let database = database().await;
    for (number, fault) in faults.iter().enumerate() {
        let stores = on_a_clock(&database, &format!("leads{number}")).await;
        manager_faulty::leads_through(stores, *fault).await;
    }
    manager_faulty::late_word_is_refused(on_a_clock(&database, "late").await).await;
}

async fn stop_through(faults: &[Fault]) {
    let database = database().await;
    for (number, fault) in faults.iter().enumerate() {
        let stores = on_a_clock(&database, &format!("schedules{number}")).await;
        schedule_faulty::stops_through(stores, *fault).await;
        let stores = on_a_clock(&database, &format!("manages{number}")).await;
        manager_faulty::stops_through(stores, *fault).await;
    }
}

#[tokio::test]
async fn an_instant_fires_once_though_its_answer_is_unknown() {
    fire_through(&[Fault::UnknownDone]).await;
}

#[tokio::test]
async fn another_manager_leads_while_the_leaders_store_hangs() {
    lead_through(&[Fault::Hangs]).await;
}

#[tokio::test]
async fn a_stop_is_heard_while_the_store_hangs() {
    stop_through(&[Fault::Hangs]).await;
}

/// The others need no server and try all of it each time.
#[tokio::test]
#[ignore = "long: all that can go wrong"]
async fn long_schedulers_and_managers_go_through_all_of_it() {
    fire_through(&FAULTS).await;
    lead_through(&FAULTS).await;
    stop_through(&FAULTS).await;
    let database = database().await;
    for (number, trouble) in FINDS.into_iter().enumerate() {
        let stores = on_a_clock(&database, &format!("finds{number}")).await;
        schedule_faulty::finds_through(stores, trouble).await;
    }
}
