//! Placeholders in the words of a command: `${extension_dir}`, `${workspace}` and `${data_dir}`.
//!
//! `$${` stands for `${` itself; every other `$` is only a `$`. What is put in is not looked at again.

use std::fmt;

/// What a word of a command may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placeholder {
    /// The extension's own folder.
    ExtensionDir,
    /// The folder that the session works in.
    Workspace,
    /// A folder that the host keeps for the extension.
    DataDir,
}

impl Placeholder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ExtensionDir, Self::Workspace, Self::DataDir];

    /// The name between the braces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExtensionDir => "extension_dir",
            Self::Workspace => "workspace",
            Self::DataDir => "data_dir",
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${{{}}}", self.as_str())
    }
}

/// Why a word can't be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderFault {
    /// The name is none of the known ones.
    #[error("there is no placeholder `${{{0}}}`; known are ${{extension_dir}}, ${{workspace}} and ${{data_dir}}")]
    Unknown(String),
    /// The brace is not closed.
    #[error("`${{` is not closed; write `$${{` for the two characters themselves")]
    Open,
}

/// The placeholders in a word, in order.
///
/// # Errors
/// The first one that is not known or not closed.
pub fn placeholders(word: &str) -> Result<Vec<Placeholder>, PlaceholderFault> {
    let mut found = Vec::new();
    expand(word, |placeholder| {
        found.push(placeholder);
        ""
    })?;
    Ok(found)
}

/// A word with each placeholder replaced by its value.
///
/// # Errors
/// The first placeholder that is not known or not closed.
pub fn expand<S: AsRef<str>>(word: &str, mut value: impl FnMut(Placeholder) -> S) -> Result<String, PlaceholderFault> {
    let (mut expanded, mut rest) = (String::with_capacity(word.len()), word);
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').ok_or(PlaceholderFault::Open)?;
        let placeholder = Placeholder::ALL.into_iter().find(|known| known.as_str() == name);
        let placeholder = placeholder.ok_or_else(|| PlaceholderFault::Unknown(name.to_owned()))?;
        expanded.push_str(before);
        expanded.push_str(value(placeholder).as_ref());
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(word: &str) -> Result<String, PlaceholderFault> {
        expand(word, |placeholder| match placeholder {
            Placeholder::ExtensionDir => "/e",
            Placeholder::Workspace => "/w ${data_dir}",
            Placeholder::DataDir => "/d",
        })
    }

    #[test]
    fn each_placeholder_is_replaced_once() {
        assert_eq!(expanded("${extension_dir}/x").unwrap(), "/e/x");
        assert_eq!(expanded("--a=${workspace}:${data_dir}").unwrap(), "--a=/w ${data_dir}:/d");
        for plain in ["", "$", "$HOME", "{x}", "a$b", "$ {x}"] {
            assert_eq!(expanded(plain).unwrap(), plain);
        }
        assert_eq!(expanded("$${extension_dir}").unwrap(), "${extension_dir}");
        assert_eq!(expanded("$$${data_dir}").unwrap(), "$${data_dir}");
        assert_eq!(placeholders("${data_dir}${workspace}").unwrap(), [Placeholder::DataDir, Placeholder::Workspace]);
    }

    #[test]
    fn what_is_not_known_is_an_error_that_names_the_known_ones() {
        let fault = expanded("a${home}").unwrap_err();
        assert_eq!(
            fault.to_string(),
            "there is no placeholder `${home}`; known are ${extension_dir}, ${workspace} and ${data_dir}"
        );
        assert_eq!(expanded("${extension_dir").unwrap_err(), PlaceholderFault::Open);
        assert!(expanded("${}").is_err() && expanded("${ extension_dir }").is_err());
    }
}
