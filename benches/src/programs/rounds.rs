//! The interleaved rounds: each runs every program once under every contestant.

use super::Installed;
use super::process::Usage;
use crate::contestant::{Contestant, Role};
use crate::error::Result;
use crate::load::{Before, Load};
use crate::rounds::{order, show_round};
use serde::Serialize;

/// One contestant's rounds of one program; empty where it has no place.
#[derive(Debug, Clone, Serialize)]
pub struct Samples {
    /// Who.
    pub name: String,
    /// What it is.
    #[serde(skip)]
    pub role: Role,
    /// Seconds of CPU time of each round.
    pub cpu: Vec<f64>,
    /// MiB resident at most of each round.
    pub peak: Vec<f64>,
}

/// All rounds of one program.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The program.
    pub program: &'static str,
    /// The contestants', in their order.
    pub samples: Vec<Samples>,
}

/// All rounds.
#[derive(Debug)]
pub struct Rounds {
    /// The programs.
    pub programs: Vec<Measured>,
    /// Peers that failed in a program, and how: they have no place in it.
    pub failures: Vec<String>,
    /// What else the machine did.
    pub load: Load,
}

/// One program with the contestants as it needs them; none for a peer that failed.
struct Field<'a> {
    installed: &'a Installed,
    contestants: Vec<Option<Contestant>>,
    measured: Measured,
}

/// Measures `programs` under all `contestants` for `rounds` rounds.
///
/// # Errors
/// When a program fails or gets another malloc, except under a peer.
pub fn measure(programs: &[Installed], contestants: &[Contestant], rounds: u32) -> Result<Rounds> {
    let mut failures = Vec::new();
    let mut fields = Vec::new();
    for installed in programs {
        fields.push(Field::new(installed, contestants, &mut failures)?);
    }
    let (before, mut involuntary) = (Before::now(), 0);
    for round in 0..rounds {
        show_round(round, rounds);
        for field in &mut fields {
            for index in order(round as usize, contestants.len()) {
                involuntary += field.run(index, &mut failures)?;
            }
        }
    }
    let programs = fields.into_iter().map(|field| field.measured).collect();
    Ok(Rounds { programs, failures, load: before.until_now(involuntary) })
}

impl<'a> Field<'a> {
    fn new(
        installed: &'a Installed,
        contestants: &[Contestant],
        failures: &mut Vec<String>,
    ) -> Result<Self> {
        let mut prepared = Vec::new();
        for contestant in contestants {
            let result = installed.prepared(contestant);
            prepared.push(excuse(contestant, result, failures)?);
        }
        let empty = |contestant: &Contestant| Samples {
            name: contestant.name.clone(),
            role: contestant.role,
            cpu: Vec::new(),
            peak: Vec::new(),
        };
        let samples = contestants.iter().map(empty).collect();
        let measured = Measured { program: installed.program.name, samples };
        Ok(Self { installed, contestants: prepared, measured })
    }

    /// One run under one contestant; how often it lost its CPU.
    fn run(&mut self, index: usize, failures: &mut Vec<String>) -> Result<u64> {
        let Some(contestant) = &self.contestants[index] else {
            return Ok(0);
        };
        let samples = &mut self.measured.samples[index];
        match excuse(contestant, self.installed.run(contestant), failures)? {
            Some(Usage { cpu, peak, involuntary, .. }) => {
                samples.cpu.push(cpu);
                samples.peak.push(peak);
                Ok(involuntary)
            }
            None => {
                samples.cpu.clear();
                samples.peak.clear();
                self.contestants[index] = None;
                Ok(0)
            }
        }
    }
}

/// A peer that fails is left out and named; all others end the bench.
fn excuse<T>(
    contestant: &Contestant,
    result: Result<T>,
    failures: &mut Vec<String>,
) -> Result<Option<T>> {
    match result {
        Err(error) if contestant.role == Role::Peer => {
            failures.push(error.to_string());
            Ok(None)
        }
        other => other.map(Some),
    }
}
