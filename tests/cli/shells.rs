//! Completions as bash runs them, and manual pages.

use crate::{cli, commands, document};
use harness::{Cli, Redis};

/// Completions of bash for the last word of a line.
fn offered(cli: &Cli, line: &str) -> Vec<String> {
    let script = format!(
        r#"source <("$ADMIN" completions bash)
        COMP_WORDS=(tollgate-admin {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        spec=$(complete -p tollgate-admin) && [[ $spec =~ -F\ ([^\ ]+) ]] || exit 3
        "${{BASH_REMATCH[1]}}" tollgate-admin "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#
    );
    let output = cli.script(&script);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    output.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let redis = Redis::shared();
    let cli = cli(&redis);
    let parsed = cli.script(r#""$ADMIN" completions bash | bash -n"#);
    assert_eq!((parsed.code, parsed.stderr.as_str()), (Some(0), ""), "{parsed:?}");
    assert_eq!(offered(&cli, "acc"), ["account"]);
    assert_eq!(offered(&cli, "api-key rev"), ["revoke"]);
    assert_eq!(offered(&cli, "deposit con"), ["confirm"]);
    assert_eq!(offered(&cli, "agent freeze --acc"), ["--account"]);
    assert_eq!(offered(&cli, "agent freeze --mode ''"), ["live", "test"]);
    assert_eq!(offered(&cli, "escrow resolve --to payer"), ["payer"]);
}

#[test]
fn every_shell_gets_a_script() {
    let redis = Redis::shared();
    let cli = cli(&redis);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = cli.run(&["completions", shell]);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["set-plan", "sandbox-upstream", "--owner-password-stdin"] {
            let word = match shell {
                "fish" => word.trim_start_matches('-'),
                _ => word,
            };
            assert!(output.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let redis = Redis::shared();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let made = document(&cli(&redis).run(&["man", "--out", out, "--json"]), 0);
    assert_eq!(made["pages"], std::fs::read_dir(&dir).unwrap().count());
    for command in commands() {
        let name = format!("tollgate-admin-{}.1", command.replace(' ', "-"));
        let page =
            std::fs::read_to_string(dir.path().join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for part in [".TH ", ".SH SYNOPSIS", "Changes:", "Example:", "Exit codes:"] {
            assert!(page.contains(part), "{name} has no {part}");
        }
    }
}
