//! The units: only directives that systemd has, hardened, and their command lines run with their own environment.

use crate::files::{all_below, path, run, text};
use crate::installation::{Installation, body};
use crate::settings::accepted;
use crate::{ADMIN, PROXY};
use harness::{Admin, AdminOptions, Edge, EdgeOptions, eventually, executable_script, until};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Longest end of an admin server after its delay (docs/guides/upgrading.md).
pub const ADMIN_STOP_SECONDS: u64 = 15;
const EDGE_UNIT: &str = "deploy/systemd/tollgate-proxy@.service";
const ADMIN_UNIT: &str = "deploy/systemd/tollgate-admin.service";
const BACKUP_UNIT: &str = "deploy/systemd/tollgate-backup.service";

/// Directives of systemd 252; `systemd-analyze verify` was run on the units with that version.
const DIRECTIVES: &str = "Description After Wants StartLimitIntervalSec Type User Group ExecStart ExecReload \
    KillSignal TimeoutStopSec TimeoutStartSec Restart RestartSec RestartPreventExitStatus WorkingDirectory StateDirectory \
    StateDirectoryMode UMask LimitNOFILE LimitCORE TasksMax OOMScoreAdjust LogRateLimitIntervalSec LogRateLimitBurst LoadCredential Environment NoNewPrivileges \
    ProtectSystem ProtectHome PrivateTmp PrivateDevices PrivateIPC ProtectProc ProcSubset ProtectClock ProtectHostname \
    ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectControlGroups RestrictNamespaces RestrictRealtime \
    RestrictSUIDSGID RestrictAddressFamilies LockPersonality MemoryDenyWriteExecute RemoveIPC KeyringMode \
    SystemCallArchitectures SystemCallFilter SystemCallErrorNumber CapabilityBoundingSet AmbientCapabilities Nice \
    IOSchedulingClass OnCalendar RandomizedDelaySec Persistent WantedBy";
/// Lines that each of our services has, in this spelling.
const HARDENED: [&str; 16] = [
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "RestrictNamespaces=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "CapabilityBoundingSet=",
];

/// The lines of a unit, without comments and blank lines.
fn lines(unit: &str) -> Vec<String> {
    let text = text(unit);
    let printed = text
        .lines()
        .filter(|line| !line.starts_with(['#', ';']) && !line.trim().is_empty());
    printed.map(str::to_owned).collect()
}

fn values(unit: &str, name: &str) -> Vec<String> {
    let start = format!("{name}=");
    let lines = lines(unit);
    lines
        .iter()
        .filter_map(|line| line.strip_prefix(&start))
        .map(str::to_owned)
        .collect()
}

fn value(unit: &str, name: &str) -> String {
    let [value]: [String; 1] = values(unit, name)
        .try_into()
        .unwrap_or_else(|all| panic!("{unit} {name}: {all:?}"));
    value
}

#[test]
fn units_say_what_systemd_knows() {
    let known: Vec<&str> = DIRECTIVES.split_whitespace().collect();
    let units = all_below("deploy/systemd");
    let units = units
        .iter()
        .filter(|unit| unit.ends_with(".service") || unit.ends_with(".timer"));
    let mut count = 0;
    for unit in units {
        count += 1;
        for line in lines(unit) {
            let name = line.split('=').next().unwrap();
            assert!(line.starts_with('[') || known.contains(&name), "{unit}: {line}");
        }
    }
    assert_eq!(count, 4);
    for unit in [EDGE_UNIT, ADMIN_UNIT] {
        // No line is dropped; 0 has another meaning in journald.conf.
        let [interval, burst] =
            ["LogRateLimitIntervalSec", "LogRateLimitBurst"].map(|name| value(unit, name));
        assert!(
            interval == "1s" && burst.parse::<u64>().unwrap() >= 1_000_000,
            "{unit}"
        );
    }
    for unit in [EDGE_UNIT, ADMIN_UNIT, BACKUP_UNIT] {
        let lines = lines(unit);
        for wanted in HARDENED {
            assert!(lines.iter().any(|line| line == wanted), "{unit}: {wanted}");
        }
        // Not root, and secrets come by credentials.
        assert_eq!(value(unit, "User"), "tollgate");
        assert!(
            values(unit, "LoadCredential")
                .iter()
                .all(|one| one.contains(":/etc/tollgate/secrets/"))
        );
    }
}

/// The store's unit is the distribution's: it waits for the store to have read its file, by default for 90 s.
#[test]
fn a_store_has_the_time_to_read_its_file() {
    let drop_in = lines("deploy/systemd/redis-server.conf");
    let known: Vec<&str> = DIRECTIVES.split_whitespace().collect();
    for line in &drop_in {
        let name = line.split('=').next().unwrap();
        assert!(line == "[Service]" || known.contains(&name), "{line}");
    }
    let file = "deploy/systemd/redis-server.conf";
    assert_eq!(value(file, "TimeoutStartSec"), "infinity");
    let adjust = |unit: &str| value(unit, "OOMScoreAdjust").parse::<i32>().unwrap();
    assert!(adjust(file) < adjust(EDGE_UNIT), "the store is ended last");
    let guide = text("docs/guides/deployment.md");
    let install = format!("install -D -m 0644 {file} /etc/systemd/system/redis-server.service.d/");
    let [install, reload, restart] = [
        &*install,
        "systemctl daemon-reload\n",
        "systemctl restart redis-server\n\n",
    ]
    .map(|line| guide.find(line).unwrap_or_else(|| panic!("{line}")));
    assert!(install < reload && reload < restart);
}

/// The environment of a unit, with its paths below `root`; `%d` is the folder of credentials.
fn environment(unit: &str, root: &Path) -> BTreeMap<String, String> {
    let pairs = values(unit, "Environment").into_iter().map(|pair| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), placed(value, root))
    });
    pairs.collect()
}

fn placed(text: &str, root: &Path) -> String {
    let root = root.display();
    text.replace("%d", &format!("{root}/credentials"))
        .replace("/etc/tollgate", &format!("{root}/etc"))
        .replace("/var/lib/tollgate", &format!("{root}/state"))
}

/// Installs the files that the units need.
fn installed(installation: &Installation, root: &Path) {
    for folder in ["credentials", "etc", "state"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for table in ["tollgate.toml", "plans.toml", "prices.toml"] {
        fs::copy(path("config").join(table), root.join("etc").join(table)).unwrap();
    }
    for unit in [EDGE_UNIT, ADMIN_UNIT, BACKUP_UNIT] {
        for folder in value(unit, "StateDirectory").split(' ') {
            let below = folder.strip_prefix("tollgate").unwrap().trim_start_matches('/');
            let folder = root.join("state").join(below);
            let mode = u32::from_str_radix(&value(unit, "StateDirectoryMode"), 8).unwrap();
            fs::create_dir_all(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    fs::write(root.join("credentials/master.key"), harness::TEST_MASTER_KEY).unwrap();
    for (unit, user) in [
        (EDGE_UNIT, "edge"),
        (ADMIN_UNIT, "admin"),
        (BACKUP_UNIT, "backup"),
    ] {
        let source = format!("store.url:/etc/tollgate/secrets/{user}.url");
        assert!(values(unit, "LoadCredential").contains(&source), "{unit}");
        fs::copy(
            installation.url_file(user),
            root.join(format!("credentials/{user}.url")),
        )
        .unwrap();
    }
}

/// A script that runs `ExecStart` with the binary of the test.
fn exec_start(unit: &str, binary: &str, root: &Path, more: &str) -> String {
    let line = value(unit, "ExecStart");
    let (program, rest) = line.split_once(' ').unwrap();
    assert!(binary.ends_with(program.rsplit('/').next().unwrap()), "{program}");
    let script = root.join(format!("start-{}{more}", program.rsplit('/').next().unwrap()));
    let text = format!("#!/bin/bash\nexec '{binary}' {}\n", placed(rest, root));
    executable_script(&script, &text)
}

/// An instance of the edge's unit, on the addresses of `like` if given.
fn edge(installation: &Installation, root: &Path, instance: &str, like: Option<&Edge>) -> EdgeOptions {
    let mut all = environment(EDGE_UNIT, root);
    all.insert(
        "TOLLGATE_STORE__URL_FILE".to_owned(),
        root.join("credentials/edge.url").display().to_string(),
    );
    if let Some(running) = like {
        all.insert("TOLLGATE_PROXY__LISTEN".to_owned(), running.addr().to_string());
        all.insert(
            "TOLLGATE_PROXY__OPS_LISTEN".to_owned(),
            running.ops_addr().to_string(),
        );
    }
    let script = exec_start(EDGE_UNIT, PROXY, root, instance);
    let options = EdgeOptions::new(&script, "redis://127.0.0.1:1", installation.upstream.base_url());
    let options = options.env("TOLLGATE_SECRETS__MASTER_KEY", "");
    all.into_iter()
        .fold(options, |options, (name, value)| options.env(&name, value))
}

#[tokio::test(flavor = "multi_thread")]
async fn their_command_lines_run_and_hand_over() {
    let installation = Installation::start();
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    installed(&installation, root);
    let first = Edge::start(edge(&installation, root, "a", None));
    let mut options = AdminOptions::new(&exec_start_admin(root), "redis://127.0.0.1:1")
        .env("TOLLGATE_SECRETS__MASTER_KEY", "");
    for (name, value) in environment(ADMIN_UNIT, root) {
        options = options.env(&name, value);
    }
    let url = root.join("credentials/admin.url").display().to_string();
    let admin = Admin::start(options.env("TOLLGATE_STORE__URL_FILE", url));
    let tenant = installation.settle(&first, &admin).await;
    assert_eq!(tenant.caller.chat(body()).await.status, 200);

    // systemctl reload
    assert_eq!(value(EDGE_UNIT, "ExecReload"), "/bin/kill -HUP $MAINPID");
    first.signal("HUP");
    assert_eq!(tenant.caller.chat(body()).await.status, 200);
    // upgrade.sh: the second instance waits for the sockets that the first releases.
    let second = Edge::start(edge(&installation, root, "b", Some(&first)));
    let script = text("deploy/systemd/upgrade.sh");
    let note = script
        .lines()
        .find_map(|line| line.strip_prefix("NOTE="))
        .unwrap();
    let note = placed(note, root);
    until("a process that waits for the sockets", async || {
        let mut lock = Command::new("flock");
        let free = lock.args(["--nonblock", &note, "true"]).status().unwrap();
        Path::new(&note).exists() && !free.success()
    })
    .await;
    first.signal("QUIT");
    assert_eq!(
        tokio::task::block_in_place(|| first.wait_exit(SOON)),
        Some(0),
        "{}",
        first.logs()
    );
    eventually("the second instance's answer", SOON, async || {
        (second.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    assert_eq!(second.caller(&tenant.virtual_key).chat(body()).await.status, 200);
    // systemctl stop
    assert_eq!(value(EDGE_UNIT, "KillSignal"), "SIGTERM");
    for server in [&*second, &*admin] {
        server.term();
        assert_eq!(
            tokio::task::block_in_place(|| server.wait_exit(SOON)),
            Some(0),
            "{}",
            server.logs()
        );
    }
    backs_up(root);
}

/// The operator's shell function in the document has the settings of the admin server's unit, since it prints that
/// server's links.
#[test]
fn the_operator_has_the_servers_settings() {
    let document = text("docs/guides/deployment.md");
    let start = document.find("tollgate-admin() (\n").unwrap();
    let function = &document[start..start + document[start..].find("\n)\n").unwrap() + 2];
    let exports: BTreeMap<&str, &str> = function
        .lines()
        .filter_map(|line| line.trim().strip_prefix("export "))
        .flat_map(|line| line.split(' '))
        .map(|pair| pair.split_once('=').unwrap())
        .collect();
    let all = values(ADMIN_UNIT, "Environment");
    let unit: BTreeMap<String, String> = all
        .iter()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| {
            let secret = value.replace("%d/store.url", "/etc/tollgate/secrets/operator.url");
            (name.to_owned(), secret.replace("%d", "/etc/tollgate/secrets"))
        })
        .collect();
    let unit: BTreeMap<&str, &str> = unit
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(exports, unit);
    let program = value(ADMIN_UNIT, "ExecStart").replace(" serve ", " ");
    assert!(function.contains(&format!("exec {program} \"$@\"")), "{function}");

    let installation = Installation::start();
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    installed(&installation, root);
    fs::create_dir(root.join("etc/secrets")).unwrap();
    fs::copy(
        installation.url_file("operator"),
        root.join("etc/secrets/operator.url"),
    )
    .unwrap();
    fs::write(root.join("etc/secrets/master.key"), harness::TEST_MASTER_KEY).unwrap();
    let settings = root.join("etc/tollgate.toml");
    fs::write(&settings, "[admin]\npublic_url = \"https://gate.example.com\"\n").unwrap();
    let function = placed(function, root).replace("/usr/local/bin/tollgate-admin", ADMIN);
    let operator =
        |line: &str| run(Command::new("bash").args(["-c", &format!("{function}\ntollgate-admin {line}")]));
    operator(
        "account create --name Acme --plan startup --owner-email ann@example.com --owner-password-stdin <<<a-long-password",
    );
    let printed = operator("user reset-password --email ann@example.com");
    assert!(printed.contains("https://gate.example.com/"), "{printed}");
}

fn exec_start_admin(root: &Path) -> String {
    let line = value(ADMIN_UNIT, "ExecStart");
    // The harness adds `serve` itself.
    assert_eq!(
        line,
        "/usr/local/bin/tollgate-admin serve --config /etc/tollgate/tollgate.toml"
    );
    let script = root.join("start-admin");
    let text = format!(
        "#!/bin/bash\nexec '{ADMIN}' \"$@\" --config {}/etc/tollgate.toml\n",
        root.display()
    );
    executable_script(&script, &text)
}

/// The backup's unit names variables of the script, and works with them.
fn backs_up(root: &Path) {
    let mut all = environment(BACKUP_UNIT, root);
    let url = root.join("credentials/backup.url").display().to_string();
    assert!(all.insert("STORE_URL_FILE".to_owned(), url).is_some());
    assert_eq!(
        value(BACKUP_UNIT, "ExecStart"),
        "/usr/local/lib/tollgate/backup.sh"
    );
    let script = text("deploy/backup/backup.sh");
    for name in all.keys() {
        assert!(script.contains(&format!("#   {name} ")), "{name}");
    }
    let printed = run(Command::new(path("deploy/backup/backup.sh")).envs(all));
    assert!(
        printed.contains(&format!("{}/state/backups/20", root.display())),
        "{printed}"
    );
}

#[test]
fn the_documents_name_these_units() {
    for name in [
        "docs/guides/runbook.md",
        "docs/guides/upgrading.md",
        "docs/guides/deployment.md",
    ] {
        let text = text(name);
        for (at, _) in text.match_indices("tollgate-proxy") {
            // `-u NAME`, `status NAME`, `start NAME`, `stop NAME`, `reload NAME`, also in quotes.
            let before = text[..at].trim_end_matches('\'');
            let is_unit = ["-u ", "status ", "start ", "stop ", "reload "]
                .iter()
                .any(|word| before.ends_with(word));
            let after = &text[at + "tollgate-proxy".len()..];
            assert!(
                !is_unit || after.starts_with('@'),
                "{name}: {}",
                &text[at - 20..at + 20]
            );
        }
        for gone in ["TOLLGATE_START", "-u \"$TOLLGATE_STORE__URL\"", "preStop` sleep"] {
            assert!(!text.contains(gone), "{name}: {gone}");
        }
    }
}

#[test]
fn their_settings_are_accepted_and_leave_time_to_end() {
    let nowhere = Path::new("/x");
    for (unit, least) in [(EDGE_UNIT, None), (ADMIN_UNIT, Some(ADMIN_STOP_SECONDS))] {
        let settings = accepted(&environment(unit, nowhere));
        let least = least.unwrap_or(settings.proxy.drain_ms / 1000 + 5);
        let stop: u64 = value(unit, "TimeoutStopSec").parse().unwrap();
        assert!(stop >= least, "{unit}: {stop}");
        // Everything that is written is below the state directory.
        let state = value(unit, "StateDirectory");
        assert!(
            state.split(' ').all(|name| name.starts_with("tollgate")),
            "{state}"
        );
    }
    // Every start can take over the sockets.
    assert!(value(EDGE_UNIT, "ExecStart").ends_with(" --upgrade"));
    assert_eq!(value(EDGE_UNIT, "RestartPreventExitStatus"), "1 2 4");
    run(Command::new("bash")
        .arg("-n")
        .arg(path("deploy/systemd/upgrade.sh")));
}

/// The lines of the edge's unit that turn TLS on, without the comments' marks.
fn tls_lines(start: &str) -> Vec<String> {
    let unit = text(EDGE_UNIT);
    let lines = unit.lines().filter_map(|line| line.strip_prefix("# "));
    lines
        .filter_map(|line| line.strip_prefix(start))
        .map(str::to_owned)
        .collect()
}

#[test]
fn its_lines_for_tls_show_the_edge_alone_what_they_name() {
    let credentials = tls_lines("LoadCredential=");
    let names: Vec<&str> = credentials
        .iter()
        .map(|one| one.split_once(":/etc/tollgate/secrets/").unwrap().0)
        .collect();
    assert_eq!(names, ["tls.crt", "tls.key"]);
    let mut all = environment(EDGE_UNIT, Path::new("/x"));
    for pair in tls_lines("Environment=") {
        let (name, value) = pair.split_once('=').unwrap();
        assert!(names.contains(&value.strip_prefix("%d/").unwrap()), "{pair}");
        all.insert(name.to_owned(), placed(value, Path::new("/x")));
    }
    let proxy = accepted(&all).proxy;
    assert_eq!(proxy.tls_cert, Path::new("/x/credentials/tls.crt"));
    assert_eq!(proxy.tls_key, Path::new("/x/credentials/tls.key"));
}

/// Only the service can read its credentials, so `tollgate-admin health` of root would not start with all its settings.
#[test]
fn an_upgrade_asks_for_health_with_the_addresses_of_the_new_process_alone() {
    let script = text("deploy/systemd/upgrade.sh");
    let start = script.find("healthy() {").unwrap();
    let function = &script[start..start + script[start..].find("\n}\n").unwrap() + 3];
    let health = "/usr/local/bin/tollgate-admin health edge --config /etc/tollgate/tollgate.toml";
    assert!(function.contains(health), "{function}");
    let function = function.replace(health, "/usr/bin/env");
    let printed = run(Command::new("bash")
        .arg("-c")
        .arg(format!("systemctl() {{ echo $$; }}\nnew=b\n{function}healthy"))
        .env("TOLLGATE_PROXY__LISTEN", "0.0.0.0:443")
        .env("TOLLGATE_PROXY__OPS_LISTEN", "10.0.0.7:9090")
        .env("TOLLGATE_PROXY__TLS_CERT", "/etc/tollgate/tls.crt")
        .env(
            "TOLLGATE_PROXY__TLS_KEY",
            "/run/credentials/tollgate-proxy@b.service/tls.key",
        )
        .env(
            "TOLLGATE_STORE__URL_FILE",
            "/run/credentials/tollgate-proxy@b.service/store.url",
        ));
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "TOLLGATE_PROXY__LISTEN=0.0.0.0:443",
            "TOLLGATE_PROXY__OPS_LISTEN=10.0.0.7:9090"
        ]
    );
}
