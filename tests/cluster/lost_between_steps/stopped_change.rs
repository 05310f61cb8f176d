//! A change that a gate stops after one of its steps.

use crate::fixture::{Fixture, MASTERS};
use crate::lost_lookup::fixture::{Change, LookupFixture, LookupKind};
use crate::lost_master::acknowledged_change::Row;
use crate::lost_master::kind::{ChangeKind, Victim};
use harness::{Admin, Cli, Gate, GateSide};
use redis::Script;
use store::script::all::all;

/// When the stopped change continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlwaysAllowed {
    /// Between cut-off and kill: what the master does from then on is lost.
    Before,
    /// After the replica took over.
    After,
}

pub enum Subject<'a> {
    Money(Box<Row>),
    Outside(Change<'a>),
}

/// A change that a gate stops after one of its steps.
pub struct Midway<'a> {
    pub subject: Subject<'a>,
    pub goes_on: AlwaysAllowed,
    pub gate: Gate,
    /// Number of steps done when the change stops.
    done: usize,
    pub is_acknowledged: bool,
    /// Whether the reply said that the change was done before.
    pub is_repetition: bool,
    /// A reply that a change done once never gets.
    pub unexpected: Option<String>,
}

/// Number of steps done when the change stops, and when it continues.
type Pause = (usize, AlwaysAllowed);

const MOMENTS: [AlwaysAllowed; 2] = [AlwaysAllowed::Before, AlwaysAllowed::After];

/// The changes of money whose steps are on two masters.
const MONEY: [ChangeKind; 7] = [
    ChangeKind::Transfer,
    ChangeKind::Create,
    ChangeKind::Release,
    ChangeKind::ReleaseByPayee,
    ChangeKind::DisputeByPayee,
    ChangeKind::Refund,
    ChangeKind::Award,
];

/// The changes whose look-up is on another master than their account.
const OUTSIDE: [LookupKind; 7] = [
    LookupKind::Account,
    LookupKind::User,
    LookupKind::Invited,
    LookupKind::Removed,
    LookupKind::Pending,
    LookupKind::ApiKey,
    LookupKind::VirtualKey,
];

/// The confirmed steps of a change of money: script, and the party whose account has its keys.
const fn steps(kind: ChangeKind) -> &'static [(&'static str, Victim)] {
    use Victim::{Payee, Payer};
    match kind {
        ChangeKind::Transfer => &[("transfer_out", Payer), ("transit_arrive", Payee)],
        ChangeKind::Create => &[("escrow_create", Payer), ("escrow_list", Payee)],
        ChangeKind::Release | ChangeKind::Refund | ChangeKind::Award => {
            &[("escrow_resolve", Payer), ("transit_arrive", Payee)]
        }
        ChangeKind::ReleaseByPayee | ChangeKind::DisputeByPayee => &[
            ("intent_claim", Payee),
            ("escrow_resolve", Payer),
            ("transit_arrive", Payee),
        ],
        _ => &[],
    }
}

/// The hash by which a script is executed.
pub fn hash(name: &str) -> String {
    let script = all().into_iter().find(|script| script.name() == name);
    let script = script.unwrap_or_else(|| panic!("no script {name}"));
    Script::new(script.source()).get_hash().to_owned()
}

/// Returns a gate that stops a change after `done` of these steps: before the next one, or before the last one's reply.
fn gate(steps: &[(&str, String)], done: usize, most: usize) -> Gate {
    let (side, at) = match done < steps.len() {
        true => (GateSide::Request, done),
        false => (GateSide::Reply, steps.len() - 1),
    };
    let (script, mark) = &steps[at];
    let passing = steps[..at].iter().filter(|(other, _)| other == script).count();
    Gate::new(side, &[&hash(script), mark], passing, most)
}

/// Returns every pause of a change, with `first` to `steps` steps done.
fn pauses(first: usize, steps: usize) -> impl Iterator<Item = Pause> {
    (first..=steps).flat_map(|done| MOMENTS.map(|goes_on| (done, goes_on)))
}

/// All changes of money, each with the payer's and with the payee's master as the lost one.
pub fn money() -> Vec<(ChangeKind, Victim, Pause)> {
    let of_kind = |kind: ChangeKind| {
        let of_victim = move |victim| pauses(1, steps(kind).len()).map(move |pause| (kind, victim, pause));
        [Victim::Payer, Victim::Payee].into_iter().flat_map(of_victim)
    };
    MONEY.into_iter().flat_map(of_kind).collect()
}

/// All changes with a look-up, with the look-up or the account on the master at `node`.
pub async fn outside<'a>(fixtures: &'a [LookupFixture<'a>], node: usize) -> Vec<Midway<'a>> {
    let mut made = Vec::new();
    for kind in OUTSIDE {
        // The account is on the master after that of its look-up.
        for at in [node, (node + MASTERS - 1) % MASTERS] {
            for (done, goes_on) in pauses(usize::from(!kind.begins_unconfirmed()), kind.steps()) {
                let lookup_fixture = &fixtures[made.len() % fixtures.len()];
                let change = Change::prepare(lookup_fixture, kind, at).await;
                let steps = change.steps();
                assert_eq!(steps.len(), kind.steps(), "{kind:?}");
                let gate = gate(&steps, done, 1);
                made.push(Midway::new(Subject::Outside(change), gate, (done, goes_on)));
            }
        }
    }
    made
}

impl<'a> Midway<'a> {
    pub async fn of_money(
        by: (&Fixture, &Admin, &Cli),
        (kind, victim, (done, goes_on)): (ChangeKind, Victim, Pause),
        node: usize,
    ) -> Self {
        let row = Row::prepare(by, (kind, victim), node).await;
        let account = |of: Victim| match of {
            Victim::Payer => row.payer.account.id.clone(),
            Victim::Payee => row.payee.account.id.clone(),
        };
        let steps: Vec<(&str, String)> = steps(kind)
            .iter()
            .map(|(script, of)| (*script, account(*of)))
            .collect();
        // No maximum: the transit worker takes the same step beside the request.
        let gate = gate(&steps, done, usize::MAX);
        Self::new(Subject::Money(Box::new(row)), gate, (done, goes_on))
    }

    fn new(subject: Subject<'a>, gate: Gate, (done, goes_on): Pause) -> Self {
        Self {
            subject,
            goes_on,
            gate,
            done,
            is_acknowledged: false,
            is_repetition: false,
            unexpected: None,
        }
    }

    pub fn name(&self) -> String {
        let name = match &self.subject {
            Subject::Money(row) => row.name(),
            Subject::Outside(change) => change.name(),
        };
        format!("{name}, after step {}, goes on {:?}", self.done, self.goes_on)
    }

    /// Returns actual and expected balances if they differ after the change is done.
    pub async fn unbalanced(&self) -> Option<String> {
        let Subject::Money(row) = &self.subject else {
            return None;
        };
        let (balances, expected) = (row.settled().await, row.kind.done_once());
        (balances != expected).then(|| format!("{balances:?} and not {expected:?}"))
    }

    /// Whether no other change can match the gate. An account's id is not known beforehand, and several keys belong to
    /// one account.
    pub fn is_distinct(&self) -> bool {
        match &self.subject {
            Subject::Money(_) => true,
            Subject::Outside(change) => !matches!(
                change.kind(),
                LookupKind::Account | LookupKind::ApiKey | LookupKind::VirtualKey
            ),
        }
    }

    /// Sends the change once, to the servers or as the operator, and records whether it was acknowledged.
    pub async fn send(&mut self) {
        self.is_acknowledged = match &mut self.subject {
            Subject::Outside(change) => change.send().await,
            Subject::Money(row) => {
                let sent = row.send().await;
                self.is_repetition = sent.is_repetition;
                if ![200, 503].contains(&sent.status) && !sent.is_repetition {
                    self.unexpected = Some(sent.text);
                }
                sent.status != 503
            }
        };
    }
}
