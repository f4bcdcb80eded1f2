//! Turns the one number that a failed start leaves into what is wrong with which file.
//!
//! ENOENT may mean the program, its interpreter or the folder, and EACCES even more. So the files
//! are looked at afterwards, in the order in which the kernel came upon them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{ProcessSpec, SpawnError};

/// As much of a file as the kernel looks at to find out what it is.
const HEADER: u64 = 256;

/// Why starting `spec` failed with `source`.
pub(crate) fn explain(spec: &ProcessSpec, source: io::Error) -> SpawnError {
    let known = match source.raw_os_error() {
        Some(libc::E2BIG) => Some(SpawnError::ArgumentListTooLong { bytes: size(spec) }),
        Some(libc::ENOENT | libc::ENOTDIR) => folder(&spec.cwd).or_else(|| missing(spec)),
        Some(libc::EACCES) => folder(&spec.cwd).or_else(|| forbidden(spec)),
        Some(libc::ENOEXEC) => unreadable(&spec.program),
        _ => None,
    };
    known.unwrap_or_else(|| SpawnError::Os { program: spec.program.clone(), call: "posix_spawn", source })
}

fn size(spec: &ProcessSpec) -> usize {
    let args = spec.args.iter().map(|arg| arg.len() + 1);
    let env = spec.env.iter().map(|(name, value)| name.len() + value.len() + 2);
    args.chain(env).sum()
}

fn folder(cwd: &Path) -> Option<SpawnError> {
    let cwd = cwd.to_owned();
    match fs::metadata(&cwd) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(SpawnError::CwdNotDirectory { cwd }),
        Err(error) if is_missing(&error) => Some(SpawnError::CwdMissing { cwd }),
        Err(_) => None,
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn missing(spec: &ProcessSpec) -> Option<SpawnError> {
    let program = spec.program.clone();
    match fs::metadata(&program) {
        Err(error) if is_missing(&error) => Some(SpawnError::NotFound { program }),
        Err(_) => None,
        Ok(_) => {
            let interpreter = interpreter(&program)?;
            let found = fs::metadata(spec.cwd.join(&interpreter));
            found.is_err().then_some(SpawnError::MissingInterpreter { program, interpreter: shown(&interpreter) })
        }
    }
}

fn forbidden(spec: &ProcessSpec) -> Option<SpawnError> {
    let program = spec.program.clone();
    let found = fs::metadata(&program).ok()?;
    if found.is_dir() {
        return Some(SpawnError::IsDirectory { program });
    }
    if !is_executable(&found) {
        return Some(SpawnError::NotExecutable { program });
    }
    let interpreter = interpreter(&program)?;
    let found = fs::metadata(spec.cwd.join(&interpreter)).ok()?;
    (found.is_dir() || !is_executable(&found))
        .then_some(SpawnError::InterpreterNotExecutable { program, interpreter: shown(&interpreter) })
}

fn is_executable(found: &fs::Metadata) -> bool {
    found.permissions().mode() & 0o111 != 0
}

fn shown(interpreter: &Path) -> String {
    interpreter.to_string_lossy().into_owned()
}

/// What the kernel found no way to run.
fn unreadable(program: &Path) -> Option<SpawnError> {
    let header = header(program)?;
    let program = program.to_owned();
    let found = match header.as_slice() {
        [0x7f, b'E', b'L', b'F', ..] => match Elf::read(&header)?.machine() {
            // The right machine: the file is damaged in some other way.
            found if found == std::env::consts::ARCH => return None,
            found => found,
        },
        [b'M', b'Z', ..] => "Windows".to_owned(),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => "macOS".to_owned(),
        [0, b'a', b's', b'm', ..] => "WebAssembly".to_owned(),
        _ => return Some(SpawnError::NoInterpreterLine { program }),
    };
    Some(SpawnError::WrongArchitecture { program, found })
}

fn header(program: &Path) -> Option<Vec<u8>> {
    let mut header = Vec::new();
    File::open(program).ok()?.take(HEADER).read_to_end(&mut header).ok()?;
    Some(header)
}

/// What a script's first line, or a dynamically linked binary, names as the program that runs it.
fn interpreter(program: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let header = header(program)?;
    let name = match header.strip_prefix(b"#!") {
        Some(line) => {
            let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
            // The kernel knows no blanks but these two: a carriage return is part of the name.
            line.split(|byte| matches!(byte, b' ' | b'\t')).next()?.to_vec()
        }
        None => Elf::read(&header)?.interpreter(program)?,
    };
    (!name.is_empty()).then(|| std::ffi::OsString::from_vec(name).into())
}

/// The header of an ELF binary, as far as messages need it.
struct Elf<'a> {
    header: &'a [u8],
    is_64_bit: bool,
    is_little_endian: bool,
}

impl<'a> Elf<'a> {
    fn read(header: &'a [u8]) -> Option<Self> {
        header.strip_prefix(b"\x7fELF")?;
        Some(Self { header, is_64_bit: *header.get(4)? == 2, is_little_endian: *header.get(5)? == 1 })
    }

    /// As `std::env::consts::ARCH` names it.
    fn machine(&self) -> String {
        let name = match self.number(self.header, 18, 2) {
            Some(3) => "x86",
            Some(8) => "mips",
            Some(20 | 21) => "powerpc",
            Some(22) => "s390x",
            Some(40) => "arm",
            Some(62) => "x86_64",
            Some(183) => "aarch64",
            Some(243) => "riscv64",
            Some(258) => "loongarch64",
            other => return format!("ELF machine {}", other.unwrap_or_default()),
        };
        name.to_owned()
    }

    /// The loader, from the program header of the type PT_INTERP.
    fn interpreter(&self, program: &Path) -> Option<Vec<u8>> {
        let (table, size, count, offset, length) = match self.is_64_bit {
            true => ((32, 8), 54, 56, (8, 8), (32, 8)),
            false => ((28, 4), 42, 44, (4, 4), (16, 4)),
        };
        let file = File::open(program).ok()?;
        let table = self.number(self.header, table.0, table.1)?;
        let size = self.number(self.header, size, 2)?;
        let count = self.number(self.header, count, 2)?;
        for index in 0..count {
            let mut entry = [0; 40];
            let place = table.checked_add(index * size)?;
            file.read_exact_at(&mut entry, place).ok()?;
            if self.number(&entry, 0, 4)? == 3 {
                let length = self.number(&entry, length.0, length.1)?.min(4096);
                let mut name = vec![0; usize::try_from(length).ok()?];
                let place = self.number(&entry, offset.0, offset.1)?;
                file.read_exact_at(&mut name, place).ok()?;
                return name.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
            }
        }
        None
    }

    fn number(&self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let field = bytes.get(at..at + width)?.iter();
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.is_little_endian {
            true => field.rev().fold(0, join),
            false => field.fold(0, join),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(line: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        fs::write(&path, line).unwrap();
        (dir, path)
    }

    #[test]
    fn the_interpreter_is_read_as_the_kernel_does() {
        for (line, expected) in [
            ("#!/bin/sh\n", Some("/bin/sh")),
            ("#! \t/usr/bin/env python3\n", Some("/usr/bin/env")),
            ("#!/bin/sh\r\n", Some("/bin/sh\r")),
            ("#!/bin/sh", Some("/bin/sh")),
            ("#!\n", None),
            ("echo", None),
            ("", None),
        ] {
            let (_dir, path) = script(line);
            assert_eq!(interpreter(&path).as_deref(), expected.map(Path::new), "{line:?}");
        }
    }

    #[test]
    fn the_loader_of_a_binary_is_found() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(Elf::read(&header(&own).unwrap()).unwrap().machine(), std::env::consts::ARCH);
        let loader = interpreter(&own);
        assert!(loader.as_ref().is_none_or(|loader| loader.exists()), "{loader:?}");
    }
}
