//! Where accounts, agents and wallets stand: their records, and what their counters must come to.

use super::book::{Owner, Place, Seen};
use super::drive::{Job, drive};
use super::pass::Pass;
use super::replay::Replay;
use super::violation::Invariant;
use shared::domain::mode::Mode;
use shared::domain::period::{DAY_MS, Period};
use shared::store::StoreError;
use shared::store::keys::{USER, closed_holder};
use shared::store::read::Read;
use std::collections::{BTreeMap, HashMap};

/// Days whose counters are surely kept: the scripts remove those that are more than 40 days past.
const DAYS_KEPT: u64 = 39;
/// Attempts at reading a record between two transactions of its account.
const ATTEMPTS: usize = 100;

type Fields = HashMap<String, String>;

/// A counter's field, and what is wrong with it.
type Wrong = (String, String);

/// A record that is read together with the number of the account's last transaction.
#[derive(Debug, Clone)]
enum Standing {
    Owner(Place, String),
    Closed(Place, u64),
}

impl Pass<'_> {
    /// Reads the records of accounts, agents and wallets, and compares their counters.
    pub(super) async fn read_standing(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let lives = accounts.places().filter(|place| place.mode == Mode::Live);
        let jobs = lives.map(|place| {
            let keys = accounts.keys(place);
            let reads = vec![Read::hash(keys.bucket(), keys.record())];
            Job {
                what: place,
                reads,
                weight: 1,
            }
        });
        drive(store, jobs, |place, mut answers| {
            self.count(1);
            let record = answers.read::<Fields>().unwrap_or_default();
            for mode in [Mode::Live, Mode::Test] {
                let number = |name: &str| {
                    let text = record.get(&format!("{mode}_{name}"));
                    text.and_then(|text| text.parse().ok()).unwrap_or(0)
                };
                let page = self.page(Place { mode, ..place });
                (page.last, page.audit_seq) = (number("txn_seq"), number("audit_seq"));
            }
            self.records[place.account] = record;
        })
        .await?;
        let mut wanted: Vec<Standing> = Vec::new();
        for place in accounts.places() {
            let page = self.page(place);
            wanted.extend(
                page.owners
                    .keys()
                    .map(|owner| Standing::Owner(place, owner.clone())),
            );
            wanted.extend(page.closed.iter().map(|number| Standing::Closed(place, *number)));
        }
        for _ in 0..ATTEMPTS {
            if wanted.is_empty() {
                break;
            }
            wanted = self.read_between_transactions(wanted).await?;
        }
        self.check_floors().await?;
        self.check_months().await
    }

    /// Reads records; those that a transaction of the account came between are left to read again.
    async fn read_between_transactions(
        &mut self,
        wanted: Vec<Standing>,
    ) -> Result<Vec<Standing>, StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let jobs = wanted.into_iter().map(|what| {
            let (place, key) = match &what {
                Standing::Owner(place, owner) => (*place, accounts.keys(*place).wallet(place.mode, owner)),
                Standing::Closed(place, number) => {
                    (*place, accounts.keys(*place).closed_wallet(place.mode, *number))
                }
            };
            let keys = accounts.keys(place);
            let seq = || Read::field(keys.bucket(), keys.record(), &format!("{}_txn_seq", place.mode));
            let reads = vec![seq(), Read::hash(keys.bucket(), &key), seq()];
            let weight = 3;
            Job {
                what: (what, key),
                reads,
                weight,
            }
        });
        let mut again = Vec::new();
        drive(store, jobs, |(what, key), mut answers| {
            let before = answers.read::<Option<u64>>().flatten().unwrap_or(0);
            let fields = answers.read::<Fields>().unwrap_or_default();
            let after = answers.read::<Option<u64>>().flatten().unwrap_or(0);
            if before != after {
                again.push(what);
                return;
            }
            self.count(1);
            match what {
                Standing::Owner(place, owner) => self.stands(place, owner, key, before, &fields),
                Standing::Closed(place, number) => {
                    let owner = fields.get("agent").cloned().unwrap_or_default();
                    let balance = fields.get("balance").and_then(|text| text.parse().ok());
                    let holder = closed_holder(number);
                    self.wallet(place, number, Replay::new(owner, holder, key, before, balance));
                }
            }
        })
        .await?;
        Ok(again)
    }

    fn stands(&mut self, place: Place, owner: String, key: String, seq: u64, fields: &Fields) {
        let seen = Seen::from_fields(seq, fields);
        if let Some(number) = seen.wallet {
            let replay = Replay::new(owner.clone(), owner.clone(), key.clone(), seq, seen.balance);
            self.wallet(place, number, replay);
        }
        let today = self.today;
        let known = self.owner(place, &owner);
        let (pending, says) = (known.pending, seen.pending);
        let wrong_month = month_differs(&seen, today.month);
        known.seen = Some(seen);
        if says.map(u128::from) != Some(pending) {
            let says = says.map_or("no number".to_owned(), |nanos| format!("{nanos} nanos"));
            let detail = format!("{says} are pending, and its pending deposits are {pending}");
            self.found.add_moving(Invariant::Pending, &[&key], detail);
        }
        if let Some((field, detail)) = wrong_month {
            self.wrong(Invariant::Counters, &[&format!("{key} {field}")], detail);
        }
    }

    fn wallet(&mut self, place: Place, number: u64, replay: Replay) {
        let key = replay.key.clone();
        let page = self.page(place);
        page.last = page.last.max(replay.seq);
        if let Some(other) = page.wallets.insert(number, replay) {
            let detail = format!("both are wallet {number}");
            self.wrong(Invariant::WalletBalance, &[&key, &other.key], detail);
        }
    }

    /// No counter is below what was surely charged to it. Spends and holds were read before the counters; a hold that was
    /// resolved between the two is left out.
    async fn check_floors(&mut self) -> Result<(), StoreError> {
        let (store, accounts, today) = (self.store, self.accounts, self.today);
        let mut low: Vec<(Place, String)> = Vec::new();
        for place in accounts.places() {
            let owners = self.page(place).owners.iter();
            let owners = owners.filter(|(_, owner)| !below(owner, today, &[]).is_empty());
            low.extend(owners.map(|(name, _)| (place, name.clone())));
        }
        let mut jobs = Vec::new();
        for (place, name) in &low {
            let bucket = accounts.keys(*place).bucket();
            for (id, kept, ..) in &self.owner(*place, name).holds {
                let key = if *kept {
                    bucket.kept_hold(id)
                } else {
                    bucket.hold(id)
                };
                let reads = vec![Read::text(bucket, key)];
                let weight = 1;
                jobs.push(Job {
                    what: id.clone(),
                    reads,
                    weight,
                });
            }
        }
        let mut resolved = Vec::new();
        drive(store, jobs.into_iter(), |id, mut answers| {
            if answers
                .read::<Option<String>>()
                .flatten()
                .is_none_or(|text| text == "V")
            {
                resolved.push(id);
            }
        })
        .await?;
        for (place, name) in low {
            let key = accounts.keys(place).wallet(place.mode, &name);
            for (field, detail) in below(self.owner(place, &name), today, &resolved) {
                self.wrong(Invariant::Counters, &[&format!("{key} {field}")], detail);
            }
        }
        Ok(())
    }

    /// Agents add up to their account. Where they do not, record and agents are read again as close together as can be.
    async fn check_months(&mut self) -> Result<(), StoreError> {
        let (store, accounts, month) = (self.store, self.accounts, self.today.month);
        for place in accounts.places().filter(|place| place.mode == Mode::Live) {
            let agents = self
                .page(place)
                .owners
                .iter()
                .filter(|(name, _)| name.as_str() != USER);
            let sums = agents
                .filter_map(|(_, owner)| owner.seen.as_ref())
                .fold((0, 0), |sums, seen| {
                    add_month(
                        sums,
                        seen.counters.months.get(&month).copied(),
                        seen.slot.as_deref(),
                        month,
                    )
                });
            let record = &self.records[place.account];
            let number = |name: String| record.get(&name).map_or(Ok(0), |text| text.parse::<i128>());
            if (number(format!("t{month}")), number(format!("n{month}"))) == (Ok(sums.0), Ok(sums.1)) {
                continue;
            }
            let names: Vec<String> = self
                .page(place)
                .owners
                .keys()
                .filter(|name| *name != USER)
                .cloned()
                .collect();
            let keys = accounts.keys(place);
            let fields = [format!("t{month}"), format!("n{month}")];
            let mut reads = vec![Read::fields(keys.bucket(), keys.record(), &fields)];
            let of_agent = [format!("m{month}"), "slot".to_owned()];
            let agents = names.iter().map(|name| keys.agent(place.mode, name));
            reads.extend(agents.map(|key| Read::fields(keys.bucket(), key, &of_agent)));
            reads.push(Read::fields(keys.bucket(), keys.record(), &fields));
            let mut answers = store.many(&reads).await?;
            let before = answers.read::<(Option<String>, Option<String>)>();
            let mut sums = (0, 0);
            for _ in &names {
                let (charged, slot) = answers
                    .read::<(Option<i128>, Option<String>)>()
                    .unwrap_or_default();
                sums = add_month(sums, charged, slot.as_deref(), month);
            }
            let after = answers.read::<(Option<String>, Option<String>)>();
            let number = |text: Option<&String>| text.map_or(Ok(0), |text| text.parse::<i128>());
            let says = after
                .as_ref()
                .map(|(t, n)| (number(t.as_ref()), number(n.as_ref())));
            if says != Some((Ok(sums.0), Ok(sums.1))) {
                let text = |value: Option<&String>| value.map_or("0", String::as_str).to_owned();
                let (tracked, slots) = after
                    .as_ref()
                    .map_or_else(Default::default, |(t, n)| (text(t.as_ref()), text(n.as_ref())));
                let detail = format!(
                    "t{month} is {tracked} and its agents come to {}; n{month} is {slots} and {} agents have a place",
                    sums.0, sums.1
                );
                match before == after {
                    true => self.wrong(Invariant::Counters, &[&keys.record()], detail),
                    false => self
                        .found
                        .add_moving(Invariant::Counters, &[&keys.record()], detail),
                }
            }
        }
        Ok(())
    }
}

/// Adds what an agent was charged in the month, and whether it has a place in it.
fn add_month(sums: (i128, i128), charged: Option<i128>, slot: Option<&str>, month: u64) -> (i128, i128) {
    let has_place = slot == Some(format!("m{month}").as_str());
    (sums.0 + charged.unwrap_or(0), sums.1 + i128::from(has_place))
}

/// Whether the days of the month come to something else than the month. All days of the current month are kept.
fn month_differs(seen: &Seen, month: u64) -> Option<Wrong> {
    let in_month = |day: &u64| Period::at(day * DAY_MS).month == month;
    let days = seen.counters.days.iter().filter(|(day, _)| in_month(day));
    let sum: i128 = days.map(|(_, nanos)| nanos).sum();
    let says = seen.counters.months.get(&month).copied().unwrap_or(0);
    (sum != says).then(|| {
        (
            format!("m{month}"),
            format!("it is {says} nanos, and its days come to {sum}"),
        )
    })
}

/// Counters that are below what was charged to them.
fn below(owner: &Owner, today: Period, resolved: &[String]) -> Vec<Wrong> {
    let (mut days, mut months) = (BTreeMap::<u64, u128>::new(), BTreeMap::<u64, u128>::new());
    let spends = owner
        .charged
        .iter()
        .map(|((day, month), nanos)| (*day, *month, *nanos));
    let holds = owner.holds.iter().filter(|(id, ..)| !resolved.contains(id));
    let holds = holds.map(|(_, _, period, nanos)| (period.day, period.month, u128::from(*nanos)));
    for (day, month, nanos) in spends.chain(holds) {
        if day + DAYS_KEPT >= today.day {
            *days.entry(day).or_default() += nanos;
        }
        // The months before are kept for two years; that is not worth a rule.
        if month == today.month {
            *months.entry(month).or_default() += nanos;
        }
    }
    let none = BTreeMap::new();
    let counters = owner.seen.as_ref().map(|seen| &seen.counters);
    let short = |name: char, floors: BTreeMap<u64, u128>, counters: &BTreeMap<u64, i128>| {
        let low = floors.into_iter().filter_map(|(period, floor)| {
            let says = counters.get(&period).copied().unwrap_or(0);
            let floor = i128::try_from(floor).unwrap_or(i128::MAX);
            let detail = || format!("it is {says} nanos, and spends and holds come to {floor}");
            (says < floor).then(|| (format!("{name}{period}"), detail()))
        });
        low.collect::<Vec<_>>()
    };
    let mut low = short('d', days, counters.map_or(&none, |counters| &counters.days));
    low.extend(short(
        'm',
        months,
        counters.map_or(&none, |counters| &counters.months),
    ));
    low
}

/// Whether what the wallet spent on a day is another sum than its transactions of the day.
pub(super) fn spends_differ(owner: &Owner, today: Period) -> Option<Wrong> {
    let counters = &owner.seen.as_ref()?.counters.spends;
    let days = owner.spends.keys().chain(counters.keys());
    let mut kept = days.filter(|day| **day + DAYS_KEPT >= today.day);
    kept.find_map(|day| {
        let sum = owner.spends.get(day).copied().unwrap_or(0);
        let says = counters.get(day).copied().unwrap_or(0);
        let detail = || format!("it is {says} nanos, and its spends come to {sum}");
        (i128::try_from(sum) != Ok(says)).then(|| (format!("w{day}"), detail()))
    })
}

#[cfg(test)]
mod tests;
