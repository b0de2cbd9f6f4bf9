//! What can be wrong with a store: one broken rule each, as real stores have
//! broken it.

macro_rules! defects {
    ($( $(#[$doc:meta])* $name:ident => $shown_by:literal, )+) => {
        /// One way to be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Defect { $( $(#[$doc])* $name, )+ }

        impl Defect {
            /// How the names of behaviours begin that must catch it; nothing where it takes
            /// more than a behaviour, and the judge must.
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
                        | Defect::SettlesBeforeCommit
                        | Defect::ReclaimsUnguarded
                        | Defect::LosesEveryFortieth
                        | Defect::AnswersFromACache
                        | Defect::PausesOneProcess
                        | Defect::LosesWakeUps
                        | Defect::GivesOutTwice
                )
            }
        }

        impl Defect {
            /// Whether it shows only with words that the histories do not use: capitals,
            /// long payloads, checkpoints, and documents as such.
            pub(crate) const fn is_beyond_histories(self) -> bool {
                matches!(
                    self,
                    Defect::FoldsKeys
                        | Defect::CutsLongPayloads
                        | Defect::ForgetsCheckpoints
                        | Defect::KeepsStaleCheckpoints
                        | Defect::ForgetsResults
                        | Defect::ForgetsWhoWaits
                        | Defect::KeepsStaleResults
                        | Defect::TakesTheAskersWordForAges
                        | Defect::LooksAtNothingBeside
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
    /// What a task says for itself is heard and not kept.
    ForgetsOwnSettings => "rule_04",
    /// What a handler keeps is answered and forgotten.
    ForgetsCheckpoints => "verb_checkpoint",
    /// Whoever was given the task once may keep something of it.
    KeepsStaleCheckpoints => "verb_checkpoint",
    /// How far tasks are is heard and forgotten.
    ForgetsProgress => "verb_progress",
    /// Whoever was given the task once may say how far it is.
    ShowsStaleProgress => "verb_progress",
    /// What an attempt said is shown of the next one.
    KeepsProgressOfEnded => "verb_progress",
    /// What a handler returns is answered and forgotten.
    ForgetsResults => "verb_endings",
    /// A put that wants its task's end is heard and not kept.
    ForgetsWhoWaits => "verb_endings",
    /// What was returned last is kept, also when its settlement was refused.
    KeepsStaleResults => "verb_endings",
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
    /// A key that was put lately is taken again as soon as its task is gone.
    IgnoresWindows => "rule_06_window",
    /// A key is kept out for twice as long.
    DoublesWindows => "rule_06_window",
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
    /// Whatever is due runs, however much runs already.
    IgnoresConcurrency => "verb_limit",
    /// What is meant of each group is taken of all of them together.
    LimitsGroupsTogether => "verb_limit",
    /// Nobody has turns: the oldest comes first.
    IgnoresFairness => "verb_fair",
    /// As many as are due are claimed, however fast.
    IgnoresRate => "verb_rate",
    /// The burst comes on top of itself.
    DoublesTheBurst => "verb_rate",
    /// A paused queue goes on.
    IgnoresPause => "verb_claim",
    /// A role is given to whoever asks.
    GivesRolesToAll => "verb_campaign",
    /// An instant fires as often as it is asked for.
    FiresTwice => "verb_fire",
    /// An error fails at once, whatever attempts are left.
    FailsAtFirstError => "rule_04",
    /// An error is retried, whatever attempts are used up.
    RetriesForEver => "rule_04",
    /// An error comes back without a wait.
    RetriesAtOnce => "rule_04",
    /// A retry that the handler asks for gives the attempt back.
    RetryDoesNotCount => "rule_04",
    /// A failure for good is only an error.
    RetriesWhatFailed => "rule_04",
    /// A released task goes to the end of its queue.
    ReleaseLosesItsPlace => "rule_04",
    /// A released task is gone.
    LosesReleased => "rule_04",
    /// Why an attempt went wrong is not kept.
    LosesTheReason => "rule_04",
    /// A lease lasts half as long as it says.
    ShortensLeases => "rule_02",
    /// An extension lasts half as long as asked for.
    ExtendsByHalf => "rule_02",
    /// A claim that names its lease's length gets the queue's.
    IgnoresAskedLease => "rule_02",
    /// A task that is to wait runs at once.
    IgnoresDelays => "rule_10",
    /// A full queue takes more.
    IgnoresCapacity => "rule_08",
    /// A full queue takes one more.
    CapacityIsOneMore => "rule_08",
    /// A put while its key runs is taken, whatever the queue says.
    TakesActiveForPending => "rule_06",
    /// An event that arrives while its key runs is dropped.
    TakesPendingForActive => "rule_06",
    /// A duplicate never changes what stands.
    SkipsInsteadOfReplacing => "rule_06",
    /// Keys that differ in capitals are one.
    FoldsKeys => "rule_06",
    /// Callers' ids are not kept at all.
    NeverRemembersIds => "rule_07",
    /// A long payload loses its end.
    CutsLongPayloads => "rule_07",
    /// Headers are not kept.
    DropsHeaders => "rule_07",
    /// Of several follow-ups the first is put, and all are answered.
    LosesTheSecondFollowUp => "rule_07",
    /// Follow-ups are put, and then the settlement is tried.
    PutsFollowUpsFirst => "rule_03",
    /// A running task is deleted by its cancel, and its worker is told nothing.
    CancelsRunningAtOnce => "rule_11",
    /// What was resolved by hand counts as thrown away.
    ResolvesByDiscarding => "verb_operate",
    /// An operator's change of a queue is answered and forgotten.
    ForgetsOverrides => "verb_",
    /// A paused schedule goes on.
    FiresWhilePaused => "verb_",
    /// A role that was given up stays taken.
    KeepsRolesAfterResigning => "verb_",
    /// How old a document is, whoever changes it knows best.
    TakesTheAskersWordForAges => "verb_save_document",
    /// Of a change that rests on another document, that one is not looked at.
    LooksAtNothingBeside => "verb_save_document",
    /// Documents have no time to be kept for.
    KeepsDocumentsForGood => "verb_",
    /// A settlement of a task that is gone is recorded.
    RecordsTheGone => "rule_03",
    /// A lease that somebody else has is extended.
    ExtendsTheLost => "rule_03",
    /// `claims` is the attempt, so it falls with a release.
    FencingNumberFalls => "rule_04",
    /// The first attempt is number 0.
    AttemptsFromNothing => "rule_04",
    /// A claim's tasks come last first.
    ReversesBatches => "rule_05",
    /// The task in front is given back and the next ones are given out.
    PassesTheFrontBy => "rule_05",
    /// The answers of a put are not in the order of its tasks.
    AnswersOutOfOrder => "rule_07",
    /// Another payload under an id counts as its repeat.
    AcceptsOtherPayloadUnderId => "rule_07",
    /// A delta of done tasks is folded twice.
    CountsDoneTwice => "rule_09",
    /// Duplicates are not counted.
    ForgetsToCountDuplicates => "rule_07",
    /// Who waits for work is not woken by a put.
    LosesWakeUps => "verb_wait",
    /// Two claims at once are given the same task.
    GivesOutTwice => "rule_02",
    /// Slots are counted from one.
    SlotsFromOne => "verb_claim",
    /// A settlement is answered first and recorded with the next call.
    SettlesBeforeCommit => "rule_01",
    /// Expired leases are looked for, and a moment later taken back whoever has them.
    ReclaimsUnguarded => "",
    /// Every fortieth put is answered and dropped.
    LosesEveryFortieth => "",
    /// A put of a key that was just put is a duplicate, without a look.
    AnswersFromACache => "",
    /// A queue is stopped for the process that stopped it.
    PausesOneProcess => "verb_",
}
