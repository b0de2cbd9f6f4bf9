//! Random values of the model, from a seed: every field and every variant.

use std::time::Duration;

use gristmill_core::*;
use gristmill_remote::wire::{
    About, Back, Change, Find, Ids, Named, One, PauseQueue, PauseSchedule, Reset, Under, Wait,
    Which, Woken,
};

/// Numbers from a seed.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(n).unwrap()).unwrap()
    }

    /// Any value of a type.
    pub(crate) fn any<T: Any>(&mut self) -> T {
        T::any(self)
    }
}

/// A type of which any value can be had.
pub(crate) trait Any {
    fn any(dice: &mut Dice) -> Self;
}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Any for $type {
            fn any(dice: &mut Dice) -> Self {
                // Edges are met as well as what lies between.
                match dice.below(4) {
                    0 => <$type>::MAX,
                    1 => <$type>::MIN,
                    _ => dice.roll() as $type,
                }
            }
        }
    )+};
}
numbers!(i16, u32, u64, i64, usize);

impl Any for bool {
    fn any(dice: &mut Dice) -> Self {
        dice.below(2) == 0
    }
}

impl Any for String {
    fn any(dice: &mut Dice) -> Self {
        let parts = ["", "a", "\"", "\\", "\n", "\u{0}", "ß", "🦀", "null", "{}", " "];
        (0..dice.below(6)).map(|_| parts[dice.below(parts.len())]).collect()
    }
}

impl Any for Progress {
    fn any(dice: &mut Dice) -> Self {
        Progress::new(dice.any(), dice.any(), &dice.any::<String>())
    }
}

impl<T: Any> Any for Option<T> {
    fn any(dice: &mut Dice) -> Self {
        dice.any::<bool>().then(|| dice.any())
    }
}

impl<T: Any> Any for Vec<T> {
    fn any(dice: &mut Dice) -> Self {
        (0..dice.below(4)).map(|_| dice.any()).collect()
    }
}

impl<A: Any, B: Any> Any for (A, B) {
    fn any(dice: &mut Dice) -> Self {
        (dice.any(), dice.any())
    }
}

impl Any for Duration {
    fn any(dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Duration::MAX,
            1 => Duration::ZERO,
            2 => Duration::new(dice.any(), 999_999_999),
            _ => Duration::from_micros(dice.roll() >> 20),
        }
    }
}

/// A time as settings are stored: in microseconds.
fn span(dice: &mut Dice) -> Duration {
    Duration::from_micros(dice.roll() >> 24)
}

impl Any for Timestamp {
    fn any(dice: &mut Dice) -> Self {
        Timestamp::from_micros(dice.any())
    }
}

impl Any for TaskId {
    fn any(dice: &mut Dice) -> Self {
        TaskId(dice.any())
    }
}

impl Any for Token {
    fn any(dice: &mut Dice) -> Self {
        let high = u128::from(dice.roll()) << 64;
        Token::from_bytes((high | u128::from(dice.roll())).to_be_bytes())
    }
}

impl Any for QueueName {
    fn any(dice: &mut Dice) -> Self {
        QueueName::new(["a", "emails", "a.b-c_9"][dice.below(3)]).unwrap()
    }
}

impl Any for ScheduleName {
    fn any(dice: &mut Dice) -> Self {
        ScheduleName::new(["nightly", "s1"][dice.below(2)]).unwrap()
    }
}

impl Any for WorkerId {
    fn any(dice: &mut Dice) -> Self {
        WorkerId::stored(&dice.any::<String>())
    }
}

impl Any for Kept {
    fn any(dice: &mut Dice) -> Self {
        Kept::from(bytes(dice))
    }
}

fn bytes(dice: &mut Dice) -> Vec<u8> {
    (0..dice.below(20)).map(|_| dice.roll() as u8).collect()
}

impl Any for Headers {
    fn any(dice: &mut Dice) -> Self {
        (0..dice.below(3)).map(|_| (dice.any(), dice.any())).collect()
    }
}

macro_rules! one_of {
    ($($type:ident { $($value:expr),+ $(,)? })+) => {$(
        impl Any for $type {
            fn any(dice: &mut Dice) -> Self {
                let all = [$($value),+];
                all[dice.below(all.len())].clone()
            }
        }
    )+};
}
one_of! {
    Action {
        Action::Retry, Action::RetryFresh, Action::Resolve, Action::Discard, Action::Cancel,
    }
    AttemptEnd {
        AttemptEnd::Done, AttemptEnd::Error, AttemptEnd::Retry, AttemptEnd::Fail,
        AttemptEnd::Release, AttemptEnd::TimedOut, AttemptEnd::Expired, AttemptEnd::Cancelled,
    }
    Encoding { Encoding::Json, Encoding::Msgpack, Encoding::Raw }
    Missed { Missed::Once, Missed::Skip, Missed::All }
    Overlap { Overlap::Allow, Overlap::Skip }
    Origin { Origin::Contract, Origin::Config, Origin::Code }
    State { State::Pending, State::Processing, State::Failed, State::Done }
    Unique { Unique::Pending, Unique::Active }
    Order { Order::Oldest, Order::Newest }
    StandingPlace { StandingPlace::Waiting, StandingPlace::InFlight, StandingPlace::Failed }
}

impl Any for TaskSettings {
    fn any(dice: &mut Dice) -> Self {
        let mut own = TaskSettings::default();
        if dice.any() {
            own.set_timeout(span(dice));
        }
        if dice.any() {
            own.set_max_attempts(dice.any());
        }
        if dice.any() {
            let jitter = dice.any();
            own.set_backoff(Backoff { base: span(dice), cap: span(dice), jitter });
        }
        if dice.any() {
            own.set_wanted();
        }
        own
    }
}

impl Any for SettingsPatch {
    fn any(dice: &mut Dice) -> Self {
        SettingsPatch {
            lease: Some(span(dice)).filter(|_| dice.any()),
            max_attempts: dice.any(),
            unique: dice.any(),
            keep_done: Some(Some(span(dice)).filter(|_| dice.any())),
            capacity: dice.any(),
            count: dice.any(),
            bind: Some(Some(Binding { table: dice.any(), column: dice.any() })),
            ..SettingsPatch::default()
        }
    }
}

impl Any for Settings {
    fn any(dice: &mut Dice) -> Self {
        let mut settings = Settings::default();
        dice.any::<SettingsPatch>().apply_to(&mut settings);
        settings
    }
}

impl Any for Task {
    fn any(dice: &mut Dice) -> Self {
        let mut task = Task::new(dice.any(), dice.any(), dice.any(), dice.any());
        (task.key, task.group, task.source) = (dice.any(), dice.any(), dice.any());
        (task.priority, task.state, task.blocked) = (dice.any(), dice.any(), dice.any());
        (task.unique, task.attempts, task.claims) = (dice.any(), dice.any(), dice.any());
        (task.expiries, task.run_at, task.prev_run_at) = (dice.any(), dice.any(), dice.any());
        (task.claimed_at, task.lease) = (dice.any(), dice.any());
        (task.cancel_requested, task.failed_at) = (dice.any(), dice.any());
        (task.error, task.history, task.note) = (dice.any(), dice.any(), dice.any());
        (task.resolved_by, task.resolved_at) = (dice.any(), dice.any());
        (task.headers, task.settings) = (dice.any(), dice.any());
        (task.checkpoint, task.damaged) = (dice.any(), dice.any());
        task
    }
}

impl Any for QueueStats {
    fn any(dice: &mut Dice) -> Self {
        let mut stats = QueueStats::new(dice.any(), dice.any());
        (stats.ready, stats.delayed, stats.blocked) = (dice.any(), dice.any(), dice.any());
        (stats.processing, stats.failed, stats.done_kept) = (dice.any(), dice.any(), dice.any());
        (stats.oldest_ready, stats.paused) = (dice.any(), dice.any());
        (stats.capacity, stats.counters) = (dice.any(), dice.any());
        stats
    }
}

impl Any for Counters {
    fn any(dice: &mut Dice) -> Self {
        let values: Vec<u64> = Counters::NAMES.iter().map(|_| dice.any()).collect();
        Counters::from_values(&values)
    }
}

impl Any for Waits {
    fn any(dice: &mut Dice) -> Self {
        Waits(std::array::from_fn(|_| dice.any()))
    }
}

impl Any for Payload {
    fn any(dice: &mut Dice) -> Self {
        Payload { bytes: bytes(dice).into(), encoding: dice.any() }
    }
}

impl Any for Declared {
    fn any(dice: &mut Dice) -> Self {
        let changes = (0..dice.below(3))
            .map(|_| (Settings::NAMES[dice.below(Settings::NAMES.len())], dice.any(), dice.any()));
        let changes = changes.collect();
        Declared { queue: dice.any(), created: dice.any(), changes }
    }
}

impl Any for Diagnosis {
    fn any(dice: &mut Dice) -> Self {
        let code = ["schema_drift", "clock"][dice.below(2)];
        Diagnosis { code, grave: dice.any(), found: dice.any(), remedy: dice.any() }
    }
}

impl Any for StoreError {
    fn any(dice: &mut Dice) -> Self {
        let why: String = dice.any();
        match dice.below(14) {
            0 => StoreError::busy(why),
            1 => StoreError::held(why),
            2 => StoreError::unavailable(why),
            3 => StoreError::unknown(why),
            4 => StoreError::disk_full(why),
            5 => StoreError::invalid(why),
            6 => StoreError::UnknownQueue { name: why, suggestion: dice.any() },
            7 => StoreError::not_a_store(why),
            8 => StoreError::NewerSchema { found: dice.any(), known: dice.any() },
            9 => StoreError::permission(why),
            10 => StoreError::fault(why),
            11 => StoreError::corrupt(why),
            12 => StoreError::not_supported(why),
            _ => StoreError::Closed,
        }
    }
}

macro_rules! records {
    ($($type:ident { $($field:ident),+ $(,)? })+) => {$(
        impl Any for $type {
            fn any(dice: &mut Dice) -> Self {
                $type { $($field: dice.any()),+ }
            }
        }
    )+};
}
records! {
    Attempt { worker, claimed_at, ended_at, end, error }
    LeaseView { worker, until, slot, progress }
    ProgressView { progress, at }
    TaskProgress { id, progress }
    Note { text, by }
    TaskFilter { queue, state, key, group, source, error_contains, claims_over, stood_at, blocked, runs_by, runs_after }
    ListRequest { filter, order, after, limit }
    Page { tasks, next, looked }
    KeyStanding { key, id, place, state }
    NewTask { payload, key, group, source, priority, start, id, headers, settings }
    PutRequest { queue, tasks, atomic }
    PutReport { answers }
    FollowUp { queue, task }
    Import { queue, tasks }
    ImportTask { mark, in_flight, task }
    ClaimRequest { queue, max, lease, worker, source, token }
    Claim { token, queue, lease, tasks, next_due, held_back, paused, failed }
    ClaimedTask {
        id, payload, key, group, source, priority, attempt, claims, created_at, run_at,
        prev_run_at, headers, settings, checkpoint, concurrent, slot, alone,
    }
    Checkpoint { id, token, state }
    Settlement { id, token, outcome, follow_ups, result }
    Extension { token, lease, progress }
    Operation { action, selection, limit, by, note, start }
    OperationReport { answers, next }
    Declaration { name, number, settings, origin }
    Override { settings, by, at }
    Queue {
        name, number, declared, overridden, settings, paused, paused_by, contract, created_at,
    }
    ContractChange { queue, text, replaces, breaking }
    TaskOptions { key, group, source, priority, delay, headers, settings }
    ScheduleDeclaration { name, queue, rule, zone, payload, options, missed, overlap }
    Schedule { declared, paused, paused_by, decided_until, last_fire, last_tasks, created_at }
    Fire { schedule, instant, tasks, by_hand }
    Document { kind, name, version, body, created_at, changed_at, keep, read_at }
    Beside { kind, name, version }
    DocumentChange { kind, name, expects, beside, body, keep, durable }
    DocumentList { kind, after, limit }
    Minute { at, put, done, failed, waits }
    SweepReport {
        reclaimed, failed, promoted, unblocked, put_again, without_subject, forgotten_ids,
        pruned_done, pruned_failed, forgotten_endings, forgotten_documents, oldest_transaction,
        quiet,
    }
    Capabilities {
        survives_kill, survives_power_cut, several_processes, put_in_transaction, bound_subjects,
        atomic_follow_ups, exact_capacity, pushes_across_processes, passes_by, meant_for,
    }
    Limits {
        payload_bytes, text_bytes, headers_bytes, put_tasks, claim_tasks, claim_bytes,
        checkpoint_bytes, result_bytes, settlements, page, looks, error_bytes, history, wait,
        started_releases, reclaimed_leases,
    }
    About { port, oldest, version, capabilities, limits, body_bytes, now }
    Ids { ids }
    Under { token }
    Wait { queues, since, timeout }
    Woken { woken }
    Find { queue, keys }
    One { id }
    Change { queue, settings, by }
    Reset { queue, by }
    PauseQueue { queue, paused, by }
    Back { queue, back }
    Named { name }
    PauseSchedule { name, paused, by }
    Which { kind, name }
}

macro_rules! choices {
    ($($type:ident { $($at:pat => $variant:ident
        $( { $($field:ident),+ } )? $( ( $inner:ident ) )?),+ $(,)? } of $n:literal;)+) => {$(
        impl Any for $type {
            fn any(dice: &mut Dice) -> Self {
                match dice.below($n) {
                    $( $at => $type::$variant
                        $( { $($field: dice.any()),+ } )?
                        $( ({ let $inner = dice.any(); $inner }) )?, )+
                }
            }
        }
    )+};
}
choices! {
    Start { 0 => Now, 1 => At(at), _ => After(after) } of 3;
    When { 0 => At(at), _ => After(after) } of 2;
    PutAnswer {
        0 => Enqueued { id }, 1 => Duplicate { id, run_at, source }, 2 => Replaced { id },
        _ => Refused(why),
    } of 4;
    Refusal {
        0 => QueueFull { capacity }, 1 => StoreFull { tasks, bytes },
        2 => PayloadTooLarge { bytes, limit }, 3 => DoesNotFit(why),
        4 => UnknownQueue { name, suggestion },
        5 => NoSuchSubject { table, column, key, spelling }, 6 => SubjectTableGone { table },
        7 => IdReused { first }, 8 => Twin { of }, 9 => Invalid(why), _ => Undone { because },
    } of 11;
    ImportAnswer {
        0 => Imported { id }, 1 => Already { id }, 2 => Duplicate { id }, _ => Refused(why),
    } of 4;
    CheckpointAnswer { 0 => Kept, 1 => Refused(why), 2 => LeaseLost, _ => Gone } of 4;
    Outcome {
        0 => Done, 1 => Error(error), 2 => TimedOut(after), 3 => Retry { at, reason },
        4 => Fail(error), 5 => Release { at, started }, _ => Cancelled,
    } of 7;
    Became { 0 => Done, 1 => Pending { run_at }, 2 => Failed, _ => Cancelled } of 4;
    SettleAnswer {
        0 => Recorded { became, follow_ups }, 1 => AlreadyRecorded, 2 => Gone, _ => LeaseLost,
    } of 4;
    ExtendAnswer { 0 => Extended { cancelled, lost }, _ => LeaseLost } of 2;
    Ending {
        0 => Open { wanted }, 1 => Done { value }, 2 => Failed { error }, 3 => Cancelled,
        4 => Discarded, _ => NotKnown,
    } of 6;
    Selection { 0 => Ids(ids), _ => Matching { filter, after } } of 2;
    OperationAnswer {
        0 => Moved, 1 => CancelRequested, 2 => DuplicateOf(id), 3 => WrongState(state),
        4 => Held, _ => Gone,
    } of 6;
    ContractAnswer { 0 => Registered, 1 => Changed, _ => TasksStand(tasks) } of 3;
    Rule { 0 => Cron(cron), _ => Every(every) } of 2;
    FireAnswer {
        0 => Fired(answers), 1 => Asked, 2 => AlreadyDecided, 3 => Overlapped(id), 4 => Paused,
        5 => NotYet(wait), _ => Unknown,
    } of 7;
    Expects {
        0 => Absent, 1 => Version(version), 2 => Aged { version, least }, _ => Anything,
    } of 4;
    DocumentAnswer {
        0 => Saved(document), 1 => Removed, 2 => Changed { current }, _ => Young { left },
    } of 4;
}
