//! The nemesis: by its dice it does one harm after the other, and writes down
//! which.

use std::time::{Duration, Instant};

use gristmill_conformance::judge::{Dice, FaultKind, Journal, LEASE_MS, Phase, Role};

use crate::Result;
use crate::place::Place;
use crate::site::{Part, Site};

/// Does harm to a run.
#[derive(Debug)]
pub(crate) struct Nemesis<'a> {
    pub(crate) site: &'a mut Site,
    pub(crate) place: &'a mut Place,
    pub(crate) journal: &'a Journal,
    pub(crate) dice: Dice,
    pub(crate) faults: Vec<FaultKind>,
    /// What went wrong with the run itself: a client that died of its own.
    pub(crate) troubles: Vec<String>,
    /// When a full disk has room again.
    full_until: Option<Instant>,
}

impl<'a> Nemesis<'a> {
    pub(crate) fn new(
        site: &'a mut Site,
        place: &'a mut Place,
        journal: &'a Journal,
        dice: Dice,
        faults: Vec<FaultKind>,
    ) -> Self {
        Nemesis { site, place, journal, dice, faults, troubles: Vec::new(), full_until: None }
    }

    /// Goes on until then, or until it is told that it is over.
    pub(crate) fn rage(&mut self, end: Instant, mut over: impl FnMut() -> bool) -> Result<()> {
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(40 + self.dice.throw() % 160));
            self.replace_those_who_left()?;
            self.heal(false)?;
            if over() {
                break;
            }
            let Some(fault) = self.dice.pick(&self.faults.clone()) else { continue };
            self.strike(fault)?;
        }
        self.heal(true)
    }

    fn strike(&mut self, fault: FaultKind) -> Result<()> {
        match fault {
            FaultKind::Kill => self.kill(),
            FaultKind::Stop => self.stop(),
            FaultKind::Join => self.join(),
            FaultKind::Syscall => self.trace(),
            FaultKind::Clock => self.jump(),
            FaultKind::Power => self.cut_power(),
            FaultKind::DiskFull => self.fill(),
            // They cost a second or two each, so they come less often.
            _ if !self.dice.once_in(4) => Ok(()),
            FaultKind::ServerKill => {
                let at_once = self.dice.once_in(2);
                self.on_server(fault, |database| database.kill(at_once))
            }
            FaultKind::ServerFreeze => {
                let time = Duration::from_millis(200 + self.dice.throw() % 2_500);
                self.on_server(fault, |database| database.freeze(time))
            }
            FaultKind::Cut => self.on_server(fault, |database| database.cut()),
            FaultKind::Stall => self.on_server(fault, |database| {
                database.stall();
                Ok(())
            }),
            FaultKind::Promote => self.promote(),
            FaultKind::OpenTransaction => Ok(()),
        }
    }

    fn some_client(&mut self) -> Option<usize> {
        let going: Vec<usize> = (self.site.running.iter().enumerate())
            .filter(|(_, client)| client.stopped_until.is_none())
            .map(|(at, _)| at)
            .collect();
        self.dice.pick(&going)
    }

    fn kill(&mut self) -> Result<()> {
        let Some(at) = self.some_client() else { return Ok(()) };
        let (role, place, name) = self.site.kill(at);
        self.journal.fault(FaultKind::Kill, &name, Phase::Whole, 0);
        self.site.start(role, place, &[])
    }

    /// For longer than a lease lasts, or shorter.
    fn stop(&mut self) -> Result<()> {
        let Some(at) = self.some_client() else { return Ok(()) };
        let time = Duration::from_millis(LEASE_MS / 2 + self.dice.throw() % (LEASE_MS * 2));
        let name = self.site.stop(at, time)?;
        self.journal.fault(FaultKind::Stop, &name, Phase::Whole, 0);
        Ok(())
    }

    fn join(&mut self) -> Result<()> {
        let Some(at) = self.some_client() else { return Ok(()) };
        let name = self.site.send_away(at)?;
        self.journal.fault(FaultKind::Join, &name, Phase::Whole, 0);
        Ok(())
    }

    /// A client is replaced by one whose n-th call to the disk fails.
    fn trace(&mut self) -> Result<()> {
        let Some(at) = self.some_client() else { return Ok(()) };
        let calls = [
            "fsync,fdatasync:error=EIO",
            "pwrite64:error=EIO",
            "pwrite64:error=ENOSPC",
            "ftruncate:error=EIO",
            "write:error=ENOSPC",
        ];
        // Not its journal, which it appends to with `write`.
        let usable = calls.len() - 1;
        let call = calls.get(self.dice.below(usable)).copied().unwrap_or("fsync:error=EIO");
        let when = 1 + self.dice.below(60);
        if !matches!(self.site.running.get(at).map(|one| one.part), Some(Part::Rust(_))) {
            return Ok(());
        }
        let (role, place, name) = self.site.kill(at);
        self.journal.fault(FaultKind::Syscall, &format!("{name} {call} {when}"), Phase::Whole, 0);
        let traced = call.split(':').next().unwrap_or(call);
        let words = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={traced}"),
            "-e",
            &format!("inject={call}:when={when}"),
        ];
        self.site.start(role, place, &words.map(str::to_owned))
    }

    fn jump(&mut self) -> Result<()> {
        if !self.dice.once_in(4) {
            return Ok(());
        }
        let Some(file) = &self.place.clock else { return Ok(()) };
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let now: i64 = text.trim().parse().unwrap_or(0);
        // By over a second: less is no jump, but a clock that is set right.
        let far = i64::try_from(self.dice.throw() % 5_000).unwrap_or(0) + 1_500;
        // Back to the right time every other time: it must not run away.
        let to = match (now, self.dice.below(3)) {
            (0, 0) => -far * 1_000,
            (0, _) => far * 1_000,
            _ => 0,
        };
        // In one step, or a reader would find half a number.
        let next = file.with_extension("next");
        std::fs::write(&next, to.to_string()).map_err(|error| error.to_string())?;
        self.journal.fault(FaultKind::Clock, "all", Phase::Begin, (to - now) / 1_000);
        std::fs::rename(&next, file).map_err(|error| error.to_string())?;
        self.journal.fault(FaultKind::Clock, "all", Phase::End, (to - now) / 1_000);
        Ok(())
    }

    /// All clients and the disk at once.
    fn cut_power(&mut self) -> Result<()> {
        if !self.dice.once_in(3) {
            return Ok(());
        }
        let Some(disk) = &self.place.disk else { return Ok(()) };
        self.site.halt()?;
        self.journal.fault(FaultKind::Power, "disk", Phase::Begin, 0);
        disk.cut()?;
        let gone = self.site.kill_all();
        disk.come_back()?;
        self.journal.fault(FaultKind::Power, "disk", Phase::End, 0);
        gone.into_iter().try_for_each(|(role, place)| self.site.start(role, place, &[]))
    }

    fn fill(&mut self) -> Result<()> {
        if self.full_until.is_some() || !self.dice.once_in(4) {
            return Ok(());
        }
        let Some(disk) = &self.place.disk else { return Ok(()) };
        self.journal.fault(FaultKind::DiskFull, "disk", Phase::Begin, 0);
        disk.fill()?;
        self.full_until =
            Some(Instant::now() + Duration::from_millis(300 + self.dice.throw() % 1_200));
        Ok(())
    }

    fn on_server(
        &mut self,
        fault: FaultKind,
        strike: impl FnOnce(&crate::server::Database) -> Result<()>,
    ) -> Result<()> {
        let Some(database) = &self.place.database else { return Ok(()) };
        self.journal.fault(fault, "server", Phase::Begin, 0);
        strike(database)?;
        self.journal.fault(fault, "server", Phase::End, 0);
        Ok(())
    }

    /// Once a run: there is one standby.
    fn promote(&mut self) -> Result<()> {
        let Some(database) = &mut self.place.database else { return Ok(()) };
        if !database.has_standby() {
            return Ok(());
        }
        self.journal.fault(FaultKind::Promote, "server", Phase::Begin, 0);
        database.promote()?;
        self.journal.fault(FaultKind::Promote, "server", Phase::End, 0);
        Ok(())
    }

    /// Ends what lasts and is over, or all of it.
    fn heal(&mut self, all: bool) -> Result<()> {
        self.site.go_on(all);
        if self.full_until.is_some_and(|until| all || until <= Instant::now()) {
            self.full_until = None;
            if let Some(disk) = &self.place.disk {
                disk.empty()?;
            }
            self.journal.fault(FaultKind::DiskFull, "disk", Phase::End, 0);
        }
        Ok(())
    }

    fn replace_those_who_left(&mut self) -> Result<()> {
        for (role, place, died) in self.site.ended() {
            self.troubles.extend(died);
            self.site.start(role, place, &[])?;
        }
        Ok(())
    }
}

/// Who takes part.
pub(crate) fn crew(producers: usize, workers: usize) -> Vec<(Part, usize)> {
    let many = |role, count: usize| (1..=count).map(move |place| (Part::Rust(role), place));
    many(Role::Producer, producers)
        .chain(many(Role::Worker, workers))
        .chain(many(Role::Operator, 1))
        .chain(many(Role::Scheduler, 2))
        .collect()
}
