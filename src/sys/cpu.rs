//! CPUs: how many there can be, which node one is on, and where the process's tasks run.
#![allow(unsafe_code, reason = "getcpu, sched_getaffinity, getauxval")]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__cpuid_count;
#[cfg(not(target_arch = "x86_64"))]
use core::fmt::Write;

use super::fault::{Call, admit, refused};
use super::file;
#[cfg(not(target_arch = "x86_64"))]
use super::file::Text;
use super::mem::call;
#[cfg(target_arch = "x86_64")]
use super::rseq;
use crate::base::config::CPUS_MAX;
use crate::base::ids::CpuId;

/// The base page, in bytes, as the kernel told the process.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: getauxval reads the auxiliary vector, and does not allocate.
    let bytes = unsafe { libc::getauxval(libc::AT_PAGESZ) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// True in a program that runs with more rights than its caller: it must not obey the environment.
pub(crate) fn is_secure() -> bool {
    // SAFETY: as in `page_bytes`.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Address space that the process may still map, in bytes; none without a limit (`RLIMIT_AS`).
pub(crate) fn address_space_left() -> Option<usize> {
    limit(libc::RLIMIT_AS as usize).map(|limit| limit.saturating_sub(mapped()))
}

/// Bytes that the process may lock in memory without more rights; none without a limit
/// (`RLIMIT_MEMLOCK`).
pub(crate) fn lockable() -> Option<usize> {
    limit(libc::RLIMIT_MEMLOCK as usize)
}

fn limit(resource: usize) -> Option<usize> {
    let mut limit =
        libc::rlimit64 { rlim_cur: libc::RLIM64_INFINITY, rlim_max: libc::RLIM64_INFINITY };
    let address = core::ptr::from_mut(&mut limit).expose_provenance();
    // SAFETY: the limit is written to a struct of the kernel's layout.
    unsafe { call(Call::Rlimit, libc::SYS_prlimit64, [0, resource, 0, address, 0, 0]) }.ok()?;
    let bytes = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
    (limit.rlim_cur != libc::RLIM64_INFINITY).then_some(bytes)
}

/// Bytes that the process has mapped; 0 where that cannot be known.  Kernel: proc(5), `statm`.
pub(crate) fn mapped() -> usize {
    let mut text = [0; 64];
    let statm = file::read(b"/proc/self/statm\0", &mut text).unwrap_or_default();
    first_number(statm).unwrap_or(0).saturating_mul(page_bytes())
}

/// Bytes of memory that the machine has; none where that cannot be known.  Kernel: proc(5), `meminfo`.
pub(crate) fn physical_memory() -> Option<usize> {
    let mut text = [0; 64];
    let total = file::read(b"/proc/meminfo\0", &mut text).ok()?.strip_prefix(b"MemTotal:")?;
    first_number(total.trim_ascii_start())?.checked_mul(1024)
}

fn first_number(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    core::str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}

/// CPU numbers that the kernel can ever name: all are below this.  It is the length of the kernel's
/// own CPU mask, which no container rewrites, as some do with /sys; that file is asked where a
/// sandbox refuses the call.  Kernel: `sched_getaffinity(2)`, "C library/kernel differences".
pub(crate) fn possible(buffer: &mut [u8]) -> usize {
    let address = buffer.as_mut_ptr().expose_provenance();
    // SAFETY: the buffer is writable for its length.
    let mask = unsafe {
        call(Call::Affinity, libc::SYS_sched_getaffinity, [0, buffer.len(), address, 0, 0, 0])
    };
    let mut named =
        || file::read(b"/sys/devices/system/cpu/possible\0", buffer).ok().and_then(last_of_list);
    let count = mask.map(|bytes| bytes * 8).ok().or_else(|| named().map(|last| last as usize + 1));
    count.unwrap_or(CPUS_MAX).clamp(1, CPUS_MAX)
}

/// A number that `cpu`, which the calling thread believes to be on, has in common with those that share its
/// last-level cache; none when the thread is elsewhere by now.  The processor is asked: a sandbox entered
/// since the start may allow no look at files.  Intel 64 manual 2A, `CPUID`, leaf 4; AMD64 manual 3, leaf
/// 8000001D.
#[cfg(target_arch = "x86_64")]
pub(crate) fn last_level_leader(cpu: CpuId) -> Option<u32> {
    let group = cache_group();
    if rseq::cpu_hint() == Some(cpu) { group } else { None }
}

#[cfg(target_arch = "x86_64")]
fn cache_group() -> Option<u32> {
    const CACHES: u32 = 4;
    const CACHES_OF_AMD: u32 = 0x8000_001d;
    const LEVELS_MAX: u32 = 8;
    let last_of = |leaf| {
        let caches = (0..LEVELS_MAX).map(|index| __cpuid_count(leaf, index).eax);
        // Type 0 ends the list; a level is in three bits, and instructions have no last level.
        caches.take_while(|eax| eax & 31 != 0).max_by_key(|eax| eax >> 5 & 7)
    };
    let has_leaf = |leaf: u32| __cpuid_count(leaf & 0x8000_0000, 0).eax >= leaf;
    let of_amd = || if has_leaf(CACHES_OF_AMD) { last_of(CACHES_OF_AMD) } else { None };
    let last = of_amd().or_else(|| if has_leaf(CACHES) { last_of(CACHES) } else { None })?;
    let sharers = (last >> 14 & 0xfff) + 1;
    Some(processor_id(has_leaf) >> sharers.next_power_of_two().ilog2())
}

/// The number by which the processor is known to interrupts; those that share a cache have its high bits.
#[cfg(target_arch = "x86_64")]
fn processor_id(has_leaf: impl Fn(u32) -> bool) -> u32 {
    const TOPOLOGY: u32 = 0xb;
    let wide = if has_leaf(TOPOLOGY) { Some(__cpuid_count(TOPOLOGY, 0)) } else { None };
    let wide = wide.filter(|leaf| leaf.ebx != 0).map(|leaf| leaf.edx);
    wide.unwrap_or_else(|| __cpuid_count(1, 0).ebx >> 24)
}

/// The first of the CPUs that share `cpu`'s last-level cache: the highest level that the kernel names,
/// the third of most machines.  Kernel: Documentation/ABI/testing/sysfs-devices-system-cpu,
/// `shared_cpu_list`.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn last_level_leader(cpu: CpuId) -> Option<u32> {
    [3, 2].into_iter().find_map(|index| {
        let mut path = [0; 80];
        let mut name = Text::new(&mut path);
        write!(name, "/sys/devices/system/cpu/cpu{}/cache/index{index}/shared_cpu_list\0", cpu.0)
            .ok()?;
        let len = name.len();
        let mut text = [0; 128];
        first_of_list(file::read(path.get(..len)?, &mut text).ok()?)
    })
}

/// The first number of a list like `2-3,8\n`; the pure half of `last_level_leader`.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(crate) fn first_of_list(text: &[u8]) -> Option<u32> {
    first_number(text)?.try_into().ok()
}

/// The last number of a list like `0-3,8\n`; the pure half of [`possible`].
pub(crate) fn last_of_list(text: &[u8]) -> Option<u32> {
    let text = text.trim_ascii_end();
    let start = text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    core::str::from_utf8(text.get(start..)?).ok()?.parse().ok()
}

/// The CPU and the kernel's node that the calling thread is on: libc knows without asking the kernel, where
/// that has a vDSO.
pub(crate) fn current() -> Option<(CpuId, u32)> {
    let mut place = [0_u32; 2];
    let address = place.as_mut_ptr().expose_provenance();
    let known = crate::__weak_symbol!("getcpu");
    if known == 0 {
        // SAFETY: two words to write to, apart from each other.
        unsafe { call(Call::Getcpu, libc::SYS_getcpu, [address, address + 4, 0, 0, 0, 0]) }.ok()?;
        return Some((CpuId(place[0]), place[1]));
    }
    // SAFETY: libc defines the symbol as a function of this type.
    let known: unsafe extern "C" fn(*mut u32, *mut u32) -> i32 =
        unsafe { core::mem::transmute(known) };
    let [cpu, node] = &mut place;
    // SAFETY: as above.
    let answered = admit(Call::Getcpu).is_ok() && unsafe { known(cpu, node) } == 0;
    if !answered {
        refused(Call::Getcpu);
    }
    answered.then_some((CpuId(place[0]), place[1]))
}

/// Where tasks of this process may be inside a section that began before this call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tasks {
    /// Each task was seen asleep or on another CPU.
    Away,
    /// At least one may have run on the CPU all the time, or could not be seen.
    MaybeThere,
}

/// Looks at each task of the process once: is it asleep, or on another CPU than `cpu`?  The calling
/// task is in no section.  Kernel: `proc_pid_stat(5)`, fields 3 and 39.
///
/// A list of tasks can miss one while others end.  So the list is read twice: when both readings name
/// the same tasks, all of them were alive in between, and when their number is the process's number
/// of threads at that moment, there was no other.  Tasks that came later began after the call.
pub(crate) fn tasks_on(cpu: CpuId) -> Tasks {
    let mut away = true;
    let first = tasks(|task| {
        away = away && is_away(task, cpu);
        away
    });
    let threads = threads();
    let complete = away
        && first.is_some()
        && threads == first.map(|set| set.count)
        && first == tasks(|_| true);
    if complete { Tasks::Away } else { Tasks::MaybeThere }
}

/// A set of tasks, by their number and by a sum that hardly two sets share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct TaskSet {
    count: u64,
    sum: u64,
}

fn tasks(mut look: impl FnMut(&[u8]) -> bool) -> Option<TaskSet> {
    let mut names = [0; 512];
    let mut set = TaskSet::default();
    let listed = file::list(b"/proc/self/task\0", &mut names, |name| {
        let Some(task) = number(name) else { return true };
        set.count += 1;
        set.sum = set.sum.wrapping_add(
            (task + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(task | 1),
        );
        look(name)
    });
    listed.ok().map(|()| set)
}

/// Threads of the process.  Kernel: `proc_pid_stat(5)`, field 20.
fn threads() -> Option<u64> {
    let mut text = [0; 512];
    fields(file::read(b"/proc/self/stat\0", &mut text).ok()?)?.nth(17).and_then(number)
}

fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// The fields of a stat line from the third on.
fn fields(stat: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    // The name in field 2 may hold anything; the last parenthesis ends it.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    Some(stat.get(end + 2..)?.split(|&byte| byte == b' '))
}

fn is_away(task: &[u8], cpu: CpuId) -> bool {
    const PREFIX: &[u8] = b"/proc/self/task/";
    const SUFFIX: &[u8] = b"/stat\0";
    let mut path = [0; 48];
    let mut len = 0;
    for &byte in PREFIX.iter().chain(task).chain(SUFFIX) {
        let Some(slot) = path.get_mut(len) else { return false };
        *slot = byte;
        len += 1;
    }
    let mut text = [0; 512];
    match file::read(path.get(..len).unwrap_or_default(), &mut text) {
        Ok(stat) => stat_is_away(stat, cpu),
        // A task that is gone is in no section.
        Err(errno) => errno.0 == libc::ENOENT || errno.0 == libc::ESRCH,
    }
}

/// True when a task's stat line says that it sleeps or was last on another CPU.
///
/// A section makes no system call, so a task that sleeps in one is in no section.  State D is no
/// proof: a page fault inside a section can be about to wait, and find that it need not.
pub(crate) fn stat_is_away(stat: &[u8], cpu: CpuId) -> bool {
    let Some(mut fields) = fields(stat) else { return false };
    let asleep =
        fields.next().is_some_and(|state| matches!(state, b"S" | b"T" | b"t" | b"Z" | b"X"));
    let last = fields.nth(35).and_then(number);
    asleep || last.is_some_and(|last| last != u64::from(cpu.0))
}

#[cfg(test)]
mod tests {
    use super::{first_of_list, last_of_list, stat_is_away};
    use crate::base::ids::CpuId;

    const STAT: &[u8] = b"17 (a) b) (c) R 1 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5 0 0 18446744073709551615 \
        0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n";

    #[test]
    fn a_running_task_is_away_from_other_cpus_alone() {
        assert!(!stat_is_away(STAT, CpuId(3)));
        assert!(stat_is_away(STAT, CpuId(2)));
    }

    #[test]
    fn a_sleeping_task_is_away() {
        let mut asleep = [0; 256];
        let asleep = asleep.get_mut(..STAT.len()).expect("fits");
        asleep.copy_from_slice(STAT);
        asleep[14] = b'S';
        assert!(stat_is_away(asleep, CpuId(3)));
    }

    #[test]
    fn a_broken_line_is_not_away() {
        assert!(!stat_is_away(b"17 (a", CpuId(0)));
        assert!(!stat_is_away(b"17 (a) R 1 2", CpuId(0)));
    }

    #[test]
    fn the_first_number_of_a_list_is_found() {
        assert_eq!(first_of_list(b"2-3,8\n"), Some(2));
        assert_eq!(first_of_list(b"11\n"), Some(11));
        assert_eq!(first_of_list(b"\n"), None);
    }

    #[test]
    fn the_last_number_of_a_list_is_found() {
        assert_eq!(last_of_list(b"0-127\n"), Some(127));
        assert_eq!(last_of_list(b"0,2,5"), Some(5));
        assert_eq!(last_of_list(b"0\n"), Some(0));
        assert_eq!(last_of_list(b"\n"), None);
    }
}
