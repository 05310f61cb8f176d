//! Documents quote the bench's figures as `benches/results/latest.json` has them.

use crate::files::text;
use serde_json::Value;

/// The sections of the results.
struct Results(Value);

impl Results {
    fn read() -> Self {
        Self(serde_json::from_str(&text("benches/results/latest.json")).unwrap())
    }

    fn section(&self, name: &str) -> &Value {
        let sections = self.0["sections"].as_array().unwrap();
        let section = sections.iter().find(|section| section["section"] == name);
        &section.unwrap_or_else(|| panic!("no section {name}"))["found"][name]
    }

    fn target(&self, what: &str) -> f64 {
        named(&self.0["verdicts"], "what", what)["found"]
            .as_f64()
            .unwrap()
    }

    /// Microseconds of CPU time under full load.
    fn full_load(&self, contender: &str, of: &str) -> f64 {
        number(&named(self.section("full_load"), "name", contender)[of])
    }

    /// The lowest and the highest of the denials whose key the store has to be asked about.
    fn denied(&self, of: &str) -> [String; 2] {
        let denials = ["day", "freeze", "rate", "revocation"];
        let denials = denials.map(|name| self.full_load(&format!("denied_by_{name}"), of));
        let lowest = denials.into_iter().fold(f64::INFINITY, f64::min);
        [whole(lowest), whole(denials.into_iter().fold(0.0, f64::max))]
    }

    /// Milliseconds that the edge adds to the pass-through, over this many connections.
    fn added(&self, connections: u64, quantile: &str) -> f64 {
        let groups = self.section("latency").as_array().unwrap();
        let group = groups.iter().find(|group| group["connections"] == connections);
        let at = |name: &str| number(&named(&group.unwrap()["rows"], "name", name)["latency"][quantile]);
        (at("tollgate") - at("pass_through")) / 1000.0
    }

    /// Requests a second with a 99th percentile within 5 ms of the provider's, in whole hundreds.
    fn frontier(&self) -> String {
        let curve = named(&self.section("frontier")["curves"], "name", "tollgate");
        let highest = curve["highest"].as_array().unwrap();
        let highest = highest.iter().find(|highest| highest["bound_ms"] == 5.0).unwrap();
        let hundreds = (number(&highest["rate"]) / 100.0).floor() as u64;
        format!("{},{}00", hundreds / 10, hundreds % 10)
    }

    /// Megabytes of the edge.
    fn memory(&self, of: &str) -> String {
        let edge = named(self.section("memory"), "name", "tollgate");
        whole(number(&edge[of]) * 1024.0 / 1e6)
    }

    /// Milliseconds at the median and the 99th percentile of a calm account.
    fn neighbour(&self, row: usize) -> [String; 2] {
        let rows = self.section("hot_account").as_array().unwrap();
        let calm = rows
            .iter()
            .filter(|row| row["row"]["rate"].as_f64().unwrap() <= 101.0);
        let latency = &calm.collect::<Vec<_>>()[row]["row"]["latency"];
        ["p50_us", "p99_us"].map(|of| format!("{:.1}", number(&latency[of]) / 1000.0))
    }
}

#[track_caller]
fn named<'a>(rows: &'a Value, by: &str, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row[by] == name);
    found.unwrap_or_else(|| panic!("no row {name}"))
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn whole(figure: f64) -> String {
    format!("{figure:.0}")
}

fn hundredths(figure: f64) -> String {
    format!("{figure:.2}")
}

/// Asserts that a document has this sentence, wherever its lines break.
#[track_caller]
fn quotes(document: &str, sentence: &str) {
    let words: Vec<String> = text(document).split_whitespace().map(str::to_owned).collect();
    let is_there = words.join(" ").contains(sentence);
    assert!(is_there, "{document} says something else than: {sentence}");
}

#[test]
fn documents_quote_the_bench_as_it_was_measured() {
    let results = Results::read();
    let edge = results.full_load("tollgate", "edge_us");
    let store = whole(results.full_load("tollgate", "store_us"));
    let over_pass_through = hundredths(results.target("edge CPU a request over the pass-through"));
    let over_nginx = results.target("edge CPU a request over nginx");
    quotes(
        "README.md",
        &format!(
            "{} µs of edge CPU ({over_pass_through} × a bare Pingora pass-through) and {store} µs of store CPU a call",
            whole(edge)
        ),
    );
    let compare = "docs/explanation/compare.md";
    quotes(
        compare,
        &format!(
            "{edge:.1} µs of edge CPU a call, {over_pass_through} × a bare Pingora pass-through and {over_nginx:.1} × \
             nginx in the same run; {:.1} µs of store CPU",
            results.full_load("tollgate", "store_us")
        ),
    );
    quotes(
        compare,
        &format!(
            "at 1,000 req/s over 16 connections, p50 {} ms and p99 {} ms. p99 within 5 ms of the provider's up to {} \
             req/s",
            hundredths(results.added(16, "p50_us")),
            hundredths(results.added(16, "p99_us")),
            results.frontier()
        ),
    );
    let sizing = "docs/guides/sizing.md";
    quotes(
        sizing,
        &format!("| edge, 1 KB request, everything on | {} µs", whole(edge)),
    );
    let [lowest, highest] = results.denied("edge_us");
    quotes(
        sizing,
        &format!("| edge, a denied call | {lowest} to {highest} µs"),
    );
    let without_file = whole(results.full_load("tollgate_memory", "store_us"));
    quotes(
        sizing,
        &format!("append-only file on) | {store} µs, without that file {without_file} |"),
    );
    let [lowest, highest] = results.denied("store_us");
    quotes(
        sizing,
        &format!("| store, a denied call | {lowest} to {highest} µs"),
    );
    let [idle, loaded, large, after] =
        ["idle_kib", "loaded_kib", "large_kib", "large_recovered_kib"].map(|of| results.memory(of));
    quotes(
        sizing,
        &format!("| {idle} MB; {loaded} MB; {large} MB, and {after} MB ten seconds later"),
    );
    for (row, who) in [
        "alone",
        "while 64 agents of one account fill the store",
        "while one agent does",
    ]
    .into_iter()
    .enumerate()
    {
        let [p50, p99] = results.neighbour(row);
        quotes(
            "docs/guides/scale-out.md",
            &format!("| {who} | {p50} ms | {p99} ms |"),
        );
    }
}
