//! The disassembly and the exported symbols of a built library, from binutils' objdump.

use crate::error::{Error, Result};
use crate::hitpath::{Disassembly, HitPath, Processor};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// A built library, taken apart.
#[derive(Debug)]
pub struct Library {
    code: Disassembly,
    exports: HashMap<String, u64>,
}

impl Library {
    /// Takes `path` apart.
    ///
    /// # Errors
    /// When it is missing or for another processor than x86-64 and aarch64, or objdump is missing.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(Error::NoLibrary(path.to_path_buf()));
        }
        let symbols = objdump("objdump", &["-T", "-w"], path)?;
        let is_of = |format: &str| symbols.contains(&format!("file format {format}\n"));
        let (processor, tool, syntax) = if is_of("elf64-x86-64") {
            (Processor::X86, "objdump", "intel")
        } else if is_of("elf64-little") || is_of("elf64-littleaarch64") {
            (Processor::Arm, "aarch64-linux-gnu-objdump", "no-aliases")
        } else {
            let why = format!("{} is neither for x86-64 nor for aarch64", path.display());
            return Err(Error::HitPath(why));
        };
        let text = objdump(tool, &["-d", "-w", "--no-show-raw-insn", "-M", syntax], path)?;
        Ok(Self { code: Disassembly::parse(&text, processor), exports: parse_exports(&symbols) })
    }

    /// The hit path of an exported symbol; none when it is not exported.
    ///
    /// # Errors
    /// When the path cannot be followed to a return.
    pub fn hit_path(&self, symbol: &str) -> Result<Option<HitPath>> {
        let follow = |&start: &u64| self.code.follow(symbol, start);
        self.exports.get(symbol).map(follow).transpose()
    }
}

fn objdump(tool: &'static str, options: &[&str], path: &Path) -> Result<String> {
    let failed = |said: String| Error::Tool { tool, said };
    let output = Command::new(tool)
        .args(options)
        .arg(path)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines of `objdump -T`: address, flags, section, size, version and name.
fn parse_exports(text: &str) -> HashMap<String, u64> {
    let export = |line: &str| {
        if line.contains("*UND*") || !line.contains(" DF ") {
            return None;
        }
        let address = u64::from_str_radix(line.split_whitespace().next()?, 16).ok()?;
        Some((line.split_whitespace().next_back()?.to_owned(), address))
    };
    text.lines().filter_map(export).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_functions_are_exports() {
        let text = "
lib.so:     file format elf64-x86-64

DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) mmap
00000000000020dc g    DF .text\t0000000000000055  Base        free
0000000000005bc8 g    DO .bss\t0000000000000008 FALLBACK
";
        assert_eq!(parse_exports(text), HashMap::from([("free".to_owned(), 0x20dc)]));
    }
}
