//! posix_spawn: a start that costs the same however much memory the host has.
//!
//! A `pre_exec` closure makes std fork, which copies the host's page tables (38 ms with 1 GiB
//! resident, where posix_spawn takes 0.2 ms).

use std::ffi::{CString, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use nix::fcntl::{FcntlArg, fcntl};

use crate::os::Launch;

/// Starts a program. It returns once the program is executed, or with the error that hindered it.
pub(crate) fn spawn(launch: &Launch) -> io::Result<u32> {
    let image = Image::new(launch)?;
    let attributes = Attributes::new()?;
    let [stdin, stdout, stderr] = &launch.stdio;
    let stdio = [above_stdio(stdin)?, above_stdio(stdout)?, above_stdio(stderr)?];
    let actions = Actions::new(&launch.cwd, stdio.each_ref().map(Source::number))?;

    let mut pid = 0;
    // SAFETY: all pointers are to values that live through the call; the image's are null-ended
    // arrays of C strings.
    code(unsafe {
        libc::posix_spawn(
            &mut pid,
            image.program.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            image.argv.pointers.as_ptr(),
            image.env.pointers.as_ptr(),
        )
    })?;
    Ok(pid.unsigned_abs())
}

/// A host that closed its stdin gets 0 as its next file. As a child's end it would be overwritten by
/// the child's own stdio before its turn comes, so such a one is duplicated.
fn above_stdio(fd: &OwnedFd) -> io::Result<Source<'_>> {
    if fd.as_raw_fd() > 2 {
        return Ok(Source::Own(fd));
    }
    let moved = fcntl(fd.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(3))?;
    // SAFETY: fcntl has just made this descriptor, so nothing else owns it.
    Ok(Source::Moved(unsafe { OwnedFd::from_raw_fd(moved) }))
}

enum Source<'a> {
    Own(&'a OwnedFd),
    Moved(OwnedFd),
}

impl Source<'_> {
    fn number(&self) -> RawFd {
        match self {
            Self::Own(fd) => fd.as_raw_fd(),
            Self::Moved(fd) => fd.as_raw_fd(),
        }
    }
}

/// posix_spawn and its relatives return the error instead of setting errno.
fn code(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(result))
}

/// What execve takes.
pub(super) struct Image {
    program: CString,
    argv: Strings,
    env: Strings,
}

impl Image {
    pub(super) fn new(launch: &Launch) -> io::Result<Self> {
        let assignment = |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        Ok(Self {
            program: CString::new(launch.program.as_os_str().as_bytes())?,
            argv: Strings::new(launch.argv.iter().map(|arg| arg.as_bytes().to_vec()))?,
            env: Strings::new(launch.env.iter().map(assignment))?,
        })
    }

    /// Makes this process that program. Returns only if that fails.
    pub(super) fn execute(&self) -> io::Error {
        let (argv, env) = (self.argv.pointers.as_ptr(), self.env.pointers.as_ptr());
        // SAFETY: all are C strings, or null-ended arrays of them, that live through the call.
        unsafe { libc::execve(self.program.as_ptr(), argv.cast(), env.cast()) };
        io::Error::last_os_error()
    }
}

/// An array of C strings, ended by a null pointer.
struct Strings {
    pointers: Vec<*mut libc::c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers are to what the same value owns and nobody changes.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(strings: impl Iterator<Item = Vec<u8>>) -> io::Result<Self> {
        let owned: Vec<CString> = strings.map(CString::new).collect::<Result<_, _>>()?;
        let pointers = owned.iter().map(|string| string.as_ptr().cast_mut());
        Ok(Self { pointers: pointers.chain([null_mut()]).collect(), _owned: owned })
    }
}

/// A new session, all signals at their defaults, none blocked.
struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: init is given room for what it initialises.
        code(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        let mut this = Self(raw);
        let flags = libc::POSIX_SPAWN_SETSID as i32 | libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are initialised before they are used, by calls that can't fail for valid
        // signals, and the attributes were initialised above.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigdelset(all.as_mut_ptr(), libc::SIGKILL);
            libc::sigdelset(all.as_mut_ptr(), libc::SIGSTOP);
            libc::sigemptyset(none.as_mut_ptr());
            let raw = this.0.as_mut_ptr();
            code(libc::posix_spawnattr_setsigdefault(raw, all.as_ptr()))?;
            code(libc::posix_spawnattr_setsigmask(raw, none.as_ptr()))?;
            code(libc::posix_spawnattr_setflags(raw, flags as libc::c_short))?;
        }
        Ok(this)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, and destroyed only here.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

/// The three pipes in place, every other file closed, the folder changed.
struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new(cwd: &Path, stdio: [RawFd; 3]) -> io::Result<Self> {
        let cwd = CString::new(cwd.as_os_str().as_bytes())?;
        let mut raw = MaybeUninit::uninit();
        // SAFETY: init is given room for what it initialises.
        code(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        let mut this = Self(raw);
        let raw = this.0.as_mut_ptr();
        for (target, fd) in (0..).zip(stdio) {
            // SAFETY: the actions were initialised above; both are plain numbers to it.
            code(unsafe { libc::posix_spawn_file_actions_adddup2(raw, fd, target) })?;
        }
        close_the_rest(raw)?;
        // SAFETY: the actions were initialised above, and the path is copied by the call.
        code(unsafe { libc::posix_spawn_file_actions_addchdir_np(raw, cwd.as_ptr()) })?;
        Ok(this)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, and destroyed only here.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

/// Files that someone opened without close-on-exec, or that the host itself inherited.
#[cfg(target_env = "gnu")]
fn close_the_rest(actions: *mut libc::posix_spawn_file_actions_t) -> io::Result<()> {
    // SAFETY: the caller has initialised the actions.
    code(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(actions, 3) })
}

/// Where libc can't close a range, what is open now is closed one by one. It is no error if one of
/// them is closed by the time of the start.
#[cfg(not(target_env = "gnu"))]
fn close_the_rest(actions: *mut libc::posix_spawn_file_actions_t) -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let fd = name.to_str().and_then(|name| name.parse().ok());
        if let Some(fd) = fd.filter(|fd| *fd > 2) {
            // SAFETY: the caller has initialised the actions.
            code(unsafe { libc::posix_spawn_file_actions_addclose(actions, fd) })?;
        }
    }
    Ok(())
}
