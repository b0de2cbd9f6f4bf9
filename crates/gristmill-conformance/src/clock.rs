//! What a process that starts knows of a jump of the wall clock before its start,
//! by what the last writer saw: the tests of the stores that keep it.

/// Makes these tests for a store: the named module has a `Place` with a clock, and
/// the short verbs.
#[macro_export]
macro_rules! clock_tests {
    ($($support:tt)+) => {
        use gristmill_core::{Clock, Store};

        use $crate::short::{settlements, task};

        use $($support)+::{Place, claim, declare, put, sound, stats};

        const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

        fn seconds(seconds: u64) -> std::time::Duration {
            std::time::Duration::from_secs(seconds)
        }

        /// A store in which one task runs under a lease of a minute.
        async fn running() -> Place {
            let place = Place::new();
            let store = place.open();
            declare(&store, "q", gristmill_core::SettingsPatch::default()).await;
            put(&store, "q", vec![task("1")]).await;
            assert_eq!(claim(&store, "q", 1).await.tasks.len(), 1);
            // As a killed process leaves it.
            std::mem::forget(store);
            place
        }

        #[tokio::test]
        async fn without_a_jump_who_starts_takes_back_at_once() {
            let place = running().await;
            place.clock.advance(seconds(60));
            assert_eq!(place.open().reclaim().await, Ok(1));
        }

        #[tokio::test]
        async fn after_a_jump_who_starts_waits_for_one_heartbeat() {
            let place = running().await;
            place.clock.set_wall(place.clock.now().after(HOUR));
            let fresh = place.open();
            assert_eq!(fresh.reclaim().await, Ok(0), "its holder may be alive");
            place.clock.advance(seconds(19));
            assert_eq!(fresh.reclaim().await, Ok(0));
            place.clock.advance(seconds(1));
            assert_eq!(fresh.reclaim().await, Ok(1));
        }

        #[tokio::test]
        async fn who_starts_next_goes_on_with_that_wait() {
            let place = running().await;
            place.clock.set_wall(place.clock.now().after(HOUR));
            for left in [20, 15, 10, 5] {
                let fresh = place.open();
                // It writes something, and by it what it has seen of the time.
                put(&fresh, "q", vec![task("2")]).await;
                claim(&fresh, "q", 10).await;
                assert_eq!(claim(&fresh, "q", 1).await.held_back, Some(seconds(left)));
                assert_eq!(fresh.reclaim().await, Ok(0));
                fresh.close().await.unwrap();
                place.clock.advance(seconds(5));
            }
            assert_eq!(place.open().reclaim().await, Ok(1));
        }

        #[tokio::test]
        async fn a_lease_from_a_clock_that_was_ahead_is_not_waited_for() {
            let place = running().await;
            place.clock.set_wall(place.clock.now().before(HOUR));
            let fresh = place.open();
            assert_eq!(fresh.reclaim().await, Ok(0));
            place.clock.advance(seconds(60));
            assert_eq!(fresh.reclaim().await, Ok(1));
        }

        /// A task that was put and claimed while the clock was ahead: it was due.
        #[tokio::test]
        async fn a_task_claimed_ahead_is_due_when_it_comes_back() {
            for released in [false, true] {
                let place = Place::new();
                let right = place.clock.now();
                place.clock.set_wall(right.after(HOUR));
                let store = place.open();
                declare(&store, "q", gristmill_core::SettingsPatch::default()).await;
                put(&store, "q", vec![task("1")]).await;
                let held = claim(&store, "q", 1).await;
                place.clock.set_wall(right);
                if released {
                    let given_back = gristmill_core::Outcome::Release { at: None, started: true };
                    let answers = store.settle(settlements(&held, &given_back)).await.unwrap();
                    assert!(answers[0].is_recorded());
                } else {
                    assert_eq!(store.reclaim().await, Ok(0));
                    place.clock.advance(seconds(60));
                }
                let again = claim(&store, "q", 1).await;
                assert_eq!(
                    again.tasks.len(),
                    1,
                    "and not in an hour: {}",
                    stats(&store, "q").await.delayed
                );
                sound(&store).await;
            }
        }
    };
}
