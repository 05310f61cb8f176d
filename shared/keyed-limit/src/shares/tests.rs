//! Tests of the rule by which names share a pool, also with names that take all they can get.

use super::*;
use futures::FutureExt;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::pin::Pin;

const MAX: usize = 32;

/// A wait that was polled once, with its name.
type Wait = (usize, Pin<Box<dyn Future<Output = Option<Share<usize>>>>>);

/// A pool, with everybody who waits or holds a permit.
struct Crowd {
    shares: Shares<usize>,
    waiting: Vec<Wait>,
    held: Vec<(usize, Share<usize>)>,
}

impl Crowd {
    fn new(of_name_max: usize) -> Self {
        Self {
            shares: Shares::new(MAX, of_name_max),
            waiting: Vec::new(),
            held: Vec::new(),
        }
    }

    fn ask(&mut self, name: usize) {
        let shares = self.shares.clone();
        let wait = async move { shares.take(name).await };
        self.waiting.push((name, Box::pin(wait)));
        self.receive();
    }

    /// Takes what was given to those who wait. Returns their names.
    fn receive(&mut self) -> Vec<usize> {
        let mut given = Vec::new();
        for (name, mut wait) in std::mem::take(&mut self.waiting) {
            match wait.as_mut().now_or_never() {
                Some(share) => {
                    self.held.push((name, share.expect("a permit")));
                    given.push(name);
                }
                None => self.waiting.push((name, wait)),
            }
        }
        given
    }

    fn by_name(&self) -> BTreeMap<usize, usize> {
        let mut by_name = BTreeMap::new();
        for (name, _) in &self.held {
            *by_name.entry(*name).or_default() += 1;
        }
        by_name
    }

    fn free(&self) -> usize {
        MAX - self.held.len()
    }

    /// The first waiting name that holds nothing.
    fn newcomer(&self) -> Option<usize> {
        let held = self.by_name();
        let mut names = self.waiting.iter().map(|(name, _)| *name);
        names.find(|name| !held.contains_key(name))
    }
}

/// A step of a crowd: somebody asks, a permit is given back, or a wait ends.
#[derive(Debug, Clone)]
enum Step {
    Ask(usize),
    GiveBack(usize),
    Leave(usize),
}

fn steps(names: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..names).prop_map(Step::Ask),
        2 => any::<usize>().prop_map(Step::GiveBack),
        1 => any::<usize>().prop_map(Step::Leave),
    ];
    prop::collection::vec(step, 0..300)
}

/// Does the steps, and asserts what holds after each.
fn walk(crowd: &mut Crowd, steps: Vec<Step>, holds: impl Fn(&Crowd)) {
    for step in steps {
        match step {
            Step::Ask(name) => crowd.ask(name),
            Step::GiveBack(at) if !crowd.held.is_empty() => {
                let at = at % crowd.held.len();
                drop(crowd.held.swap_remove(at));
                let newcomer = crowd.newcomer();
                let given = crowd.receive();
                assert!(
                    newcomer.is_none_or(|name| given.contains(&name)),
                    "{newcomer:?} {given:?}"
                );
            }
            Step::Leave(at) if !crowd.waiting.is_empty() => {
                let at = at % crowd.waiting.len();
                drop(crowd.waiting.remove(at));
                crowd.receive();
            }
            Step::GiveBack(_) | Step::Leave(_) => {}
        }
        assert!(crowd.newcomer().is_none() || crowd.free() == 0);
        holds(crowd);
    }
    crowd.waiting.clear();
    crowd.held.clear();
    assert_eq!(crowd.shares.names(), 0, "nobody is remembered");
    assert_eq!(crowd.shares.0.lock().free, MAX);
}

proptest! {
    /// Whatever any number of names do: who holds none waits for the next permit that is given back at most, behind
    /// others who hold none.
    #[test]
    fn a_newcomer_waits_behind_newcomers_only(steps in steps(60), most in 1..=MAX) {
        walk(&mut Crowd::new(most), steps, |crowd| {
            assert!(crowd.by_name().values().all(|held| *held <= most));
        });
    }

    /// Five names never hold all, so that the next one does not wait at all.
    #[test]
    fn five_names_never_hold_all(steps in steps(5)) {
        walk(&mut Crowd::new(MAX), steps, |crowd| assert!(crowd.free() > 0));
    }
}

#[test]
fn greedy_names_leave_half_of_what_they_find() {
    let mut crowd = Crowd::new(MAX);
    for name in 0..10 {
        for _ in 0..MAX {
            crowd.ask(name);
        }
    }
    let held: Vec<usize> = crowd.by_name().into_values().collect();
    assert_eq!(held, [16, 8, 4, 2, 1, 1]);
    // One name gets no more than its bound.
    let mut crowd = Crowd::new(8);
    for name in [0, 1] {
        for _ in 0..MAX {
            crowd.ask(name);
        }
    }
    assert_eq!(crowd.by_name().into_values().collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn a_single_permit_goes_round() {
    let shares = Shares::<&str>::new(1, 1);
    let first = shares.take("a").now_or_never().flatten();
    assert!(first.is_some());
    let mut second = Box::pin(shares.take("b"));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert!(second.now_or_never().flatten().is_some());
    assert!(!shares.is_in_use());
}
