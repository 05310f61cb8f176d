//! Each small change to a script must be noticed by the checks of this directory.

mod equivalent;

use crate::directed::Group;
use crate::fixture::Checked;
use crate::scripts::Texts;
use crate::{directed, precedence, random};
use harness::scripts::{self, QuickestFirst, only_equivalent, survivors};
use random::Case;
use std::sync::Arc;
use std::time::Instant;
use store::Store;

/// Random cases that each changed script has to survive.
const CASES: u32 = 30;

struct Mutant {
    name: String,
    texts: Texts,
    of_period: bool,
    groups: Arc<QuickestFirst<Group>>,
}

fn all() -> Vec<Mutant> {
    type Field = fn(&mut Texts) -> &mut String;
    let parts: [(&str, Field); 15] = [
        ("authorize", |texts| &mut texts.authorize),
        ("prune", |texts| &mut texts.prune),
        ("cap", |texts| &mut texts.cap),
        ("denial_line", |texts| &mut texts.denial_line),
        ("live_runs", |texts| &mut texts.live_runs),
        ("run", |texts| &mut texts.run),
        ("end_hold", |texts| &mut texts.end_hold),
        ("lost_writes", |texts| &mut texts.lost_writes),
        ("extend", |texts| &mut texts.extend),
        ("settle", |texts| &mut texts.settle),
        ("void", |texts| &mut texts.void),
        ("reap", |texts| &mut texts.reap),
        ("denial_window", |texts| &mut texts.denial_window),
        ("clock", |texts| &mut texts.clock),
        ("period", |texts| &mut texts.period),
    ];
    let mut all = Vec::new();
    for (part, field) in parts {
        let source = field(&mut Texts::real()).clone();
        let groups = Arc::new(QuickestFirst::new(&Group::ALL));
        for mutant in scripts::mutants(&source) {
            let mut texts = Texts::real();
            *field(&mut texts) = mutant.text;
            let name = format!("{part}: {}", mutant.name);
            all.push(Mutant {
                name,
                texts,
                of_period: part == "clock" || part == "period",
                groups: groups.clone(),
            });
        }
    }
    all
}

/// The checks, the quickest to notice something first.
async fn checks(store: &Store, mutant: &Mutant, cases: &[Case]) -> Checked {
    let scripts = mutant.texts.build(store);
    if mutant.of_period {
        directed::calendar(&scripts).await?;
    }
    mutant
        .groups
        .run(async |group| group.check(&scripts).await)
        .await?;
    precedence::pairs(&scripts).await?;
    for case in cases {
        random::play(&scripts, case).await?;
    }
    Ok(())
}

#[test]
#[ignore = "long: make verify runs it"]
fn every_changed_script_is_noticed() {
    let started = Instant::now();
    let mutants = all();
    assert!(mutants.len() > 300, "only {} changes", mutants.len());
    let cases = random::fixed_cases(CASES);
    let check = async |store: &Store, mutant: &Mutant| checks(store, mutant, &cases).await;
    let survivors = survivors(&mutants, |mutant| &mutant.name, check);
    only_equivalent(&survivors, equivalent::LIST, mutants.len());
    let (all, equivalent) = (mutants.len(), survivors.len());
    println!("{all} changes, {equivalent} equivalent, {:?}", started.elapsed());
}
