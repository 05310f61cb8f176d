//! The Dockerfile, read line by line; and the image that it describes, put together without a container engine: the
//! programs run in a root file system that holds nothing but them and the base image's libraries, as a user who can
//! write one folder.

use crate::files::{all_below, path, run, text};
use crate::installation::{Installation, Tenant, archive, body};
use crate::settings::accepted;
use crate::{ADMIN, PROXY};
use harness::{Admin, AdminOptions, Edge, EdgeOptions, executable_script};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "deploy/docker/Dockerfile";
/// The user of the base image.
const USER: &str = "65532:65532";
/// C libraries of the base image distroless/cc, and the kernel's own object.
const LIBRARIES: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
    "linux-vdso.so.1",
];

/// The instructions: comments out, continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = text(FILE);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim().is_empty());
    let split = lines.map(|line| line.trim().split_once(' ').unwrap());
    split
        .map(|(word, rest)| {
            (
                word.to_owned(),
                rest.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        })
        .collect()
}

/// The instructions of the last stage, the image itself.
fn image() -> Vec<(String, String)> {
    let all = instructions();
    let last = all.iter().rposition(|(word, _)| word == "FROM").unwrap();
    all[last..].to_vec()
}

/// User of the image's processes and files.
pub fn user() -> &'static str {
    USER
}

/// Environment variables of the image.
pub fn environment() -> BTreeMap<String, String> {
    let sets = image().into_iter().filter(|(word, _)| word == "ENV");
    let pairs = sets.flat_map(|(_, rest)| rest.split(' ').map(str::to_owned).collect::<Vec<_>>());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Asserts that a command of one of the programs reads the configuration file that the image has. Without `--config` a
/// program reads `config/tollgate.toml` below its working directory, where the image has none.
#[track_caller]
pub fn has_configuration(words: &[&str]) {
    let at = words.iter().position(|word| *word == "--config");
    let file = at.and_then(|at| words.get(at + 1));
    assert_eq!(file, Some(&"/etc/tollgate/tollgate.toml"), "{words:?}");
}

/// The words of an instruction in the form of a list.
fn listed(words: &str) -> Vec<String> {
    serde_json::from_str(words).unwrap()
}

fn only<'a>(image: &'a [(String, String)], word: &str) -> &'a str {
    let found: Vec<&str> = image
        .iter()
        .filter(|(name, _)| name == word)
        .map(|(_, rest)| rest.as_str())
        .collect();
    assert_eq!(found.len(), 1, "{word}: {found:?}");
    found[0]
}

#[test]
fn the_image_is_minimal_and_not_of_root() {
    let image = image();
    assert_eq!(only(&image, "FROM"), "${RUN_IMAGE}");
    assert_eq!(only(&image, "USER"), USER);
    assert_eq!(only(&image, "STOPSIGNAL"), "SIGTERM");
    // Without a shell there is nothing that could run, and only the form of a list works.
    assert!(image.iter().all(|(word, _)| word != "RUN" && word != "ADD"));
    let command = listed(only(&image, "CMD"));
    assert_eq!(command[0], "/usr/local/bin/tollgate-proxy");
    let check = only(&image, "HEALTHCHECK").split_once("CMD ").unwrap().1;
    let check = listed(check);
    assert_eq!(check[..3], ["/usr/local/bin/tollgate-admin", "health", "edge"]);
    for words in [&command, &check] {
        has_configuration(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(only(&image, "EXPOSE"), "8080 8081 9090 9091");

    // Base images are named by version; the compiler is the oldest that the code is promised to build with.
    let all = instructions();
    let arguments: Vec<&str> = all
        .iter()
        .filter(|(word, _)| word == "ARG")
        .map(|(_, rest)| rest.as_str())
        .collect();
    let manifest = text("Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap();
    let compiler = format!(
        "RUST_IMAGE=docker.io/library/rust:{}-slim-bookworm",
        version.trim_matches('"')
    );
    assert_eq!(
        arguments,
        [
            compiler.as_str(),
            "RUN_IMAGE=gcr.io/distroless/cc-debian12:nonroot",
            "TOLLGATE_COMMIT=unknown",
        ]
    );
}

/// Files of the repository that the builder receives.
fn copied() -> Vec<String> {
    let all = instructions();
    let copies = all
        .iter()
        .filter(|(word, rest)| word == "COPY" && !rest.starts_with("--from"));
    let mut sources = Vec::new();
    for (_, rest) in copies {
        let words: Vec<&str> = rest.split(' ').collect();
        let (target, from) = words.split_last().unwrap();
        // A path has the same place in the builder, where `include_str!` finds it.
        assert!(*target == "./" || from == [*target], "{rest}");
        sources.extend(from.iter().map(|word| (*word).to_owned()));
    }
    sources
}

/// The files that a source compiles in, by their paths in the repository: the first literal of each `include_…!`. In a
/// `concat!` that is the folder.
fn included(source: &str) -> Vec<String> {
    let text = text(source);
    let mut found = Vec::new();
    for word in ["include_str!(", "include_bytes!("] {
        let calls = text.split(word).skip(1);
        let literals = calls.filter_map(|rest| rest.split('"').nth(1));
        found.extend(literals.map(|literal| {
            let mut place: Vec<&str> = source.split('/').collect();
            place.pop();
            for step in literal.split('/').filter(|step| !step.is_empty()) {
                match step {
                    ".." => drop(place.pop().unwrap()),
                    "." => {}
                    step => place.push(step),
                }
            }
            place.join("/")
        }));
    }
    found
}

#[test]
fn compiled_in_files_reach_the_builder() {
    let sources = copied();
    let is_copied = |file: &str| {
        let below = |source: &String| file == source || file.starts_with(&format!("{source}/"));
        sources.iter().any(below)
    };
    let code = ["shared", "proxy/src", "admin"].map(all_below).concat();
    // The image is built without tests.
    let is_test = |file: &String| file.ends_with("/tests.rs") || file.contains("/tests/");
    let mut count = 0;
    for file in code.iter().filter(|file| file.ends_with(".rs") && !is_test(file)) {
        for inside in included(file) {
            assert!(path(&inside).exists(), "{file}: {inside} is not there");
            assert!(
                is_copied(&inside),
                "{file}: {inside} is not copied into the builder"
            );
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
    assert!(
        is_copied("docs/reference/openapi/edge.json") && !is_copied("docs/reference/openapi/management.json")
    );
}

#[test]
fn files_of_the_build_exist() {
    let ignored = text(".dockerignore");
    let kept: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let all = instructions();
    let sources = copied();
    for source in &sources {
        assert!(
            path(source).exists() && kept.contains(&source.as_str()),
            "{source}"
        );
    }
    assert_eq!(sources.len(), kept.len(), "{sources:?} {kept:?}");
    // Cargo reads the manifest of every member.
    let manifest = text("Cargo.toml");
    let members = manifest
        .lines()
        .find_map(|line| line.strip_prefix("members = ["))
        .unwrap();
    for member in members
        .trim_end_matches(']')
        .split(", ")
        .map(|member| member.trim_matches('"'))
    {
        assert!(
            sources
                .iter()
                .any(|source| member == source || member.starts_with(&format!("{source}/"))),
            "{member}"
        );
    }
    let builds: Vec<&String> = all
        .iter()
        .filter(|(word, _)| word == "RUN")
        .map(|(_, rest)| rest)
        .collect();
    let cargo = builds.iter().find(|line| line.starts_with("cargo ")).unwrap();
    assert_eq!(
        cargo.as_str(),
        "cargo build --profile dist --locked --bins --package tollgate"
    );
    assert!(manifest.contains("[profile.dist]"));
    let install = builds.last().unwrap();
    for file in ["config/tollgate.toml", "config/plans.toml", "config/prices.toml"] {
        assert!(install.contains(file) && path(file).exists());
    }
    // The image installs the packages that `packages.sh` installs for a build.
    let packages = text("deploy/local/packages.sh");
    for package in ["build-essential", "cmake", "pkg-config", "curl"] {
        assert!(
            packages.contains(package) && builds[0].contains(package),
            "{package}"
        );
    }
}

#[test]
fn its_settings_are_accepted() {
    let settings = accepted(&environment());
    assert_eq!(settings.proxy.listen.to_string(), "0.0.0.0:8080");
    assert_eq!(settings.admin.ops_listen.to_string(), "0.0.0.0:9091");
    assert!(settings.proxy.data_dir.starts_with("/var/lib/tollgate"));
}

/// The libraries that a program is linked with.
fn libraries(program: &str) -> Vec<(String, Option<PathBuf>)> {
    let linked = run(Command::new("ldd").arg(program));
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let file = line
            .split_whitespace()
            .find(|word| word.starts_with('/'))
            .map(PathBuf::from);
        (name.rsplit('/').next().unwrap().to_owned(), file)
    };
    linked.lines().map(line).collect()
}

/// A root file system: the programs, the libraries they need, and a folder that the user may write to.
fn file_system(root: &Path) {
    let programs = [(PROXY, "tollgate-proxy"), (ADMIN, "tollgate-admin")];
    let bin = root.join("usr/local/bin");
    fs::create_dir_all(&bin).unwrap();
    for (program, name) in programs {
        fs::copy(program, bin.join(name)).unwrap();
        for (library, file) in libraries(program) {
            assert!(
                LIBRARIES.contains(&library.as_str()),
                "{program} needs {library}, which the image lacks"
            );
            let Some(file) = file else { continue };
            let inside = root.join(file.strip_prefix("/").unwrap());
            fs::create_dir_all(inside.parent().unwrap()).unwrap();
            fs::copy(file, inside).unwrap();
        }
    }
    let tables = root.join("etc/tollgate");
    fs::create_dir_all(&tables).unwrap();
    for table in ["tollgate.toml", "plans.toml", "prices.toml"] {
        fs::copy(path("config").join(table), tables.join(table)).unwrap();
    }
    let data = root.join("var/lib/tollgate");
    fs::create_dir_all(&data).unwrap();
    run(Command::new("chmod").args(["-R", "a+rX,go-w"]).arg(root));
    if is_root() {
        run(Command::new("chown").arg(USER).arg(&data));
    }
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).trim() == "0"
}

/// A script that runs a program of the image in `root`: under `chroot` if the test runs as root, and directly
/// otherwise.
fn within(root: &Path, name: &str) -> String {
    let script = root.parent().unwrap().join(format!("run-{name}"));
    let line = match is_root() {
        true => format!(
            "exec chroot --userspec={USER} '{}' /usr/local/bin/{name} \"$@\" --config /etc/tollgate/tollgate.toml",
            root.display()
        ),
        false => format!(
            "exec '{root}/usr/local/bin/{name}' \"$@\" --config '{root}/etc/tollgate/tollgate.toml'",
            root = root.display()
        ),
    };
    executable_script(&script, &format!("#!/bin/sh\n{line}\n"))
}

/// Every file below `root` that is not in the data directory, with its size.
fn fixed(root: &Path) -> Vec<String> {
    let files = run(Command::new("find").arg(root).args([
        "-path",
        "*/var/lib/tollgate",
        "-prune",
        "-o",
        "-printf",
        "%P %s %T@\n",
    ]));
    files.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_programs_run_in_what_the_image_holds() {
    let installation = Installation::start();
    let room = tempfile::tempdir().unwrap();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let root = room.path().join("root");
    file_system(&root);
    let before = fixed(&root);
    // Paths as the processes see them.
    let inside = if is_root() {
        String::new()
    } else {
        root.display().to_string()
    };
    let data = format!("{inside}/var/lib/tollgate");
    let secrets = root.join("var/lib/tollgate");
    for name in ["edge", "admin"] {
        fs::copy(installation.url_file(name), secrets.join(format!("{name}.url"))).unwrap();
        run(Command::new("chmod")
            .arg("0644")
            .arg(secrets.join(format!("{name}.url"))));
    }
    let tables = |name: &str| format!("{inside}/etc/tollgate/{name}.toml");
    let edge = EdgeOptions::new(
        &within(&root, "tollgate-proxy"),
        "redis://127.0.0.1:1",
        installation.upstream.base_url(),
    )
    .env("TOLLGATE_STORE__URL_FILE", format!("{data}/edge.url"))
    .env("TOLLGATE_PLANS__FILE", tables("plans"))
    .env("TOLLGATE_PRICES__FILE", tables("prices"))
    .env("TOLLGATE_PROXY__DATA_DIR", format!("{data}/proxy"))
    .env(
        "TOLLGATE_PROXY__UPGRADE_SOCKET",
        format!("{data}/proxy/upgrade.sock"),
    );
    let edge = Edge::start(edge);
    let admin = AdminOptions::new(&within(&root, "tollgate-admin"), "redis://127.0.0.1:1")
        .env("TOLLGATE_STORE__URL_FILE", format!("{data}/admin.url"))
        .env("TOLLGATE_PLANS__FILE", tables("plans"))
        .env("TOLLGATE_PRICES__FILE", tables("prices"))
        .env("TOLLGATE_AUDIT__ARCHIVE", format!("{data}/archive"))
        .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "200");
    let admin = Admin::start(admin);
    let tenant: Tenant = installation.settle(&edge, &admin).await;
    assert_eq!(tenant.caller.chat(body()).await.status, 200);
    // The checkpoint is the first file that the admin server writes.
    let written = root.join("var/lib/tollgate/archive/checkpoints");
    harness::until("a checkpoint", async || written.is_dir()).await;
    if is_root() {
        for server in [edge.pid(), admin.pid()] {
            let status = fs::read_to_string(format!("/proc/{server}/status")).unwrap();
            assert!(status.contains("Uid:\t65532\t65532\t65532\t65532"), "{status}");
        }
    }
    assert_eq!(
        fixed(&root),
        before,
        "something was written outside of the data directory"
    );
    assert!(!Path::new(&archive(installation.dir.path())).exists());
}
