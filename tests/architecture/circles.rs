//! No circle of files: a module may use its children, and other modules only in one direction.
//!
//! The paths of product code are read from its text: `use` items and `crate::…`, `super::…` in expressions. Comments
//! and test modules do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names from the crate's root to a module.
type Module = Vec<String>;
type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// Every file of a crate: its module and its product code.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inner = path.strip_prefix(src).unwrap().with_extension("");
                let mut module: Module = inner
                    .iter()
                    .map(|name| name.to_str().unwrap().to_owned())
                    .collect();
                module.retain(|name| !["lib", "main", "mod"].contains(&&**name));
                if module.last().is_none_or(|name| name != "tests") {
                    found.insert(module, product_code(&std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found
}

/// The text without comments and without test code: an item after `#[cfg(test)]`, to its end by indentation.
fn product_code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            let is_end = |line: &str| {
                let own = line.len() - line.trim_start().len();
                own == indent && (line.ends_with('}') || line.ends_with(';') || line.ends_with(','))
            };
            lines.find(|line| is_end(line));
        } else if !line.trim_start().starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The paths of a `use` item: `a::{b, c::{d, e}}` is `a::b`, `a::c::d`, `a::c::e`.
fn expanded(path: &str) -> Vec<String> {
    let Some((prefix, rest)) = path.split_once('{') else {
        let name = path.split(" as ").next().unwrap_or_default();
        return vec![name.split_whitespace().collect()];
    };
    let (group, _) = rest.rsplit_once('}').unwrap();
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(character);
    }
    let inner = parts.iter().filter(|part| !part.trim().is_empty());
    inner
        .flat_map(|part| expanded(part))
        .map(|path| format!("{}{path}", prefix.trim()))
        .collect()
}

/// Every path in the code: of `use` items, and paths that begin with `crate::`, `super::` or a child's name.
fn paths(code: &str, children: &[&str]) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, item) in code.match_indices("use ") {
        let before = code[..at].rsplit('\n').next().unwrap_or_default();
        if ["", "pub", "pub(crate)", "pub(super)"].contains(&before.trim()) {
            let path = code[at + item.len()..].split(';').next().unwrap_or_default();
            paths.extend(expanded(path));
        }
    }
    let is_path = |character: char| character.is_alphanumeric() || "_:".contains(character);
    for root in ["crate", "super"].iter().chain(children) {
        for (at, _) in code.match_indices(&format!("{root}::")) {
            if code[..at].ends_with(is_path) {
                continue;
            }
            let end = code[at..].find(|character| !is_path(character)).unwrap_or(0);
            paths.push(code[at..at + end].to_owned());
        }
    }
    paths
}

/// The module of a path that is used in `from`; `None` for another crate's.
fn target(all: &BTreeMap<Module, String>, from: &Module, path: &str) -> Option<Module> {
    let mut names: Vec<String> = path.split("::").map(str::to_owned).collect();
    let mut module = from.clone();
    match names[0].as_str() {
        "crate" => module.clear(),
        "self" => {}
        "super" => {
            while names.get(1).is_some_and(|name| name == "super") {
                names.remove(0);
                module.pop();
            }
            module.pop();
        }
        child => {
            module.push(child.to_owned());
            if !all.contains_key(&module) {
                return None;
            }
        }
    }
    module.extend(names.into_iter().skip(1));
    while !all.contains_key(&module) {
        module.pop()?;
    }
    Some(module)
}

/// The modules that each module uses, except its parents. With `by_sibling` a use counts for the ancestors that are
/// siblings.
fn uses(all: &BTreeMap<Module, String>, by_sibling: bool) -> Uses {
    let mut uses = Uses::new();
    for (from, code) in all {
        let is_child = |module: &&Module| module.len() == from.len() + 1 && module.starts_with(from);
        let children: Vec<&str> = all
            .keys()
            .filter(is_child)
            .map(|child| child[from.len()].as_str())
            .collect();
        for to in paths(code, &children)
            .iter()
            .filter_map(|path| target(all, from, path))
        {
            if from.starts_with(&to) || (by_sibling && to.starts_with(from)) {
                continue;
            }
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (user, used) = match by_sibling {
                true => (from[..=common].to_vec(), to[..=common].to_vec()),
                false => (from.clone(), to),
            };
            uses.entry(user).or_default().insert(used);
        }
    }
    uses
}

/// The modules that use themselves through other modules.
fn circles(uses: &Uses) -> Vec<String> {
    let leads_back = |module: &&Module| {
        let mut found = BTreeSet::new();
        let mut left: Vec<&Module> = uses.get(*module).into_iter().flatten().collect();
        while let Some(next) = left.pop() {
            if found.insert(next) {
                left.extend(uses.get(next).into_iter().flatten());
            }
        }
        found.contains(*module)
    };
    uses.keys()
        .filter(leads_back)
        .map(|module| module.join("::"))
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of sources of all programs and libraries, those of benches and of the tests' harness too.
fn sources() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["src", "rig/src", "growth", "money", "record"]
        .iter()
        .map(|folder| root().join("benches").join(folder))
        .collect();
    found.extend(["proxy/src", "tests/harness/src"].map(|folder| root().join(folder)));
    for folder in ["shared", "admin"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let src = entry.unwrap().path().join("src");
            if src.is_dir() {
                found.push(src);
            }
        }
    }
    found
}

#[test]
fn no_file_leads_back_to_itself() {
    let mut found = Vec::new();
    for src in sources() {
        let circles = circles(&uses(&modules(&src), false));
        if !circles.is_empty() {
            found.push(format!("{}: {}", src.display(), circles.join(", ")));
        }
    }
    assert!(found.is_empty(), "circles of {found:#?}");
}

/// The modules of the dashboard, by what they import at once or when a page is first shown.
fn dashboard() -> Uses {
    let root = root().join("admin/dashboard/web/js");
    let mut uses = Uses::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let imported = ["from '", "import('", "import '"].iter().flat_map(|before| {
                let files = text.split(before).skip(1);
                files.filter_map(|rest| rest.split('\'').next().filter(|file| file.starts_with('.')))
            });
            let to = imported.map(|file| js_module(&root, &folder.join(file)));
            uses.insert(js_module(&root, &path), to.collect());
        }
    }
    uses
}

/// The names from the folder `root` to a file, which may be written with `.` and `..`.
fn js_module(root: &Path, file: &Path) -> Module {
    let mut names = Module::new();
    for part in file.strip_prefix(root).unwrap().components() {
        match part.as_os_str().to_str().unwrap() {
            "." => {}
            ".." => drop(names.pop()),
            name => names.push(name.to_owned()),
        }
    }
    names
}

#[test]
fn no_file_of_the_dashboard_leads_back_to_itself() {
    let all = dashboard();
    let pages = &all[&vec!["routes.js".to_owned()]];
    assert!(pages.len() > 20 && pages.iter().all(|page| all.contains_key(page)));
    let found = circles(&all);
    assert!(found.is_empty(), "circles of {found:?}");
}

/// A stricter rule for the edge: between two folders, uses go in one direction.
#[test]
fn no_folder_of_the_edge_leads_back_to_itself() {
    let found = circles(&uses(&modules(&root().join("proxy/src")), true));
    assert!(found.is_empty(), "a circle of {found:?}");
}

#[test]
fn a_circle_is_found() {
    let files = [
        ("a", "use crate::b::{c::{self, D as E}, f};"),
        ("b", ""),
        (
            "b::c",
            "use std::fmt;\nfn g() { crate::h::i(); }\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
        ),
        ("h", "//! Not a use of crate::b.\nuse super::a::J;"),
        ("k", "use crate::a;"),
    ];
    let module = |name: &str| name.split("::").map(str::to_owned).collect::<Module>();
    let all: BTreeMap<Module, String> = files
        .into_iter()
        .map(|(name, text)| (module(name), product_code(text)))
        .collect();
    assert_eq!(circles(&uses(&all, false)), ["a", "b::c", "h"]);
    assert_eq!(circles(&uses(&all, true)), ["a", "b", "h"]);
}
