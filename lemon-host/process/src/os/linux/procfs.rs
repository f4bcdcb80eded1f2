//! What /proc tells about processes.

use std::fs;
use std::path::PathBuf;

use crate::Cookie;

/// One process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) group: u32,
    /// Clock ticks since the boot.
    pub(crate) start: u64,
    /// Dead and not reaped.
    pub(crate) zombie: bool,
}

/// The numbers of all processes.
pub(crate) fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// What process `pid` is now.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse(pid, &line(pid)?)
}

fn line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // A program's name need not be UTF-8; all the rest is ASCII.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn start_time(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start)
}

/// Reads `PID (NAME) STATE PARENT GROUP …`, where NAME may hold blanks and brackets itself.
fn parse(pid: u32, line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    // The first of them is field 3 in the manual's count.
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let field = |number: usize| fields.get(number - 3);
    Some(Stat {
        pid,
        zombie: matches!(*field(3)?, "Z" | "X"),
        group: field(5)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
    })
}

/// What a process's environment says of whom it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried<'a> {
    Cookie(&'a Cookie),
    /// None of the cookies, or nothing that this user may read.
    Nothing,
    /// It can't be told now: the process is executing another program, or going.
    Unsettled,
}

/// Which of `cookies` process `pid` carries in its environment.
///
/// While a process executes a program, its environment reads as empty, or ends where the reading was
/// when the old one went. To take that for an answer would let it escape.
pub(crate) fn carries<'a>(pid: u32, cookies: impl Iterator<Item = &'a Cookie> + Clone) -> Carried<'a> {
    let environment = match fs::read(format!("/proc/{pid}/environ")) {
        Ok(environment) => environment,
        Err(error) => match error.raw_os_error() {
            // Gone; a kernel thread; not to be read by this user.
            Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM) => return Carried::Nothing,
            _ => return Carried::Unsettled,
        },
    };
    let prefix = const { [Cookie::ENV.as_bytes(), b"="] }.concat();
    let cookie = environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(prefix.as_slice()))
        .find_map(|value| {
            let is_value = |cookie: &&Cookie| cookie.as_str().as_bytes() == value;
            cookies.clone().find(is_value)
        });
    match cookie {
        Some(cookie) => Carried::Cookie(cookie),
        None => match line(pid).and_then(|line| is_all(environment.len() as u64, &line)) {
            Some(false) => Carried::Unsettled,
            Some(true) | None => Carried::Nothing,
        },
    }
}

/// Whether `read` bytes are a process's whole environment. It has a place even if it is empty, which
/// it also is for a moment in the middle of an exec; only after that the place of the code is set.
/// Kernel threads have neither.
fn is_all(read: u64, line: &str) -> Option<bool> {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (flags, code_end, start, end) = (number(9)?, number(27)?, number(50)?, number(51)?);
    let in_place = code_end != 0 && end != 0;
    Some(flags & KERNEL_THREAD != 0 || (in_place && end.checked_sub(start) == Some(read)))
}

/// This very program, even if its file was replaced or removed since it started.
pub(crate) fn own_program() -> PathBuf {
    "/proc/self/exe".into()
}

/// What process listings show, where the executed file's name stands otherwise.
pub(crate) fn name_process(name: &str) {
    // Nothing depends on it.
    let _ = fs::write("/proc/self/comm", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0\n";
        let expected = Stat { pid: 42, group: 7, start: 987, zombie: false };
        assert_eq!(parse(42, line), Some(expected));
        assert_eq!(parse(42, ""), None);
        assert_eq!(parse(42, "42 (a) Z 1 7"), None);
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        assert!(pids().contains(&own));
        assert!(stat(own).is_some_and(|stat| !stat.zombie && stat.start > 0));
        assert_eq!(stat(u32::MAX), None);
        let cookie = Cookie::new();
        assert_eq!(carries(own, std::iter::once(&cookie)), Carried::Nothing);
    }

    #[test]
    fn half_an_environment_is_told_from_a_whole_one() {
        let line = |flags: u64, code: u64, start: u64, end: u64| {
            let zeros = |count| ["0"].repeat(count).join(" ");
            let (before, middle, after) = (zeros(5), zeros(17), zeros(22));
            format!("1 (a) S {before} {flags} {middle} {code} {after} {start} {end} 0")
        };
        assert_eq!(is_all(0, &line(0, 0, 0, 0)), Some(false), "not there yet");
        assert_eq!(is_all(0, &line(0, 0, 7, 7)), Some(false), "being laid out");
        assert_eq!(is_all(0, &line(0, 5, 7, 9)), Some(false), "there since it was read");
        assert_eq!(is_all(0, &line(0, 5, 7, 7)), Some(true), "empty");
        assert_eq!(is_all(2, &line(0, 5, 7, 9)), Some(true));
        assert_eq!(is_all(0, &line(0x0020_0000, 0, 0, 0)), Some(true));
    }
}
