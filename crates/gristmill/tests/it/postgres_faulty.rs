//! Stops and leases over a PostgreSQL store that misbehaves, as over the others.

use gristmill::testing::Fault;

use crate::faulty::Bad;
use crate::postgres::database;
use crate::worker_lease::ends_at_its_holder;
use crate::worker_stop::stops_while;

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
