//! What an ELF file tells of itself: its machine, its loader, and whether homenode is linked into it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader32, FileHeader64, Machine};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{Endianness, FileKind, ReadCache, ReadRef};

/// A function of libhomenode.a that no other library has.
const MARK: &[u8] = b"hn_print_stats";

/// An ELF file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// 32 or 64.
    pub(crate) bits: u32,
    /// `e_machine`.  Source: System V ABI, chapter 4.
    pub(crate) machine: Machine,
    /// What the kernel starts to load it; none for a static program.
    pub(crate) loader: Option<PathBuf>,
    /// True where libhomenode.a is in it, as far as its symbol table tells.
    pub(crate) has_homenode: bool,
}

impl Image {
    /// Reads the headers of `path`; none where it is no ELF file, or cannot be read.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = ReadCache::new(File::open(path).ok()?);
        match FileKind::parse(&file).ok()? {
            FileKind::Elf32 => read::<FileHeader32<Endianness>, _>(32, &file),
            FileKind::Elf64 => read::<FileHeader64<Endianness>, _>(64, &file),
            _ => None,
        }
    }

    /// The usual name of its machine.
    pub(crate) fn machine_name(&self) -> String {
        match self.machine {
            elf::EM_X86_64 => "x86-64".into(),
            elf::EM_386 => "x86".into(),
            elf::EM_AARCH64 => "aarch64".into(),
            elf::EM_ARM => "arm".into(),
            elf::EM_RISCV => "riscv".into(),
            elf::EM_PPC64 => "ppc64".into(),
            elf::EM_S390 => "s390".into(),
            other => format!("ELF machine {}", other.0),
        }
    }
}

fn read<'data, Header, Data>(bits: u32, data: Data) -> Option<Image>
where
    Header: FileHeader<Endian = Endianness>,
    Data: ReadRef<'data>,
{
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let loader = segments.iter().find_map(|segment| segment.interpreter(endian, data).ok()?);
    let loader = loader.map(|path| PathBuf::from(OsStr::from_bytes(path)));
    let has_homenode = loader.is_none() && has_symbol(header, endian, data).unwrap_or(false);
    Some(Image { bits, machine: header.e_machine(endian), loader, has_homenode })
}

fn has_symbol<'data, Header, Data>(header: &Header, endian: Endianness, data: Data) -> Option<bool>
where
    Header: FileHeader<Endian = Endianness>,
    Data: ReadRef<'data>,
{
    let sections = header.sections(endian, data).ok()?;
    let symbols = sections.symbols(endian, data, elf::SHT_SYMTAB).ok()?;
    let mut names = symbols.iter().filter_map(|symbol| symbol.name(endian, symbols.strings()).ok());
    Some(names.any(|name| name == MARK))
}
