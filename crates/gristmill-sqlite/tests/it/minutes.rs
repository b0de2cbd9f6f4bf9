//! Minutes past their keeping time go in bounded steps: a shorter time that somebody says
//! may leave a hundred thousand at once, and a sweep holds the file's one writer.

use std::time::Duration;

use gristmill_core::policy::keeping;
use gristmill_core::{SettingsPatch, Store};

use crate::support::{Place, declare, name, sound};

const DAY: u64 = 24 * 3600;

#[tokio::test]
async fn a_sweep_forgets_so_many_minutes_and_no_more() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "a", SettingsPatch::default()).await;
    declare(&store, "b", SettingsPatch::default()).await;
    place.clock.advance(Duration::from_secs(20 * DAY));
    // Of ten days and more ago, of two queues.
    let old = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1499)
               INSERT INTO gristmill_minute (queue, minute, put, done, failed)
               SELECT q.number, (i + 1) * 60000000 + q.number, 1, 0, 0
                 FROM n, gristmill_queue q";
    assert_eq!(place.application().execute(old, []).unwrap(), 3_000);
    let left = || {
        let count = "SELECT count(*) FROM gristmill_minute";
        place.application().query_row(count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let step = i64::try_from(place.options().limits.page).unwrap();
    for sweeps in 1..=3 {
        store.sweep().await.unwrap();
        assert_eq!(left(), 3_000 - sweeps * step);
    }
    assert_eq!(store.minutes(&name("b"), keeping::MOST).await.unwrap(), []);
    sound(&store).await;
}
