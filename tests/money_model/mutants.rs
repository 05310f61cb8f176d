//! Each small change to a script that moves money must be noticed by the checks of this directory.

mod equivalent;
mod texts;

use crate::directed::Group;
use crate::model_fixture::Checked;
use crate::mutants::texts::Recipe;
use crate::random;
use crate::random::Case;
use harness::scripts::{self, QuickestFirst, only_equivalent};
use std::sync::Arc;
use std::time::Instant;
use store::Store;

/// Random cases that each changed script has to survive.
const CASES: u32 = 8;

struct Mutant {
    /// The script's file, and the change.
    name: String,
    recipe: &'static Recipe,
    text: String,
    groups: Arc<QuickestFirst<Group>>,
}

/// Every mutant of every part that is mutated.
fn all() -> Vec<Mutant> {
    let mut all = Vec::new();
    for recipe in texts::RECIPES {
        let texts = recipe.texts();
        for (at, part) in recipe.parts.iter().enumerate() {
            if !recipe.changed.contains(&part.name) {
                continue;
            }
            let groups = recipe.groups();
            for mutant in scripts::mutants(&texts[at]) {
                let mut texts = texts.clone();
                texts[at] = mutant.text;
                all.push(Mutant {
                    name: format!("{}: {}", part.name, mutant.name),
                    recipe,
                    text: texts.concat(),
                    groups: groups.clone(),
                });
            }
        }
    }
    all
}

/// The unchanged scripts, as mutants.
fn unchanged() -> Vec<Mutant> {
    let recipes = texts::RECIPES.iter();
    let same = recipes.map(|recipe| Mutant {
        name: recipe.script().to_owned(),
        recipe,
        text: recipe.texts().concat(),
        groups: recipe.groups(),
    });
    same.collect()
}

/// The checks, those that are meant for the script first.
async fn checks(store: &Store, mutant: &Mutant, cases: &[Case]) -> Checked {
    let store = store.replacing(mutant.recipe.made_of(&mutant.text));
    mutant.groups.run(async |group| group.check(&store).await).await?;
    for case in cases {
        random::play(&store, case).await?;
    }
    Ok(())
}

#[test]
#[ignore = "long: make verify runs it"]
fn every_changed_script_is_noticed() {
    let started = Instant::now();
    let cases = random::fixed_cases(CASES);
    let survivors = |mutants: &[Mutant]| {
        let check = async |store: &Store, mutant: &Mutant| checks(store, mutant, &cases).await;
        scripts::survivors(mutants, |mutant| &mutant.name, check)
    };
    // The unchanged scripts must pass the same checks in the same way, or a failing mutant would prove nothing.
    let unchanged = unchanged();
    assert_eq!(survivors(&unchanged).len(), unchanged.len());
    let mutants = all();
    assert!(mutants.len() > 800, "only {} changes", mutants.len());
    let survivors = survivors(&mutants);
    only_equivalent(&survivors, equivalent::LIST, mutants.len());
    let (all, equivalent) = (mutants.len(), survivors.len());
    println!("{all} changes, {equivalent} equivalent, {:?}", started.elapsed());
}
