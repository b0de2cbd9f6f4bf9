//! What can be wrong with a store: one broken rule each, as real stores have
//! broken it.

macro_rules! defects {
    ($( $(#[$doc:meta])* $name:ident => $shown_by:literal, )+) => {
        /// One way to be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Defect { $( $(#[$doc])* $name, )+ }

        impl Defect {
            /// How the names of behaviours begin that must catch it.
            pub(crate) const fn shown_by(self) -> &'static str {
                match self { $( Defect::$name => $shown_by, )+ }
            }

            /// Every defect.
            pub(crate) const ALL: &'static [Defect] = &[ $( Defect::$name, )+ ];

            /// Whether it shows when one caller makes one call at a time.
            pub(crate) const fn needs_company(self) -> bool {
                matches!(
                    self,
                    Defect::AcknowledgesBeforeCommit
                        | Defect::ChecksThenInserts
                        | Defect::TearsPutsApart
                        | Defect::TearsSettlementsApart
                        | Defect::KeepsWaitersAtTheClose
                )
            }
        }

        /// One test a defect.
        macro_rules! for_each_defect {
            ($then:ident) => { $then! { $( $name )+ } };
        }
        pub(crate) use for_each_defect;
    };
}

defects! {
    /// A put is answered first and stored with the next call.
    AcknowledgesBeforeCommit => "rule_01",
    /// The reclaimer takes leases that are alive.
    ReclaimsLiveLeases => "rule_02",
    /// Expired leases are never taken back.
    NeverReclaims => "rule_02",
    /// An extension is answered and forgotten.
    ForgetsExtensions => "rule_02",
    /// Whoever settles is taken for the holder.
    SettlesWithoutToken => "rule_03",
    /// Whoever extends is taken for the holder.
    ExtendsWithoutToken => "rule_03",
    /// A repeated settlement is recorded again.
    RecordsRepeats => "rule_03",
    /// Follow-ups are put although the settlement was refused.
    PutsRefusedFollowUps => "rule_03",
    /// A lease that ran out does not count as an attempt.
    ForgetsExpiredAttempts => "rule_04",
    /// A release costs an attempt.
    BurnsReleasedAttempts => "rule_04",
    /// A suspect shares its batch with others.
    BatchesSuspects => "rule_04",
    /// Tasks fail by their lease's end and nobody is told.
    FailsInSilence => "rule_04",
    /// First in, first out, whatever was said of priority and time.
    IgnoresPriority => "rule_05",
    /// A claim for one source gets any.
    IgnoresSource => "rule_05",
    /// A claim gives one more than asked for.
    ClaimsOneMore => "rule_05",
    /// Looks for a duplicate, then inserts.
    ChecksThenInserts => "rule_06",
    /// A put that replaces keeps the old payload.
    ReplacesWithOldPayload => "rule_06",
    /// A failed task keeps its key.
    FailedBlocksPuts => "rule_06",
    /// A task put mid-run runs beside the first.
    RunsKeysSideBySide => "rule_06",
    /// A duplicate does not say of what.
    DuplicateWithoutId => "rule_07",
    /// An atomic put leaves behind what went well.
    HalfAppliesAtomicPuts => "rule_07",
    /// A put becomes visible task by task.
    TearsPutsApart => "rule_07",
    /// A caller's id is forgotten when its task is done.
    ForgetsIdsOfDoneTasks => "rule_07",
    /// A task is done although its follow-up was refused.
    LosesRefusedFollowUps => "rule_07",
    /// Payloads are kept as text.
    KeepsPayloadsAsText => "rule_07",
    /// Follow-ups are refused when the queue is full.
    AsksFollowUpsForRoom => "rule_08",
    /// A returning task is dropped when the queue is full.
    DropsReturnsWhenFull => "rule_08",
    /// The count of processing tasks does not fall with done.
    CountsDrift => "rule_09",
    /// Tasks are claimed a little before their time.
    ClaimsEarly => "rule_10",
    /// The cancel of a running task is forgotten.
    ForgetsCancels => "rule_11",
    /// A settlement and its follow-ups are two steps.
    TearsSettlementsApart => "rule_12",
    /// Who waits for work is not told that the store is closed.
    KeepsWaitersAtTheClose => "rule_13",
    /// All runs get the first slot.
    ReusesSlots => "verb_claim",
    /// A paused queue goes on.
    IgnoresPause => "verb_claim",
    /// A role is given to whoever asks.
    GivesRolesToAll => "verb_campaign",
    /// An instant fires as often as it is asked for.
    FiresTwice => "verb_fire",
}
