//! Programs that can't be started at all: their plugin fails at once and for good, with the reason.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::case::NotStarted::Failed;
use crate::case::{Case, program};

pub(crate) fn cases() -> Vec<Case> {
    let foreign = || {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0);
        header[16] = 2;
        // The machine: 183 is aarch64, 62 is x86_64.
        header[18] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
        header
    };
    vec![
        fails("no such program", None, &["no-such-program was not found", "searched"]),
        fails("not executable", Some((b"#!/bin/sh\n".to_vec(), 0o644)), &["not executable", "chmod +x"]),
        fails(
            "missing interpreter",
            Some((b"#!/no/such/python\n".to_vec(), 0o755)),
            &["/no/such/python", "does not exist"],
        ),
        fails("neither binary nor script", Some((b"hello\n".to_vec(), 0o755)), &["is no binary"]),
        fails("another architecture", Some((foreign(), 0o755)), &["is built for", std::env::consts::ARCH]),
        program("program: a folder", ["/usr".to_owned()]).never_starts(Failed, &["/usr is a directory"]),
        program("program: a working folder that is gone", ["true".to_owned()])
            .spec(|spec| spec.cwd = Some(PathBuf::from("/no/such/folder")))
            .never_starts(Failed, &["the working directory /no/such/folder does not exist"]),
    ]
}

/// A file with its mode, or a name that is none.
fn fails(name: &str, file: Option<(Vec<u8>, u32)>, parts: &'static [&'static str]) -> Case {
    let name = format!("program: {name}");
    let Some((bytes, mode)) = file else {
        return program(&name, ["no-such-program".to_owned()]).never_starts(Failed, parts);
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    program(&name, [path.display().to_string()]).then(async move |cage| {
        let _folder = folder;
        let error = cage.start_error();
        for part in parts {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        cage.rests_as(Failed).await;
    })
}
