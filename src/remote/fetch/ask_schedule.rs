//! Which address of a list is asked next: hosts take turns, and share what is learned about them.
//!
//! Runs in the fetcher. Never in here: requests.
//!
//! | a host | its addresses |
//! |---|---|
//! | answers | many at a time |
//! | asks for fewer requests | wait as long as it says, and come then one by one. None is lost |
//! | gives no answer to any | a few at a time, of different folders; after the patience of the pass all get this verdict |
//! | gives no answer to one folder | the other folders go on; after the patience of the pass the folder gets this verdict |
//! | answers with errors of its own | each is asked again, up to the patience of the pass |
//!
//! What has no answer in the first pass is asked again after all others, in the second one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use twox_hash::XxHash3_64;

/// Requests at a time, in all and for a host: at first, and at most.
const REQUESTS: u32 = 128;
const FIRST_OF_HOST: u32 = 8;
const MOST_OF_HOST: u32 = 64;

/// Failures of a host or a folder without an answer, before all of its addresses count as failed.
const SILENT: u32 = 3;
/// Requests at a time to a host that gives no answer, and its folders that are tried, unless it has
/// fewer.
const PROBES: usize = 4;
/// Errors of a host one after the other. After the patience of the pass, its other addresses are then
/// asked once each.
const FAILING: u32 = 16;
/// Answers after which a slow host gets several requests at a time again.
const SLOW: u32 = 8;
/// Requests for one address that were all answered by a wish for fewer requests: then others of the
/// host go first, and later it counts as failed. Each waits as long as the host says.
const SLOWED: u32 = 8;
const MOST_SLOWED: u32 = 200;

/// Wait of a host after a failure: the first, doubled each time, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskEnd {
    /// With an answer.
    Answered,
    /// The host gave none.
    Silent(String),
    /// The host answered with an error of its own, which may pass.
    Failed(String),
    /// The host asks for fewer requests. The next one waits.
    Slowed(Duration),
    /// The host has answered nothing else for too long.
    TooSlow(String),
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AskStep {
    /// Ask this address, of this host.
    Ask { number: u32, host: u32 },
    /// Wait for a request to end, or until this time.
    Wait(Option<Instant>),
    /// All have an answer or a reason.
    Done,
}

/// An address without an answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LostAddress {
    pub(super) number: u32,
    pub(super) why: String,
}

#[derive(Debug, Default)]
struct HostState {
    waiting: VecDeque<u32>,
    /// Addresses that have no answer in the first pass.
    parked: Vec<u32>,
    running: u32,
    /// Most requests at a time.
    most: u32,
    /// Not before this time.
    pause: Option<Instant>,
    wait: Duration,
    /// When the first request was sent that got no answer, since the last answer.
    silent_since: Option<Instant>,
    silent: u32,
    /// Folders whose addresses got no answer since the last answer, at most [`PROBES`].
    silent_folders: Vec<u32>,
    /// Errors since the last answer, and when the first such request was sent.
    failing: u32,
    failing_since: Option<Instant>,
    /// It asked for fewer requests: answers until that is over.
    slow: u32,
    is_ready: bool,
}

/// An address that has failed in this pass.
#[derive(Debug)]
struct FailedAddress {
    since: Instant,
    why: Arc<str>,
}

/// A folder of a host that gives no answer.
#[derive(Debug)]
struct SilentFolder {
    since: Instant,
    times: u32,
}

/// The addresses that have no answer yet, by host.
#[derive(Debug)]
pub(super) struct AskSchedule {
    hosts: Vec<HostState>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    failed: HashMap<u32, FailedAddress>,
    /// The folder of each address, as a hash. Those with the same one share a verdict.
    folders: Vec<u32>,
    /// By host and folder.
    silent: HashMap<(u32, u32), SilentFolder>,
    /// How often the host asked for fewer requests in place of an answer.
    slowed: HashMap<u32, u32>,
    running: u32,
    /// Patience of the two passes.
    patience: [Duration; 2],
    pass: usize,
    lost: Vec<LostAddress>,
}

impl HostState {
    /// The next address. Of a host that gives no answer, one in a folder that was not tried, from
    /// anywhere in the line: the first ones may be the only ones without an answer.
    fn take(&mut self, folders: &[u32]) -> Option<u32> {
        if self.silent_since.is_none() || self.waiting.is_empty() {
            return self.waiting.pop_front();
        }
        let all = self.waiting.len();
        // By the golden ratio, which spreads any number of probes.
        let first = (f64::from(self.silent) * 0.618_033_988_749).fract() * all as f64;
        let first = (first as usize).min(all - 1);
        let mut places = (first..all).chain(0..first);
        let other = places.find(|place| self.is_untried(self.waiting[*place], folders));
        self.waiting.remove(other.unwrap_or(first))
    }

    fn is_untried(&self, number: u32, folders: &[u32]) -> bool {
        !self.silent_folders.contains(&folders[number as usize])
    }

    /// Whether as many folders as necessary gave no answer.
    fn has_tried_its_folders(&self, folders: &[u32]) -> bool {
        let mut waiting = self.waiting.iter();
        self.silent_folders.len() >= PROBES
            || !waiting.any(|number| self.is_untried(*number, folders))
    }

    /// Records that it answers something.
    fn hear(&mut self) {
        self.silent_since = None;
        self.silent = 0;
        self.silent_folders.clear();
    }
}

impl AskSchedule {
    /// `wanted`: the addresses in the order of their numbers, with the texts that name host and
    /// folder of each.
    pub(super) fn new<'a>(
        wanted: impl Iterator<Item = (u32, &'a str, &'a str)>,
        patience: [Duration; 2],
    ) -> Self {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut hosts: Vec<HostState> = Vec::new();
        let mut folders = Vec::new();
        for (number, name, folder) in wanted {
            folders.resize(number as usize, 0);
            folders.push(XxHash3_64::oneshot(folder.as_bytes()) as u32);
            // Most names need no copy.
            let host = match numbers.get(name) {
                Some(host) => *host,
                None => {
                    let lower = name.to_ascii_lowercase();
                    let next = hosts.len() as u32;
                    let host = *numbers.entry(lower).or_insert(next);
                    if host == next {
                        hosts.push(HostState {
                            most: FIRST_OF_HOST,
                            wait: FIRST_WAIT,
                            ..HostState::default()
                        });
                    }
                    host
                }
            };
            hosts[host as usize].waiting.push_back(number);
        }
        let mut schedule = Self {
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            failed: HashMap::new(),
            folders,
            silent: HashMap::new(),
            slowed: HashMap::new(),
            running: 0,
            patience,
            pass: 0,
            lost: Vec::new(),
            hosts,
        };
        (0..schedule.hosts.len()).for_each(|host| schedule.check(host as u32));
        schedule
    }

    /// Puts a host in line if a request to it may start.
    fn check(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        let most = match (host.slow, host.silent_since) {
            (0, None) => host.most,
            (0, Some(_)) => host.most.min(PROBES as u32),
            _ => 1,
        };
        if host.is_ready || host.waiting.is_empty() || host.running >= most {
            return;
        }
        match host.pause {
            Some(until) => self.timers.push(Reverse((until, number))),
            None => {
                host.is_ready = true;
                self.ready.push_back(number);
            }
        }
    }

    /// The next step. A request that starts must be ended by [`AskSchedule::end`].
    pub(super) fn next(&mut self, now: Instant) -> AskStep {
        loop {
            while let Some(Reverse((at, number))) = self.timers.peek().copied()
                && at <= now
            {
                self.timers.pop();
                let host = &mut self.hosts[number as usize];
                if host.pause.is_some_and(|until| until <= now) {
                    host.pause = None;
                }
                // Only the timer of its pause puts it in line.
                if host.pause.is_none() {
                    self.check(number);
                }
            }
            if self.running >= REQUESTS {
                return AskStep::Wait(None);
            }
            let Some(number) = self.ready.pop_front() else {
                break;
            };
            let host = &mut self.hosts[number as usize];
            host.is_ready = false;
            if host.pause.is_some() {
                self.check(number);
                continue;
            }
            let Some(address) = host.take(&self.folders) else {
                continue;
            };
            host.running += 1;
            self.running += 1;
            self.check(number);
            return AskStep::Ask {
                number: address,
                host: number,
            };
        }
        if self.running > 0 || !self.timers.is_empty() {
            return AskStep::Wait(self.timers.peek().map(|Reverse((at, _))| *at));
        }
        if self.pass == 0 && self.hosts.iter().any(|host| !host.parked.is_empty()) {
            self.begin_second_pass();
            return self.next(now);
        }
        AskStep::Done
    }

    fn begin_second_pass(&mut self) {
        self.pass = 1;
        for number in 0..self.hosts.len() {
            let host = &mut self.hosts[number];
            // Those that were not asked come first: they may have an answer.
            let failed = |number: &u32| self.failed.contains_key(number);
            host.parked.sort_by_key(failed);
            host.waiting = std::mem::take(&mut host.parked).into();
            (host.silent_since, host.failing_since) = (None, None);
            (host.silent, host.failing) = (0, 0);
            host.silent_folders.clear();
            (host.pause, host.wait) = (None, FIRST_WAIT);
            // A host without an answer gets few at a time.
            host.most = host.most.min(FIRST_OF_HOST);
        }
        self.failed.clear();
        self.silent.clear();
        self.slowed.clear();
        (0..self.hosts.len()).for_each(|host| self.check(host as u32));
    }

    /// Records how the request for an address ended. `sent`: when it began.
    pub(super) fn end(
        &mut self,
        number: u32,
        host: u32,
        end: AskEnd,
        (sent, now): (Instant, Instant),
    ) {
        self.running -= 1;
        let patience = self.patience[self.pass];
        let state = &mut self.hosts[host as usize];
        state.running -= 1;
        match end {
            AskEnd::Answered => {
                (state.silent_since, state.failing_since) = (None, None);
                (state.silent, state.failing) = (0, 0);
                state.silent_folders.clear();
                (state.pause, state.wait) = (None, FIRST_WAIT);
                state.slow = state.slow.saturating_sub(1);
                state.most = (state.most + 1).min(MOST_OF_HOST);
                self.failed.remove(&number);
                self.slowed.remove(&number);
                if !self.silent.is_empty() {
                    self.silent.remove(&(host, self.folders[number as usize]));
                }
            }
            AskEnd::Slowed(wait) => {
                state.hear();
                state.slow = SLOW;
                state.most = (state.most / 2).max(1);
                state.pause = state.pause.max(Some(now + wait));
                let times = self.slowed.entry(number).or_default();
                *times += 1;
                match *times {
                    // The host answers others.
                    MOST_SLOWED.. => {
                        let times = *times;
                        self.slowed.remove(&number);
                        let why = format!(
                            "the server has asked for fewer requests in place of an answer, {times} \
                             times: try again later"
                        );
                        self.lose(number, host, why);
                    }
                    SLOWED.. => state.waiting.push_back(number),
                    _ => state.waiting.push_front(number),
                }
            }
            AskEnd::TooSlow(why) => self.give_up(host, Some((number, &why)), &why),
            AskEnd::Silent(why) => {
                let folder = self.folders[number as usize];
                let since = *state.silent_since.get_or_insert(sent);
                state.silent += 1;
                if state.silent_folders.len() < PROBES && !state.silent_folders.contains(&folder) {
                    state.silent_folders.push(folder);
                }
                let known = self.silent.entry((host, folder));
                let known = known.or_insert(SilentFolder {
                    since: sent,
                    times: 0,
                });
                known.times += 1;
                let is_folder = known.times >= SILENT && now - known.since >= patience;
                let is_dead = state.silent >= SILENT
                    && now - since >= patience
                    && state.has_tried_its_folders(&self.folders);
                self.failed(number, host, &why, (sent, now), patience);
                if is_folder && !is_dead {
                    let why = format!(
                        "was not asked, because its host gave no answer to others of its folder for \
                         {} s: {why}",
                        patience.as_secs_f64()
                    );
                    self.give_up_folder(host, folder, &why);
                }
                if is_dead {
                    let why = format!(
                        "was not asked, because its host gave no answer for {} s: {why}",
                        patience.as_secs_f64()
                    );
                    self.give_up(host, None, &why);
                }
            }
            AskEnd::Failed(why) => {
                state.hear();
                state.failing += 1;
                let since = *state.failing_since.get_or_insert(sent);
                let patience = match state.failing >= FAILING && now - since >= patience {
                    true => Duration::ZERO,
                    false => patience,
                };
                self.failed(number, host, &why, (sent, now), patience);
            }
        }
        self.check(host);
    }

    /// Asks a failed address again, or gives it up.
    fn failed(
        &mut self,
        number: u32,
        host: u32,
        why: &str,
        (sent, now): (Instant, Instant),
        patience: Duration,
    ) {
        let entry = self.failed.entry(number).or_insert_with(|| FailedAddress {
            since: sent,
            why: why.into(),
        });
        if &*entry.why != why {
            entry.why = why.into();
        }
        let state = &mut self.hosts[host as usize];
        if now - entry.since >= patience {
            let why = format!(
                "no data arrived for {} s: {why}. Check the network and the address",
                self.patience[self.pass].as_secs_f64()
            );
            self.lose(number, host, why);
            return;
        }
        // Requests that run at the same time fail for the same reason.
        if state.pause.is_none_or(|until| until <= now) {
            state.pause = Some(now + state.wait);
            state.wait = (state.wait * 2).min(LONGEST_WAIT);
        }
        // Another address may have an answer.
        state.waiting.push_back(number);
    }

    /// Gives up all addresses of a host that wait. Each has its own reason, or else this one.
    fn give_up(&mut self, host: u32, own: Option<(u32, &str)>, why: &str) {
        let waiting = std::mem::take(&mut self.hosts[host as usize].waiting);
        if let Some((number, why)) = own {
            self.lose(number, host, why.to_owned());
        }
        self.give_up_these(host, waiting, why);
    }

    /// Like [`Self::give_up`], those of one folder.
    fn give_up_folder(&mut self, host: u32, folder: u32, why: &str) {
        let folders = &self.folders;
        let waiting = &mut self.hosts[host as usize].waiting;
        let (lost, rest): (VecDeque<u32>, VecDeque<u32>) = std::mem::take(waiting)
            .into_iter()
            .partition(|number| folders[*number as usize] == folder);
        *waiting = rest;
        self.give_up_these(host, lost, why);
    }

    fn give_up_these(&mut self, host: u32, waiting: VecDeque<u32>, why: &str) {
        for number in waiting {
            let why = match self.failed.get(&number) {
                Some(failed) => format!(
                    "no data arrived for {} s: {}. Check the network and the address",
                    self.patience[self.pass].as_secs_f64(),
                    failed.why
                ),
                None => why.to_owned(),
            };
            self.lose(number, host, why);
        }
    }

    fn lose(&mut self, number: u32, host: u32, why: String) {
        match self.pass {
            0 => self.hosts[host as usize].parked.push(number),
            _ => {
                self.failed.remove(&number);
                self.lost.push(LostAddress { number, why });
            }
        }
    }

    /// The addresses that were given up since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<LostAddress> {
        std::mem::take(&mut self.lost)
    }

    /// An address that got no answer yet, while others wait.
    pub(super) fn a_silent_one(&self) -> Option<LostAddress> {
        let (number, failed) = self.failed.iter().min_by_key(|(number, _)| **number)?;
        Some(LostAddress {
            number: *number,
            why: failed.why.to_string(),
        })
    }

    /// Hosts that ask for fewer requests, and their addresses that wait.
    pub(super) fn slow(&self) -> (usize, usize) {
        let slow = self.hosts.iter().filter(|host| host.slow > 0);
        slow.fold((0, 0), |(hosts, all), host| {
            (hosts + 1, all + host.waiting.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

    /// Runs a schedule against hosts that `end` describes, in a time of its own. Returns the lost
    /// addresses, the number of requests, and the time.
    fn run(
        hosts: &[&str],
        each: u32,
        end: impl FnMut(u32, u32, Duration) -> (AskEnd, Duration),
    ) -> (Vec<LostAddress>, u64, Duration) {
        run_folders(hosts, each, |_| 0, end)
    }

    /// The same with addresses in folders.
    fn run_folders(
        hosts: &[&str],
        each: u32,
        folder: impl Fn(u32) -> u32,
        mut end: impl FnMut(u32, u32, Duration) -> (AskEnd, Duration),
    ) -> (Vec<LostAddress>, u64, Duration) {
        let names = hosts.iter().flat_map(|host| (0..each).map(move |_| *host));
        let folders: Vec<String> = (0..each * hosts.len() as u32)
            .map(|number| folder(number).to_string())
            .collect();
        let wanted = (0..).zip(names).zip(&folders);
        let wanted = wanted.map(|((number, name), folder)| (number, name, folder.as_str()));
        let mut schedule = AskSchedule::new(wanted, PATIENCE);
        let begin = Instant::now();
        let (mut now, mut asked, mut lost) = (begin, 0, Vec::new());
        let mut running: Vec<(Instant, u32, u32, Instant, AskEnd)> = Vec::new();
        for _ in 0..10_000_000 {
            match schedule.next(now) {
                AskStep::Ask { number, host } => {
                    asked += 1;
                    let (end, takes) = end(host, number, now - begin);
                    running.push((now + takes, number, host, now, end));
                }
                AskStep::Done => {
                    assert!(running.is_empty());
                    lost.sort_by_key(|lost: &LostAddress| lost.number);
                    return (lost, asked, now - begin);
                }
                AskStep::Wait(until) => {
                    let first = running.iter().enumerate().min_by_key(|(_, one)| one.0);
                    let first = first.map(|(at, one)| (at, one.0));
                    match (first, until) {
                        (Some((at, ends)), until) if until.is_none_or(|until| ends <= until) => {
                            let (_, number, host, sent, end) = running.swap_remove(at);
                            now = now.max(ends);
                            schedule.end(number, host, end, (sent, now));
                            lost.extend(schedule.take_lost());
                        }
                        (_, Some(until)) => now = now.max(until),
                        (None, None) => panic!("waits for nothing"),
                        (Some(_), None) => unreachable!(),
                    }
                }
            }
        }
        panic!("does not end");
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn ten_thousand_addresses_of_a_dead_host_cost_its_patience_once() {
        for takes in [MS, MS * 5000] {
            let (lost, asked, time) = run(&["dead", "alive"], 10_000, |host, _, _| match host {
                0 => (AskEnd::Silent("no route".to_owned()), takes),
                _ => (AskEnd::Answered, MS),
            });
            assert_eq!(lost.len(), 10_000);
            assert!(lost.iter().all(|lost| lost.number < 10_000));
            assert!(lost.iter().all(|lost| lost.why.contains("no route")));
            assert!(lost[0].why.contains("no answer for 15 s") || lost[0].why.contains("no data"));
            assert!(time >= PATIENCE[1] && time < MS * 32_000, "{time:?}");
            assert!(asked < 10_000 + 100, "{asked}");
        }
    }

    #[test]
    fn a_bad_folder_of_a_host_is_lost_alone() {
        // It comes first, and has most of the addresses. One round is refused, the other hangs.
        for takes in [MS, MS * 5000] {
            let folder = |number: u32| u32::from(number >= 900);
            let (lost, _, time) =
                run_folders(&["h"], 1000, folder, |_, number, _| match number < 900 {
                    true => (AskEnd::Silent("timeout".to_owned()), takes),
                    false => (AskEnd::Answered, MS * 20),
                });
            let numbers: Vec<u32> = lost.iter().map(|lost| lost.number).collect();
            assert_eq!(numbers, (0..900).collect::<Vec<_>>());
            assert!(time < MS * 60_000, "{time:?}");
        }
        // The last of many folders is the only good one, and two are bad in the middle.
        let folder = |number: u32| number / 100;
        let (lost, ..) = run_folders(&["h"], 1000, folder, |_, number, _| match number / 100 {
            3 | 4 => (AskEnd::Silent("timeout".to_owned()), MS * 5000),
            _ => (AskEnd::Answered, MS * 20),
        });
        assert_eq!(lost.len(), 200);
        assert!(lost.iter().all(|lost| (300..500).contains(&lost.number)));
    }

    #[test]
    fn a_host_without_an_answer_is_asked_in_several_folders() {
        let mut tried = std::collections::HashSet::new();
        let folder = |number: u32| number / 100;
        let (lost, asked, _) = run_folders(&["dead"], 10_000, folder, |_, number, _| {
            tried.insert(number / 100);
            (AskEnd::Silent("timeout".to_owned()), MS * 5000)
        });
        assert_eq!(lost.len(), 10_000);
        assert!(asked < 100 && tried.len() >= PROBES, "{asked} {tried:?}");
    }

    #[test]
    fn an_address_that_is_always_slowed_down_is_lost_alone() {
        let (lost, asked, _) = run(&["h"], 100, |_, number, _| match number {
            5 => (AskEnd::Slowed(MS * 100), MS),
            _ => (AskEnd::Answered, MS),
        });
        let numbers: Vec<u32> = lost.iter().map(|lost| lost.number).collect();
        assert_eq!(numbers, [5]);
        assert!(lost[0].why.contains("fewer requests"), "{}", lost[0].why);
        assert!(asked <= 99 + 2 * u64::from(MOST_SLOWED), "{asked}");
    }

    #[test]
    fn a_host_that_slows_down_loses_nothing() {
        // It takes 5 requests a second, and says nothing else for 40 s.
        let (mut last, mut good) = (Duration::ZERO, 0);
        let (lost, asked, time) = run(&["slow"], 300, |_, _, now| {
            if now < MS * 40_000 || (now - last < MS * 200 && last > Duration::ZERO) {
                return (AskEnd::Slowed(MS * 1000), MS);
            }
            (last, good) = (now, good + 1);
            (AskEnd::Answered, MS)
        });
        assert_eq!((lost, good), (Vec::new(), 300));
        assert!(time >= MS * 40_000 && asked < 3 * 300, "{time:?} {asked}");
    }

    #[test]
    fn an_address_that_fails_alone_is_lost_alone() {
        let (lost, _, time) = run(&["a"], 500, |_, number, _| match number % 100 {
            7 => (AskEnd::Failed("status 500".to_owned()), MS),
            8 => (AskEnd::Silent("timeout".to_owned()), MS * 20_000),
            _ => (AskEnd::Answered, MS * 20),
        });
        let numbers: Vec<u32> = lost.iter().map(|lost| lost.number).collect();
        assert_eq!(numbers, [7, 8, 107, 108, 207, 208, 307, 308, 407, 408]);
        assert!(lost[0].why.contains("status 500") && lost[1].why.contains("timeout"));
        assert!(time < MS * 200_000, "{time:?}");
    }

    #[test]
    fn a_host_that_fails_all_is_asked_once_for_each() {
        let (lost, asked, _) = run(&["a"], 2000, |_, _, _| {
            (AskEnd::Failed("500".to_owned()), MS)
        });
        assert_eq!(lost.len(), 2000);
        assert!(asked < 2 * 2000 + 1000, "{asked}");
    }

    #[test]
    fn a_host_that_is_back_in_the_second_pass_loses_nothing() {
        let (lost, ..) = run(&["a", "b"], 100, |_, _, now| match now < MS * 6000 {
            true => (AskEnd::Silent("down".to_owned()), MS),
            false => (AskEnd::Answered, MS),
        });
        assert_eq!(lost, []);
        let (lost, ..) = run(&["A://h", "a://H"], 3, |host, _, _| {
            assert_eq!(host, 0);
            (AskEnd::Answered, MS)
        });
        assert_eq!(lost, []);
        assert_eq!(run(&[], 0, |_, _, _| (AskEnd::Answered, MS)).1, 0);
    }

    #[test]
    fn one_that_is_too_slow_for_too_long_is_given_up_with_all_of_its_addresses() {
        let (lost, asked, _) = run(&["a"], 50, |_, _, _| {
            (AskEnd::TooSlow("429".to_owned()), MS)
        });
        assert_eq!(lost.len(), 50);
        assert!(asked <= 20, "{asked}");
        assert!(lost.iter().all(|lost| lost.why == "429"));
    }
}
