//! `lookup_join` and `lookup_leave`: the accounts and users that an e-mail leads to.

use super::{describe, fresh};
use harness::Store;
use harness::scripts::{Checked, execute};
use store::lookup::script;

/// Gives the e-mail `x` a look-up of these lines.
async fn leads_to(store: &Store, lines: &[&str]) -> Result<(), String> {
    execute::<i64>(store, &["DEL", "x"]).await?;
    match lines.is_empty() {
        true => Ok(()),
        false => execute(store, &["SET", "x", &lines.join("\n")]).await,
    }
}

/// The lines of a look-up before and after a change.
type LookUp = (&'static [&'static str], &'static [&'static str]);

/// Checks the look-up `x` after a change.
async fn leads(store: &Store, (before, after): LookUp) -> Checked {
    let there: Option<String> = execute(store, &["GET", "x"]).await?;
    let expected = (!after.is_empty()).then(|| after.join("\n"));
    if there != expected {
        return Err(format!("{before:?}: {there:?} is not {after:?}"));
    }
    Ok(())
}

/// An account has one user of an e-mail; accounts and users whose names have a common start are distinct.
pub async fn join(store: &Store) -> Checked {
    fresh(store).await?;
    const CASES: &[LookUp] = &[
        (&[], &["a u"]),
        (&["a u"], &["a u"]),
        (&["a v"], &["a u"]),
        (&["aa v", "ba w"], &["aa v", "ba w", "a u"]),
        (&["b a", "c"], &["b a", "c", "a u"]),
        (&["a v", "b w"], &["a u", "b w"]),
        (&["b w", "a v", "c x"], &["b w", "a u", "c x"]),
        (&["b", "c", "a v"], &["b", "c", "a u"]),
        // The maximum here is three.
        (&["b", "c", "d"], &["b", "c", "d"]),
        (&["b", "c", "d", "a v"], &["b", "c", "d", "a u"]),
    ];
    for case in CASES {
        leads_to(store, case.0).await?;
        script::join(store, "x", "a", "u", 3).await.map_err(describe)?;
        leads(store, *case).await?;
    }
    Ok(())
}

pub async fn leave(store: &Store) -> Checked {
    fresh(store).await?;
    const CASES: &[LookUp] = &[
        (&[], &[]),
        (&["a u"], &[]),
        (&["a v"], &["a v"]),
        (&["a uu", "aa u", "a.", "ba u"], &["a uu", "aa u", "a.", "ba u"]),
        (&["a u", "b u"], &["b u"]),
        (&["b u", "a u"], &["b u"]),
        (&["b u", "a u", "c"], &["b u", "c"]),
    ];
    for case in CASES {
        leads_to(store, case.0).await?;
        script::leave(store, "x", "a", "u").await.map_err(describe)?;
        leads(store, *case).await?;
    }
    Ok(())
}
