//! The macro [`script!`], which declares a script with its keys and arguments.

/// Declares a script as a static `LazyLock<Script>`, and the structs of its keys and arguments:
///
/// ```ignore
/// script! {
///     /// Counts one request. Runs on a full store, since revocations are counted like any request.
///     pub static COUNT = "api_key_count",
///     kind: Timed,
///     source: [include_str!("../api_key/count.lua")],
///     when_full: Run,
///     keys: struct CountKeys: String { requests, api_key },
///     /// `window` is in ms.
///     args: struct CountArgs<'a>: &'a str { limit, window },
/// }
/// ```
///
/// * `kind`: a variant of [`ScriptKind`](super::ScriptKind).
/// * `source`: the parts of the source after the fragments of its kind, in order.
/// * `when_full`: a variant of [`WhenFull`](super::WhenFull).
/// * `marks`, optional: methods of [`Script`](super::Script), such as `[confirmed, with_budgets]`.
/// * `keys`, `args`: a struct as for [`inputs!`](super::names::inputs), or the name of one declared elsewhere; omitted
///   if the script has none of its own.
macro_rules! script {
    (
        $(#[$doc:meta])+
        $vis:vis static $script:ident = $name:literal,
        kind: $kind:ident,
        source: [$($part:expr),+ $(,)?],
        when_full: $when_full:ident,
        marks: [$($mark:ident),+],
        $($inputs:tt)*
    ) => {
        $crate::script::script! {
            @keys { $(#[$doc])+ $vis $script $name $kind [$($part),+] $when_full [$($mark)+] } $($inputs)*
        }
    };
    (
        $(#[$doc:meta])+
        $vis:vis static $script:ident = $name:literal,
        kind: $kind:ident,
        source: [$($part:expr),+ $(,)?],
        when_full: $when_full:ident,
        $($inputs:tt)*
    ) => {
        $crate::script::script! {
            @keys { $(#[$doc])+ $vis $script $name $kind [$($part),+] $when_full [] } $($inputs)*
        }
    };

    // Internal: first the keys, then the arguments, then the static. `$script` collects the parts of the static.
    (@keys $script:tt
        $(#[$doc:meta])*
        keys: struct $keys:ident $(<$life:lifetime>)?: $value:ty { $($field:tt)+ },
        $($args:tt)*
    ) => {
        $crate::script::names::inputs! { $(#[$doc])* struct $keys $(<$life>)?: $value { $($field)+ } }
        $crate::script::script! { @args $script [$keys::NAMES] $($args)* }
    };
    (@keys $script:tt keys: $keys:ident, $($args:tt)*) => {
        $crate::script::script! { @args $script [$keys::NAMES] $($args)* }
    };
    (@keys $script:tt $($args:tt)*) => { $crate::script::script! { @args $script [&[]] $($args)* } };

    (@args $script:tt [$keys:expr]
        $(#[$doc:meta])*
        args: struct $args:ident $(<$life:lifetime>)?: $value:ty { $($field:tt)+ } $(,)?
    ) => {
        $crate::script::names::inputs! { $(#[$doc])* struct $args $(<$life>)?: $value { $($field)+ } }
        $crate::script::script! { @static $script [$keys] [$args::NAMES] }
    };
    (@args $script:tt [$keys:expr] args: $args:ident $(,)?) => {
        $crate::script::script! { @static $script [$keys] [$args::NAMES] }
    };
    (@args $script:tt [$keys:expr]) => { $crate::script::script! { @static $script [$keys] [&[]] } };

    (@static
        { $(#[$doc:meta])+ $vis:vis $script:ident $name:literal $kind:ident [$($part:expr),+] $when_full:ident [$($mark:ident)*] }
        [$keys:expr] [$args:expr]
    ) => {
        $(#[$doc])+
        $vis static $script: std::sync::LazyLock<$crate::script::Script> = std::sync::LazyLock::new(|| {
            let kind = $crate::script::ScriptKind::$kind;
            let when_full = $crate::script::WhenFull::$when_full;
            $crate::script::Script::declared($name, kind, when_full, ($keys, $args), &[$($part),+])$(.$mark())*
        });
    };
}
pub(crate) use script;

#[cfg(test)]
mod tests {
    script! {
        /// Has all parts.
        static WHOLE = "whole",
        kind: Timed,
        source: ["-- KEYS.visits ARGV.life"],
        when_full: ReadOnly,
        marks: [confirmed, with_budgets],
        keys: struct VisitKeys<'a>: &'a str { account, visits },
        /// `life` is in ms.
        args: struct VisitArgs: String { row[2], life },
    }
    script! {
        /// Shares its keys with the other script, and is a change.
        static SHARED = "shared",
        kind: Change,
        source: ["-- KEYS.visits\n"],
        when_full: Run,
        keys: VisitKeys,
    }

    #[test]
    fn a_script_is_what_its_declaration_says() {
        assert_eq!(WHOLE.name(), "whole");
        assert!(WHOLE.source().starts_with("#!lua flags=no-writes\n"));
        assert!(WHOLE.source().ends_with("-- KEYS[2] ARGV[3]"));
        assert!(WHOLE.is_confirmed() && WHOLE.has_budgets());
        assert!(SHARED.source().starts_with("#!lua flags=allow-oom\n"));
        assert!(
            SHARED.source().contains("-- KEYS[4]\n"),
            "behind those of a change"
        );
        assert!(!SHARED.is_confirmed() && !SHARED.has_budgets());

        let keys = VisitKeys {
            account: "a",
            visits: "v",
        };
        assert_eq!(keys.into_values(), ["a", "v"]);
        let args = VisitArgs {
            row: ["b", "c"].map(str::to_owned),
            life: "d".to_owned(),
        };
        assert_eq!(args.into_values().concat(), "bcd");
    }
}
