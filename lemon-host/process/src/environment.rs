//! The little of the host's environment that a process gets without asking.

use std::ffi::{OsStr, OsString};

const NAMES: [&str; 9] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"];
const PREFIXES: [&[u8]; 2] = [b"LC_", b"XDG_"];

/// Keeps of `vars` what any program needs and no program hides a secret in: `PATH`, `HOME`, `LANG`,
/// `LC_*`, `TERM`, `TMPDIR`, `TZ`, `USER`, `LOGNAME`, `SHELL` and `XDG_*`, in the order given.
pub fn environment_base(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    vars.filter(|(name, _)| is_base(name)).collect()
}

fn is_base(name: &OsStr) -> bool {
    NAMES.iter().any(|base| name == *base) || PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_base_is_kept() {
        let vars =
            ["PATH", "path", "LC_ALL", "LC", "XDG_RUNTIME_DIR", "OPENAI_API_KEY", "LD_PRELOAD", "HOMEPAGE", "LOGNAME"];
        let kept = environment_base(vars.iter().map(|name| (name.into(), "v".into())));
        let names: Vec<_> = kept.iter().map(|(name, _)| name.as_os_str()).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "XDG_RUNTIME_DIR", "LOGNAME"]);
    }
}
