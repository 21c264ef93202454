//! A disassembly (objdump's: x86-64 in Intel syntax, or aarch64), and the straight line a hit takes through it.
//!
//! The line starts at a symbol and ends at `ret`. A conditional jump is not taken: the hit paths
//! are laid out so that every branch leaves for the slow path. A plain jump is followed, so an
//! entry that tail-jumps to another counts that one's path too, and one whose hit is the *taken*
//! side of a branch runs into the slow path, where calls give it away.

use crate::error::{Error, Result};
use std::collections::HashMap;

/// No hit path is longer; a longer one is a loop.
const LONGEST: u32 = 1000;

/// Beginnings of aarch64's exclusive and atomic instructions and barriers.  Arm ARM, C3.2 and C6.2.
const EXCLUSIVE: [&str; 21] = [
    "ldxr", "ldaxr", "ldxp", "ldaxp", "stxr", "stlxr", "stxp", "stlxp", "cas", "swp", "ldadd",
    "ldclr", "ldeor", "ldset", "ldsm", "ldum", "stadd", "stclr", "steor", "dmb", "dsb",
];

/// Whose instructions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// x86-64.
    X86,
    /// aarch64.
    Arm,
}

/// Instructions by address.
#[derive(Debug)]
pub struct Disassembly {
    processor: Processor,
    instructions: HashMap<u64, Instruction>,
}

#[derive(Debug)]
struct Instruction {
    next: u64,
    text: String,
    lock: bool,
    mnemonic: String,
    operands: String,
}

/// What lies on a hit path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitPath {
    /// Instructions, `ret` included.
    pub instructions: u32,
    /// Instructions with a memory operand; the stack's implicit ones are not counted.
    pub memory: u32,
    /// Those of them that go through the thread pointer; on aarch64, reads of that pointer.
    pub thread: u32,
    /// Conditional jumps.
    pub branches: u32,
    /// Locked instructions, `xchg` with memory among them; on aarch64, exclusive ones, atomic ones and barriers.
    pub locked: u32,
    /// Calls.
    pub calls: u32,
    /// System calls.
    pub syscalls: u32,
}

impl HitPath {
    fn add(&mut self, instruction: &Instruction, processor: Processor) {
        self.instructions += 1;
        self.branches += u32::from(instruction.is_branch(processor));
        match processor {
            Processor::X86 => self.add_x86(instruction),
            Processor::Arm => self.add_arm(instruction),
        }
    }

    fn add_x86(&mut self, instruction: &Instruction) {
        let Instruction { mnemonic, operands, .. } = instruction;
        let memory = operands.contains("PTR") || operands.contains('[');
        let touches = memory && !mnemonic.starts_with("lea") && !mnemonic.starts_with("nop");
        self.memory += u32::from(touches);
        self.thread += u32::from(touches && operands.contains("fs:"));
        self.locked += u32::from(instruction.lock || (mnemonic == "xchg" && memory));
        self.calls += u32::from(mnemonic == "call");
        self.syscalls += u32::from(matches!(mnemonic.as_str(), "syscall" | "sysenter" | "int"));
    }

    fn add_arm(&mut self, instruction: &Instruction) {
        let Instruction { mnemonic, operands, .. } = instruction;
        self.memory += u32::from(operands.contains('['));
        self.thread += u32::from(operands.contains("tpidr_el0"));
        self.locked += u32::from(EXCLUSIVE.iter().any(|begin| mnemonic.starts_with(begin)));
        self.calls += u32::from(matches!(mnemonic.as_str(), "bl" | "blr"));
        self.syscalls += u32::from(mnemonic == "svc");
    }
}

impl Instruction {
    fn is_branch(&self, processor: Processor) -> bool {
        let mnemonic = self.mnemonic.as_str();
        match processor {
            Processor::X86 => mnemonic.starts_with('j') && mnemonic != "jmp",
            Processor::Arm => {
                mnemonic.starts_with("b.") || matches!(mnemonic, "cbz" | "cbnz" | "tbz" | "tbnz")
            }
        }
    }

    /// The address that an unconditional jump names; none when it goes through a pointer.
    fn target(&self) -> Option<u64> {
        let word = self.operands.split_whitespace().next()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    }

    /// One line of objdump: `address:<tab>[prefix] mnemonic operands # note`.  Constants of aarch64 begin like a
    /// note; nobody needs them.
    fn parse(line: &str) -> Option<(u64, Self)> {
        let (address, text) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let text = text.split('#').next()?.trim();
        let mut lock = false;
        let mut rest = text;
        loop {
            let (word, operands) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
            match word {
                "lock" => lock = true,
                "rep" | "repz" | "repnz" | "bnd" | "notrack" | "data16" | "cs" => {}
                _ => {
                    let (mnemonic, operands) = (word.into(), operands.trim().into());
                    let parsed = Self { next: 0, text: text.into(), lock, mnemonic, operands };
                    return Some((address, parsed));
                }
            }
            rest = operands.trim();
        }
    }
}

impl Disassembly {
    /// Reads objdump's text; lines that are no instructions are passed over.
    #[must_use]
    pub fn parse(text: &str, processor: Processor) -> Self {
        let mut parsed: Vec<(u64, Instruction)> =
            text.lines().filter_map(Instruction::parse).collect();
        for i in 1..parsed.len() {
            parsed[i - 1].1.next = parsed[i].0;
        }
        Self { processor, instructions: parsed.into_iter().collect() }
    }

    /// Follows the hit path of the symbol at `start`.
    ///
    /// # Errors
    /// When the path leaves the library, ends in a trap or does not end.
    pub fn follow(&self, symbol: &str, start: u64) -> Result<HitPath> {
        let wrong = |why: String| Error::HitPath(format!("the hit path of {symbol} {why}"));
        let mut path = HitPath::default();
        let mut address = start;
        while path.instructions < LONGEST {
            let Some(instruction) = self.instructions.get(&address) else {
                return Err(wrong(format!("leaves the disassembly at {address:#x}")));
            };
            path.add(instruction, self.processor);
            address = match instruction.mnemonic.as_str() {
                "ret" => return Ok(path),
                "ud2" | "int3" | "hlt" | "brk" | "udf" => {
                    return Err(wrong(format!("runs into `{}` at {address:#x}", instruction.text)));
                }
                "jmp" | "b" | "br" => instruction.target().ok_or_else(|| {
                    let text = &instruction.text;
                    wrong(format!("jumps through a pointer at {address:#x}: `{text}`"))
                })?,
                _ => instruction.next,
            };
        }
        Err(wrong(format!("has no end: a loop, or more than {LONGEST} instructions")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small library: an entry with a slow path behind it, a tail-jump, and bad ones.
    const FIXTURE: &str = "
0000000000002000 <malloc>:
    2000:\tcmp    rdi,QWORD PTR [rip+0x393d]        # 5ac0 <LIMIT>
    2007:\tja     2030 <malloc+0x30>
    2009:\tlea    rcx,[rip+0x397c]        # 5b20 <DESCRIPTOR>
    2010:\tmov    QWORD PTR fs:[rdx+0x8],rcx
    2015:\tmov    rax,QWORD PTR [rcx+rdx*8-0x8]
    201a:\tnop    DWORD PTR [rax+0x0]
    201e:\tret
    2030:\tjmp    2100 <slow_malloc>

0000000000002040 <new>:
    2040:\tendbr64
    2044:\tjmp    2000 <malloc>

0000000000002050 <locked>:
    2050:\tlock cmpxchg QWORD PTR [rdi],rsi
    2055:\txchg   DWORD PTR [rip+0x10],eax        # 5bdc <LOCK>
    2058:\txchg   ax,ax
    205a:\tcall   2100 <slow_malloc>
    205f:\tsyscall
    2061:\trepz ret

0000000000002070 <spinning>:
    2070:\tpause
    2072:\tjmp    2070 <spinning>

0000000000002080 <elsewhere>:
    2080:\tjmp    QWORD PTR [rip+0x29c9]        # 49d0 <malloc@GLIBC>

0000000000002090 <trapping>:
    2090:\tud2
";

    fn follow(start: u64) -> Result<HitPath> {
        Disassembly::parse(FIXTURE, Processor::X86).follow("entry", start)
    }

    /// As objdump prints it for aarch64.
    const ARM: &str = "
0000000000003000 <malloc>:
    3000:\tcmp\tx0, #0x400
    3004:\tb.hi\t3040 <malloc+0x40>  // b.pmore
    3008:\tmrs\tx12, tpidr_el0
    300c:\tldr\tx13, [x12, #-8]!
    3010:\tcbz\tx13, 3040 <malloc+0x40>
    3014:\tret

0000000000003020 <new>:
    3020:\tb\t3000 <malloc>
    3024:\tldaddal\tx1, x0, [x2]
    3028:\tbl\t3000 <malloc>
    302c:\tsvc\t#0x0
    3030:\tret
    3034:\tbr\tx16
";

    #[test]
    fn aarch64_is_counted_by_its_own_rules() {
        let code = Disassembly::parse(ARM, Processor::Arm);
        let path = code.follow("malloc", 0x3000).unwrap();
        let expected =
            HitPath { instructions: 6, memory: 1, thread: 1, branches: 2, ..HitPath::default() };
        assert_eq!(path, expected);
        assert_eq!(code.follow("new", 0x3020).unwrap().instructions, 7);
        let path = code.follow("new", 0x3024).unwrap();
        assert_eq!((path.locked, path.calls, path.syscalls, path.branches), (1, 1, 1, 0));
        assert!(code.follow("new", 0x3034).unwrap_err().to_string().contains("pointer"));
    }

    #[test]
    fn a_hit_takes_no_branch_and_ends_at_its_return() {
        let path = follow(0x2000).unwrap();
        let expected =
            HitPath { instructions: 7, memory: 3, thread: 1, branches: 1, ..HitPath::default() };
        assert_eq!(path, expected);
    }

    #[test]
    fn a_tail_jump_is_followed() {
        assert_eq!(follow(0x2040).unwrap().instructions, 9);
    }

    #[test]
    fn locks_calls_and_system_calls_are_seen() {
        let path = follow(0x2050).unwrap();
        assert_eq!((path.locked, path.calls, path.syscalls), (2, 1, 1));
        assert_eq!(path.instructions, 6);
    }

    #[test]
    fn a_path_without_a_return_is_refused() {
        for (start, why) in [
            (0x2070, "has no end"),
            (0x2080, "jumps through a pointer"),
            (0x2090, "runs into `ud2`"),
            (0x2030, "leaves the disassembly at 0x2100"),
        ] {
            let error = follow(start).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
