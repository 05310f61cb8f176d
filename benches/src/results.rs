//! Results by section, stored as JSON beside the tables. A run of some sections replaces those in the file and keeps
//! the others, each with the time and the commit of its measurement.

use crate::row::Row;
use crate::section::Section;
use crate::sections::bodies::Body;
use crate::sections::edges::EdgeScaling;
use crate::sections::floods::FloodResult;
use crate::sections::frontier::Frontier;
use crate::sections::hot_account::HotLoad;
use crate::sections::instructions::CallInstructions;
use crate::sections::latency::Paced;
use crate::sections::memory::MemoryUse;
use crate::sections::protocols::ProtocolPair;
use crate::sections::streams::StreamLoad;
use gate_bench::facts::PROCESSOR;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;

/// Version of the file format. Files of another version are ignored.
const FORM: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Found {
    /// 64 connections in a closed loop.
    FullLoad(Vec<Row>),
    /// The highest rates within bounds of latency.
    Frontier(Frontier),
    /// Fixed rates.
    Latency(Vec<Paced>),
    /// Sizes of the request.
    Bodies(Vec<Body>),
    /// Versions of HTTP, and TLS.
    Protocols(Vec<ProtocolPair>),
    /// Instructions of a call.
    Instructions(Vec<CallInstructions>),
    Memory(Vec<MemoryUse>),
    /// Several edges on one store.
    Edges(Vec<EdgeScaling>),
    HotAccount(Vec<HotLoad>),
    Streams(Vec<StreamLoad>),
    /// Attacks beside a well-behaved caller.
    Floods(Vec<FloodResult>),
    /// No result: the errors of the section say why.
    Nothing,
}

/// Result of one section, with its circumstances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) section: Section,
    /// Time of its start.
    pub(crate) at: String,
    /// Commit that was measured.
    pub(crate) commit: String,
    /// Lengths of the phases, as a sentence.
    pub(crate) lengths: String,
    /// Load average when it began.
    pub(crate) load_average: String,
    pub(crate) took_seconds: f64,
    /// Approved calls that were compared with the ledgers.
    pub(crate) calls_checked: u64,
    /// Errors; empty in a good run.
    pub(crate) errors: Vec<String>,
    pub(crate) found: Found,
}

/// The results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    form: u32,
    /// A sentence for the head of the report.
    #[serde(default)]
    pub(crate) note: String,
    /// Facts of the machine: names and values.
    pub(crate) machine: Vec<(String, String)>,
    /// In the order of [`Section::ALL`].
    pub(crate) sections: Vec<Measured>,
}

/// The results file as it is written. Verdicts are not read again, since the targets may have changed.
#[derive(Serialize)]
struct Written<'a, V> {
    #[serde(flatten)]
    results: &'a Results,
    /// The targets, and whether the sections meet them.
    verdicts: &'a [V],
}

impl Results {
    /// Returns empty results of this machine.
    pub(crate) const fn new(machine: Vec<(String, String)>) -> Self {
        Self {
            form: FORM,
            note: String::new(),
            machine,
            sections: Vec::new(),
        }
    }

    /// Returns the number of cores of the machine, 0 if it is unknown.
    pub(crate) fn cores(&self) -> usize {
        let mut facts = self.machine.iter();
        let processor = facts.find(|(name, _)| name == PROCESSOR);
        processor
            .and_then(|(_, value)| value.strip_suffix(" cores")?.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0)
    }

    /// Adds a line about the machine.
    pub(crate) fn add_fact(&mut self, name: &str, value: &str) {
        self.machine.push((name.to_owned(), value.to_owned()));
    }

    /// Takes over the sections of an earlier run from `file`, except those of `replaced`. Ignores a file that cannot be
    /// read, and one of another machine or other versions: the head of the report must hold for every table.
    pub(crate) fn keep_others(&mut self, file: &Path, replaced: &[Section]) {
        let earlier = std::fs::read(file).ok();
        let earlier = earlier.and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        for measured in earlier
            .filter(|earlier| earlier.form == FORM && earlier.machine == self.machine)
            .into_iter()
            .flat_map(|earlier| earlier.sections)
            .filter(|measured| !replaced.contains(&measured.section))
        {
            self.put(measured);
        }
    }

    /// Adds a section, or replaces it.
    pub(crate) fn put(&mut self, measured: Measured) {
        self.sections.retain(|other| other.section != measured.section);
        self.sections.push(measured);
        self.sections.sort_by_key(|measured| measured.section);
    }

    /// Writes the results file, with these verdicts on the targets.
    pub(crate) fn write(&self, file: &Path, verdicts: &[impl Serialize]) -> Result<(), Box<dyn Error>> {
        let mut text = serde_json::to_string_pretty(&Written {
            results: self,
            verdicts,
        })?;
        text.push('\n');
        Ok(std::fs::write(file, text)?)
    }

    pub(crate) fn found(&self, section: Section) -> Option<&Found> {
        let mut sections = self.sections.iter();
        Some(&sections.find(|measured| measured.section == section)?.found)
    }

    /// The rows of the closed loop; empty when it was not measured.
    pub(crate) fn full_load(&self) -> &[Row] {
        match self.found(Section::FullLoad) {
            Some(Found::FullLoad(rows)) => rows,
            _ => &[],
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn measured(section: Section, at: &str, found: Found) -> Measured {
        Measured {
            section,
            at: at.to_owned(),
            commit: "c0ffee".to_owned(),
            lengths: "3 rounds of 5 s".to_owned(),
            load_average: "0.10 0.20 0.30".to_owned(),
            took_seconds: 12.0,
            calls_checked: 7,
            errors: Vec::new(),
            found,
        }
    }

    #[test]
    fn a_run_of_one_section_leaves_the_others_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("latest.json");
        let mut first = Results::new(vec![("Kernel".to_owned(), "Linux".to_owned())]);
        first.put(measured(Section::Memory, "then", Found::Memory(Vec::new())));
        first.put(measured(Section::FullLoad, "then", Found::FullLoad(Vec::new())));
        assert_eq!(first.sections[0].section, Section::FullLoad, "in their order");
        first.write(&file, &[0]).unwrap();

        let mut elsewhere = Results::new(vec![("Kernel".to_owned(), "another".to_owned())]);
        elsewhere.keep_others(&file, &[]);
        assert_eq!(elsewhere.sections, [], "measured on another machine");

        let mut second = Results::new(first.machine.clone());
        second.keep_others(&file, &[Section::FullLoad]);
        second.put(measured(Section::FullLoad, "now", Found::FullLoad(Vec::new())));
        let times: Vec<_> = second
            .sections
            .iter()
            .map(|section| section.at.as_str())
            .collect();
        assert_eq!(times, ["now", "then"]);

        std::fs::write(&file, "{}").unwrap();
        let mut third = Results::new(Vec::new());
        third.keep_others(&file, &[]);
        assert_eq!(third.sections, [], "what is no result is not kept");
        assert_eq!(third.full_load(), []);
    }
}
