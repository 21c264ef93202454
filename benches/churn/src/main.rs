//! Rust's collections under one global allocator, measured as the C drivers measure malloc.
//!
//! Started as `churn CPU CHUNKS 0 0 ROW...` by the bench; the last word of a row's name is one of
//! [`rows::ROWS`].  Prints the lines that `drivers/frame.h` prints.

mod allocator;
mod rows;

use rows::{Churn, ROWS, Run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The constants of `drivers/frame.h`.
const CHUNK: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_micros(120);
const FEWEST_CHUNKS: u32 = 15;
/// Operations come in multiples of this.
const UNIT: usize = 64;

fn timed(run: Run, churn: &mut Churn, operations: usize) -> Duration {
    let start = Instant::now();
    run(churn, operations);
    start.elapsed()
}

/// Doubles the operations of a chunk until the best of three takes long enough.
fn chunk_operations(run: Run, churn: &mut Churn) -> usize {
    let mut operations = UNIT;
    loop {
        run(churn, operations);
        let best = (0..3).map(|_| timed(run, churn, operations)).min();
        if best >= Some(CHUNK) {
            return operations;
        }
        operations *= 2;
    }
}

fn measure(name: &str, run: Run, chunks: u32) {
    let mut churn = Churn::default();
    let operations = chunk_operations(run, &mut churn);
    let mut values = Vec::with_capacity(chunks as usize);
    let began = Instant::now();
    for chunk in 0..chunks {
        if chunk >= FEWEST_CHUNKS && began.elapsed() > LONGEST * chunks {
            break;
        }
        let took = timed(run, &mut churn, operations);
        values.push(took.as_nanos() as f64 / operations as f64);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.sort_by(f64::total_cmp);
    let (min, p25) = (values[0], values[values.len() / 4]);
    println!(r#"{{"row":"{name}","min":{min:.4},"p25":{p25:.4},"mean":{mean:.4}}}"#);
}

/// Pins to `cpu`, or to the highest allowed CPU when below 0.
fn pin(cpu: i64) -> Option<usize> {
    // SAFETY: all zeros is an empty cpu_set_t, and each call gets one of its size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
            return None;
        }
        let highest =
            || (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed));
        let cpu = usize::try_from(cpu).ok().or_else(highest)?;
        let mut mine: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut mine);
        (libc::sched_setaffinity(0, size, &raw const mine) == 0).then_some(cpu)
    }
}

fn involuntary() -> i64 {
    // SAFETY: getrusage fills a struct that all zeros is a valid value of.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, cpu, chunks, _, _, names @ ..] = arguments.as_slice() else {
        eprintln!("churn: usage: churn CPU CHUNKS 0 0 ROW... (started by `bench`)");
        return ExitCode::from(2);
    };
    let (Ok(cpu), Ok(chunks)) = (cpu.parse(), chunks.parse()) else {
        eprintln!("churn: CPU and CHUNKS are numbers");
        return ExitCode::from(2);
    };
    let Some(cpu) = pin(cpu) else {
        eprintln!("churn: cannot run on that CPU: choose an allowed one with --cpu");
        return ExitCode::from(2);
    };
    for name in names {
        let Some((_, run)) = ROWS.iter().find(|row| name.split(' ').next_back() == Some(row.0))
        else {
            eprintln!("churn: no row {name}");
            return ExitCode::from(2);
        };
        measure(name, *run, chunks);
    }
    println!(
        r#"{{"malloc":"{}","cpu":{cpu},"involuntary":{},"drains":0,"refused":0}}"#,
        allocator::NAME,
        involuntary()
    );
    ExitCode::SUCCESS
}
