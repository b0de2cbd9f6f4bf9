//! Wrong tokens, counted by the address they come from.
//!
//! A right one is always taken: otherwise whoever shares an address with somebody who
//! guesses would be shut out. To guess 256 bits is hopeless at any rate; what is limited
//! is the noise in logs, and what a program with a wrong token costs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many wrong ones at once are answered as such.
const BURST: u32 = 10;
/// After that, one in this time.
const EVERY: Duration = Duration::from_secs(1);
/// Most addresses that are counted apart; all others are counted together.
const ADDRESSES: usize = 1_024;
/// An address is told of in the log no more often than this.
const TOLD: Duration = Duration::from_secs(60);

/// The wrong tokens of late.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    by_address: HashMap<IpAddr, Wrong>,
    others: Wrong,
}

/// The wrong tokens of one address.
#[derive(Debug, Clone, Copy, Default)]
struct Wrong {
    /// When all of them are forgotten: each moves it on by [`EVERY`].
    until: Option<Instant>,
    told: Option<Instant>,
}

/// What to say to a wrong token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// That there were too many, and when to come again.
    pub(super) wait: Option<Duration>,
    /// It is worth a line in the log.
    pub(super) tell: bool,
}

impl Throttle {
    /// One more from this address.
    pub(super) fn wrong(&self, address: IpAddr, now: Instant) -> Verdict {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = whose(address);
        if !counted.by_address.contains_key(&address) && counted.by_address.len() >= ADDRESSES {
            let late = |wrong: &Wrong| {
                wrong.until.is_some_and(|until| until > now)
                    || wrong.told.is_some_and(|told| told + TOLD > now)
            };
            counted.by_address.retain(|_, wrong| late(wrong));
        }
        let full = counted.by_address.len() >= ADDRESSES;
        let wrong = match counted.by_address.contains_key(&address) || !full {
            true => counted.by_address.entry(address).or_default(),
            false => &mut counted.others,
        };
        wrong.count(now)
    }
}

impl Wrong {
    fn count(&mut self, now: Instant) -> Verdict {
        let until = self.until.filter(|until| *until > now).unwrap_or(now);
        let ahead = until.duration_since(now);
        let allowed = EVERY * (BURST - 1);
        let wait = ahead.checked_sub(allowed).filter(|wait| !wait.is_zero());
        if wait.is_none() {
            self.until = Some(until + EVERY);
        }
        let tell = self.told.is_none_or(|told| told + TOLD <= now);
        if tell {
            self.told = Some(now);
        }
        Verdict { wait, tell }
    }
}

/// Whose address it is: of IPv6 one household has 2⁶⁴.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let network = six.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn too_many_wrong_ones_wait() {
        let (throttle, begin) = (Throttle::default(), Instant::now());
        let late = |after: u64| begin + Duration::from_millis(after);
        for n in 0..BURST {
            let verdict = throttle.wrong(address(1), begin);
            assert_eq!((verdict.wait, verdict.tell), (None, n == 0));
        }
        assert_eq!(throttle.wrong(address(1), begin).wait, Some(EVERY));
        assert_eq!(throttle.wrong(address(2), begin).wait, None, "others are not meant");
        assert_eq!(throttle.wrong(address(1), late(1_000)).wait, None, "one a second");
        assert!(throttle.wrong(address(1), late(1_000)).wait.is_some());
        assert_eq!(throttle.wrong(address(1), late(60_000)), Verdict { wait: None, tell: true });
    }

    #[test]
    fn a_network_of_ipv6_is_one() {
        let one: IpAddr = "2001:db8::1".parse().expect("an address");
        let other: IpAddr = "2001:db8::ffff:1".parse().expect("an address");
        let far: IpAddr = "2001:db8:0:1::1".parse().expect("an address");
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().expect("an address");
        assert_eq!(whose(one), whose(other));
        assert_ne!(whose(one), whose(far));
        assert_eq!(whose(mapped), "10.0.0.1".parse::<IpAddr>().expect("an address"));
    }

    #[test]
    fn memory_does_not_grow_with_addresses() {
        let (throttle, begin) = (Throttle::default(), Instant::now());
        for n in 0..100_000 {
            throttle.wrong(address(n), begin);
        }
        let counted = |throttle: &Throttle| {
            throttle.0.lock().unwrap_or_else(PoisonError::into_inner).by_address.len()
        };
        assert_eq!(counted(&throttle), ADDRESSES);
        assert!(throttle.wrong(address(200_000), begin).wait.is_some(), "counted together");
        // Those that have been quiet make room.
        throttle.wrong(address(200_001), begin + Duration::from_secs(3_600));
        assert_eq!(counted(&throttle), 1);
    }
}
